//! How messages name things: as the program's text does.

use std::cell::OnceCell;

use crate::ir::print::Text;
use crate::ir::program::Param;
use crate::ir::{Array, Buffer, Domain, Extent, Op, Program, Scalar, Tensor, Tile, Var};

/// Something that messages name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Thing {
    Scalar(Scalar),
    Tensor(Tensor),
    Tile(Tile),
    Var(Var),
    Array(Array),
    Buffer(Buffer),
    Domain(Domain),
}

/// The program's text, made when the first finding needs it.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    program: &'a Program,
    text: &'a OnceCell<Text<'a>>,
}

impl<'a> Names<'a> {
    pub fn new(program: &'a Program, text: &'a OnceCell<Text<'a>>) -> Self {
        Self { program, text }
    }

    fn text(self) -> &'a Text<'a> {
        self.text.get_or_init(|| Text::new(self.program))
    }

    /// An op on one line.
    pub fn op(self, op: Op) -> String {
        self.text().op(op)
    }

    /// A value: its name, or how it is computed.
    pub fn scalar(self, scalar: Scalar) -> String {
        self.text().scalar(scalar)
    }

    /// `scale is f32`.
    pub fn scalar_is(self, scalar: Scalar) -> String {
        format!("{} is {}", self.scalar(scalar), self.program.scalars[scalar].ty)
    }

    /// A size.
    pub fn extent(self, extent: Extent) -> String {
        self.text().extent(extent)
    }

    /// `[1, world]`.
    pub fn shape(self, shape: &[Extent]) -> String {
        let extents: Vec<String> = shape.iter().map(|&e| self.extent(e)).collect();
        format!("[{}]", extents.join(", "))
    }

    /// A tensor's name.
    pub fn tensor(self, tensor: Tensor) -> String {
        self.text().tensor(tensor)
    }

    /// `x is tensor[1, 256] f32`.
    pub fn tensor_is(self, tensor: Tensor) -> String {
        format!("{} is {}", self.tensor(tensor), self.text().tensor_type(tensor))
    }

    /// `x: tensor[1, 256] f32 in`.
    pub fn param(self, param: Param) -> String {
        self.text().param(param)
    }

    /// ` (moe.cpp:12)`, where an op was written; empty if unknown.
    pub fn at(self, op: Op) -> String {
        let place = self.program.place(self.program.ops[op].loc);
        if place.is_empty() { place } else { format!(" ({place})") }
    }

    /// A tile's name.
    pub fn tile(self, tile: Tile) -> &'a str {
        match self.text().tile(tile) {
            // No op defines it.
            "" => "the tile",
            name => name,
        }
    }

    /// The name of anything.
    pub fn of(self, thing: Thing) -> String {
        match thing {
            Thing::Scalar(scalar) => self.scalar(scalar),
            Thing::Tensor(tensor) => self.tensor(tensor),
            Thing::Tile(tile) => self.tile(tile).into(),
            Thing::Var(var) => self.text().var(var).into(),
            Thing::Array(array) => self.text().array(array).into(),
            Thing::Buffer(buffer) => self.program.buffers[buffer].name.clone(),
            Thing::Domain(domain) => self.program.domains[domain].name.clone(),
        }
    }

    /// `t is a tile [1, 256] f32`.
    pub fn tile_is(self, tile: Tile) -> String {
        let data = &self.program.tiles[tile];
        format!("{} is a tile {} {}", self.tile(tile), self.shape(&data.shape), data.dtype)
    }
}

/// `1 argument`, `2 arguments`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
