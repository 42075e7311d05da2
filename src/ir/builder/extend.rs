//! Additions to a finished program, for passes.

use super::{Builder, Open};
use crate::ir::entity::{Block, Entry, Op, Tensor};
use crate::ir::extent::Shape;
use crate::ir::op::{OpKind, Operand};
use crate::ir::program::{Loc, Param, Program, TensorDef};
use crate::ir::types::DType;

impl Builder {
    /// Goes on with a program.
    pub fn extend(program: Program) -> Self {
        let names = |names: &mut dyn Iterator<Item = &String>| names.cloned().collect();
        Self {
            dim_names: names(&mut program.extents.dims.values().map(|dim| &dim.name)),
            entry_names: names(&mut program.entries.values().map(|entry| &entry.name)),
            buffer_names: names(&mut program.buffers.values().map(|buffer| &buffer.name)),
            domain_names: names(&mut program.domains.values().map(|domain| &domain.name)),
            program,
            ..Self::default()
        }
    }

    /// Builds ops that stand nowhere yet.
    pub fn apart(&mut self, loc: Loc, build: impl FnOnce(&mut Self)) -> Vec<Op> {
        let block = self.block();
        self.loc = loc;
        self.open.push((Open::Added(block), loc));
        build(self);
        self.open.pop();
        std::mem::take(&mut self.program.blocks[block])
    }

    /// Puts ops in the place of one that stands in a block.
    pub fn replace(&mut self, block: Block, op: Op, ops: Vec<Op>) {
        let block = &mut self.program.blocks[block];
        let at = block.iter().position(|&other| other == op).expect("the op stands in the block");
        block.splice(at..=at, ops);
    }

    /// Puts ops behind one that stands in a block, or at its beginning.
    pub fn insert(&mut self, block: Block, behind: Option<Op>, ops: Vec<Op>) {
        let block = &mut self.program.blocks[block];
        let at = behind.and_then(|op| block.iter().position(|&other| other == op)).map_or(0, |at| at + 1);
        block.splice(at..at, ops);
    }

    /// Another window parameter of an entry, behind those that it has.
    pub fn add_param_window(&mut self, entry: Entry, name: &str, dtype: DType, shape: Shape) -> Tensor {
        let index = self.program.entries[entry].params.len() as u32;
        let tensor = self.tensor(Some(name), dtype, shape, TensorDef::Window(entry, index));
        self.program.entries[entry].params.push(Param::Tensor(tensor));
        tensor
    }

    /// Another argument of a dispatch, behind those that it has.
    pub fn add_argument(&mut self, dispatch: Op, tensor: Tensor) {
        if let OpKind::Dispatch { args, .. } = &mut self.program.ops[dispatch].kind {
            args.push(Operand::Tensor(tensor));
        }
    }

    /// A name for an entry or a window buffer that none has yet.
    pub fn unused_name(&self, name: &str) -> String {
        let taken = |name: &String| self.entry_names.contains(name) || self.buffer_names.contains(name);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        std::iter::once(name.to_string()).chain(numbered).find(|name| !taken(name)).expect("numbers do not end")
    }
}
