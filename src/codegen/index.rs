//! Offsets, extents and peers of ops, with what is known of them when compiling: the same for every target.

use smallvec::SmallVec;

use crate::ir::{Extent, Program, Region, Scalar, Tensor};
use crate::verify::range::{Interval, Ranges};

/// An integer of code in the making, which may be known already.
pub trait Number: Clone + From<i64> {
    /// Its value, if that is known.
    fn constant(&self) -> Option<i64>;
}

/// An offset, extent, peer or array index, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Index<N> {
    /// Its value.
    pub size: N,
    /// The values that it can have.
    pub range: Interval,
    /// The extent that it is, if it is one.
    pub extent: Option<Extent>,
}

/// Indices, one a dimension.
pub type Indices<N> = SmallVec<[Index<N>; 4]>;

/// Ranks of a domain, counted on from rank 0 behind the last.
#[derive(Clone, Copy, Debug)]
pub struct Peers<N> {
    /// The number of the first.
    pub first: N,
    /// How many.
    pub count: N,
}

impl<N: Number> Index<N> {
    /// A number.
    pub fn number(value: i64) -> Self {
        Self { size: value.into(), range: Interval::point(value), extent: None }
    }
}

/// A function in the making, as far as indices go.
pub trait Indexing {
    /// Its integers.
    type Size: Number;

    /// The program that it is a part of.
    fn program(&self) -> &Program;

    /// The values that its scalars can have.
    fn ranges(&self) -> &Ranges;

    /// The value of an integer scalar.
    fn size(&mut self, scalar: Scalar) -> Self::Size;

    /// The value of an extent.
    fn extent(&mut self, extent: Extent) -> Self::Size;

    /// Ends the launch unless the region `extents` at `at` lies in a tensor, the op's operand number `operand`. A region
    /// without elements may be anywhere.
    fn check_region(&mut self, operand: u32, tensor: Tensor, at: &[Index<Self::Size>], extents: &[Index<Self::Size>]);

    /// An integer scalar, with what is known of it.
    fn index(&mut self, scalar: Scalar) -> Index<Self::Size> {
        let size = self.size(scalar);
        let range = size.constant().map_or_else(|| self.ranges().of(scalar), Interval::point);
        Index { size, range, extent: self.program().extent_of(scalar) }
    }

    /// The same of several.
    fn indices(&mut self, scalars: &[Scalar]) -> Indices<Self::Size> {
        scalars.iter().map(|&s| self.index(s)).collect()
    }

    /// An extent, with what is known of it.
    fn extent_index(&mut self, extent: Extent) -> Index<Self::Size> {
        Index { size: self.extent(extent), range: self.ranges().of_extent(extent), extent: Some(extent) }
    }

    /// The same of several.
    fn extent_indices(&mut self, shape: &[Extent]) -> Indices<Self::Size> {
        shape.iter().map(|&e| self.extent_index(e)).collect()
    }

    /// Where a region begins in both tensors, and its extents; the launch ends unless it lies in both.
    fn region(&mut self, dst: Tensor, src: Tensor, region: Option<&Region>) -> [Indices<Self::Size>; 3] {
        let (dst_at, src_at, shape) = match region {
            Some(region) => (self.indices(&region.dst), self.indices(&region.src), self.indices(&region.shape)),
            None => {
                let shape = self.program().tensors[dst].shape.clone();
                let shape = self.extent_indices(&shape);
                let origin: Indices<Self::Size> = shape.iter().map(|_| Index::number(0)).collect();
                (origin.clone(), origin, shape)
            }
        };
        self.check_region(0, dst, &dst_at, &shape);
        self.check_region(1, src, &src_at, &shape);
        [dst_at, src_at, shape]
    }
}
