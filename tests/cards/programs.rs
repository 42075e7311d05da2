//! What the tests launch.

use std::sync::Arc;

use pld::error::Result;
use pld::ir::DType;
use pld::ir::parse::parse;
use pld::runtime::{Arg, CompileOptions, Executable, Resident, World};

/// Every rank tells the next one its number plus `more`, `times` times, waits for `expected` from the one before, and returns
/// what it
/// has been told. `cell` says where.
pub const RING: &str = "program ring
entry tell(out: tensor[1] i32 out, told: window[4] i32, me: i32, more: i32, times: i32, expected: i32, cell: i32) {
  at tell {
    for n in 0..times {
      notify told[cell] @((me + 1) % world) += 100 * me + more
    }
    wait told[cell] >= expected
    out[0] = told[cell]
  }
}
host (outs: tensor[world, 1] i32 out, more: i32, times: i32, expected: i32, cell: i32) {
  told_buf = alloc_window [4] i32
  ranks r in 0..world {
    told = window told_buf [4] i32
    dispatch tell(outs[r], told, r, more, times, expected, cell) device r
  }
}
";

pub fn compile(text: &str, world: &Arc<World>, options: &CompileOptions) -> Result<Arc<Executable>> {
    let program = parse(text, "cards.pld").unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
    Executable::compile(&program, world, options)
}

pub fn persistent() -> CompileOptions {
    CompileOptions { persistent: true, ..CompileOptions::default() }
}

/// Numbers on the card of this process's rank.
pub struct Numbers {
    resident: Resident,
    rank: u32,
    count: usize,
}

impl Numbers {
    pub fn new(world: &World, values: &[i32]) -> Self {
        let rank = world.rank().expect("one card a process");
        let resident = Resident::create(world, rank, DType::I32, &[values.len() as i64]).unwrap();
        let numbers = Self { resident, rank, count: values.len() };
        numbers.set(values);
        numbers
    }

    pub fn arg(&self) -> Arg<'_> {
        Arg::Resident(&self.resident)
    }

    pub fn set(&self, values: &[i32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.resident.copy_in(self.rank, &bytes).unwrap();
    }

    pub fn get(&self) -> Vec<i32> {
        let mut bytes = vec![0; 4 * self.count];
        self.resident.copy_out(self.rank, &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|bytes| i32::from_ne_bytes(bytes.try_into().unwrap())).collect()
    }
}

/// Arguments of [`RING`].
pub fn ring<'a>(out: &'a Numbers, more: i64, times: i64, expected: i64, cell: i64) -> [Arg<'a>; 5] {
    [out.arg(), Arg::Int(more), Arg::Int(times), Arg::Int(expected), Arg::Int(cell)]
}

/// What a rank of `nranks` is told by one notify.
pub fn told(rank: u32, nranks: u32, more: i64) -> i64 {
    100 * i64::from((rank + nranks - 1) % nranks) + more
}
