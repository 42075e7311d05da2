//! Ranks as the domains of windows number them.

use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::ir::Tensor;
use crate::ir::program::TensorDef;
use crate::verify::domains::DomainId;

use super::function::{Function, PLAIN};
use super::jit::ADDRESS;
use super::size::Size;

/// How a domain numbers its ranks.
#[derive(Debug)]
pub enum Numbering {
    /// Number `i` is rank `first + i * step`.
    Steps { first: i64, step: i64 },
    /// Any other order.
    Table {
        /// The rank of each number.
        ranks: Box<[u32]>,
        /// The number of each rank of the world; 0 for those outside, which never ask.
        numbers: Box<[u32]>,
    },
}

impl Numbering {
    /// The numbering of these ranks, in this order.
    pub fn new(ranks: &[u32], world: u32) -> Self {
        let of = |index: usize| ranks.get(index).map(|&rank| i64::from(rank));
        let first = of(0).unwrap_or(0);
        let step = of(1).map_or(1, |second| second - first);
        if ranks.windows(2).all(|pair| i64::from(pair[1]) - i64::from(pair[0]) == step) {
            return Self::Steps { first, step };
        }
        let mut numbers = vec![0; world as usize];
        for (number, &rank) in (0..).zip(ranks) {
            numbers[rank as usize] = number;
        }
        Self::Table { ranks: ranks.into(), numbers: numbers.into() }
    }
}

impl Function<'_, '_> {
    /// The domain of a window; none for a view that no dispatch passes.
    fn domain(&self, window: Tensor) -> Option<DomainId> {
        let program = self.program();
        match program.tensors[program.root(window)].def {
            TensorDef::Window(_, index) => self.unit.domains_of_params().get(index as usize).copied().flatten(),
            TensorDef::View(buffer) => self.unit.domains.of(buffer),
            _ => None,
        }
    }

    /// How many ranks share a window.
    pub fn nranks(&self, window: Tensor) -> i64 {
        let domain = self.domain(window).map(|domain| self.unit.domains.ranks[domain].len() as i64);
        domain.unwrap_or(i64::from(self.unit.binding.nranks))
    }

    /// The rank of the world that has a number in a window's domain.
    pub fn world_rank(&mut self, window: Tensor, number: Size) -> Size {
        let Some(domain) = self.domain(window) else { return number };
        match &self.unit.numberings[domain] {
            &Numbering::Steps { first, step } => {
                let distance = self.mul(number, Size::Const(step));
                self.add(distance, Size::Const(first))
            }
            Numbering::Table { ranks, .. } => {
                let entry = Entry::of(ranks, number);
                self.look_up(entry)
            }
        }
    }

    /// The number of this rank in a window's domain.
    pub fn domain_rank(&mut self, window: Tensor) -> Size {
        let rank = self.rank();
        let Some(domain) = self.domain(window) else { return rank };
        match &self.unit.numberings[domain] {
            &Numbering::Steps { first, step } => {
                let distance = self.sub(rank, Size::Const(first));
                match distance {
                    distance if step == 1 => distance,
                    Size::Const(distance) => Size::Const(distance / step),
                    Size::Value(distance) => {
                        let step = self.b.ins().iconst(types::I64, step);
                        Size::Value(self.b.ins().sdiv(distance, step))
                    }
                }
            }
            Numbering::Table { numbers, .. } => {
                let entry = Entry::of(numbers, rank);
                self.look_up(entry)
            }
        }
    }

    fn look_up(&mut self, entry: Entry) -> Size {
        match entry {
            Entry::Known(value) => Size::Const(value),
            Entry::At { table, index } => {
                let table = self.b.ins().iconst(ADDRESS, table);
                let offset = self.b.ins().imul_imm_s(index, size_of::<u32>() as i64);
                let address = self.b.ins().iadd(table, offset);
                // Not to be moved: a check may stand in front of it.
                Size::Value(self.b.ins().uload32(PLAIN, address, 0))
            }
        }
    }
}

/// An entry of a table, which outlives the code.
enum Entry {
    Known(i64),
    At { table: i64, index: Value },
}

impl Entry {
    fn of(table: &[u32], index: Size) -> Self {
        match index {
            // Code with a number outside is never reached.
            Size::Const(index) => {
                Self::Known(usize::try_from(index).ok().and_then(|i| table.get(i)).map_or(0, |&rank| rank.into()))
            }
            Size::Value(index) => Self::At { table: table.as_ptr() as i64, index },
        }
    }
}
