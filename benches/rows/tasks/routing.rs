//! The routing loop of a dispatch: scalars and a small array, nothing else.

use super::moe::{EXPERTS, ROUTES, expert};
use crate::rank::{Bench, microseconds};
use crate::row::{LIMIT, VALUE};
use crate::session::{Program, World, int, tensor};

const TOKENS: usize = 128;

/// A number for each route of each token.
type Table = [[i32; ROUTES]; TOKENS];

unsafe extern "C" {
    /// As `routing.c` has it.
    fn route(expert: *const Table, peer: *mut Table, row: *mut Table, me: i32);
}

const PROGRAM: &str = "
program routing
const T = 128
const K = 8
const L = 16
const R = 2

entry route(expert: tensor[T, K] i32 in, peer: tensor[T, K] i32 out, row: tensor[T, K] i32 out, me: i32, rounds: i32) {
  at route {
    for round in 0..rounds {
      next = array i32 [R * L] = 0
      for t in 0..T {
        for k in 0..K {
          e = expert[t, k]
          n = next[e]
          next[e] = n + 1
          peer[t, k] = e / L
          row[t, k] = (e % L * R + me) * T + n
        }
      }
    }
  }
}

host (expert: tensor[T, K] i32 in, peer: tensor[T, K] i32 out, row: tensor[T, K] i32 out, me: i32, rounds: i32) {
  ranks r in 0..world {
    dispatch route(expert, peer, row, me, rounds) device r
  }
}
";

/// The loop of [`PROGRAM`], many times in a launch, and the same in C.
pub fn loops(bench: &Bench) -> Result<(), String> {
    const RANKS: u32 = 2;
    const ME: u32 = 1;
    let rounds = bench.times(4_000);
    let world = World::create(1)?;
    let executable = world.compile(&Program::parse(PROGRAM)?, true)?;
    let mut experts: Table = std::array::from_fn(|t| std::array::from_fn(|k| expert(RANKS, ME, TOKENS, t, k) as i32));
    let tables = || ([[-1; ROUTES]; TOKENS], [[-1; ROUTES]; TOKENS]);
    let (mut in_c, mut here): ((Table, Table), (Table, Table)) = (tables(), tables());
    let shape = [TOKENS as i64, ROUTES as i64];
    let arguments = [
        tensor(experts.as_flattened_mut(), &shape),
        tensor(here.0.as_flattened_mut(), &shape),
        tensor(here.1.as_flattened_mut(), &shape),
        int(i64::from(ME)),
        int(i64::from(rounds)),
    ];
    bench.sample(&mut [
        (LIMIT, &mut || {
            microseconds(rounds, |_| {
                // SAFETY: all tables are as large as the function has them, and nobody else uses them meanwhile.
                unsafe { route(&experts, &mut in_c.0, &mut in_c.1, ME as i32) };
                Ok(())
            })
        }),
        (VALUE, &mut || Ok(microseconds(1, |_| executable.launch(&arguments))? / f64::from(rounds))),
    ])?;
    let right = in_c == here && here.0[1][1] as usize == expert(RANKS, ME, TOKENS, 1, 1) / EXPERTS;
    right.then_some(()).ok_or_else(|| "the loop in C and the program route differently".to_owned())
}
