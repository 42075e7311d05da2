//! Tensors with one part for each rank that this process drives.

use half::bf16;
use pld::ir::DType;
use pld::runtime::{Arg, TensorArg, World};

/// Types of elements.
pub trait Element: Copy {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty = $dtype:ident)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements!(f32 = F32 bf16 = BF16 i8 = I8 i32 = I32);

/// The ranks that this process drives.
pub fn local(world: &World) -> Vec<usize> {
    match world.rank() {
        Some(rank) => vec![rank as usize],
        None => (0..world.nranks() as usize).collect(),
    }
}

/// One part a rank of this process, behind each other.
pub struct Ranked<T> {
    values: Vec<T>,
    shape: Vec<i64>,
    part: usize,
}

impl<T: Element> Ranked<T> {
    /// Parts of this shape; `value` gives each element by rank and place in the part.
    pub fn new(world: &World, part: &[usize], value: impl Fn(usize, usize) -> T) -> Self {
        let (ranks, size) = (local(world), part.iter().product());
        let mut shape: Vec<i64> = part.iter().map(|&extent| extent as i64).collect();
        if world.rank().is_none() {
            shape.insert(0, ranks.len() as i64);
        }
        let mut ranked = Self { values: Vec::new(), shape, part: size };
        ranked.values.reserve(ranks.len() * size);
        ranks.iter().for_each(|&rank| ranked.values.extend((0..size).map(|i| value(rank, i))));
        ranked
    }

    pub fn arg(&mut self) -> Arg<'_> {
        let data = self.values.as_mut_ptr().cast();
        Arg::Tensor(TensorArg { data, dtype: T::DTYPE, shape: &self.shape, strides: None })
    }

    /// The part of each rank of this process.
    pub fn parts(&self) -> impl Iterator<Item = &[T]> {
        self.values.chunks_exact(self.part)
    }
}
