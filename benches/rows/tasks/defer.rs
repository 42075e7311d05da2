//! Tasks that have ended but for the cells that they wait for.

use std::time::{Duration, Instant};

use crate::rank::{Bench, cpu_time};
use crate::row::VALUE;
use crate::session::{Program, World, int, tensor};

/// The most that a rank may have.
const WAITERS: usize = 64;

const PROGRAM: &str = "
program deferred
const N = 64

entry listen(y: tensor[N, 1] i32 out, data: window[N, 1] i32, come: window[N, 1] i32, me: i32, epoch: i32) {
  if me == 0 {
    for i in 0..N {
      listen = at listen {
        defer_wait come[i, 0] >= epoch
      }
    }
    at take deps [listen] {
      t = load data[0, 0] [N, 1]
      store t -> y[0, 0]
    }
  } else {
    at send {
      for i in 0..N {
        t = full i32 [1, 1] (1000 * epoch + i)
        remote_store t -> data[i, 0] @0
        notify come[i, 0] @0 += 1
      }
    }
  }
}

host (ys: tensor[world, N, 1] i32 out, epoch: i32) {
  data_buf = alloc_window [N, 1] i32
  come_buf = alloc_window [N, 1] i32
  ranks r in 0..world {
    data = window data_buf [N, 1] i32
    come = window come_buf [N, 1] i32
    dispatch listen(ys[r], data, come, r, epoch) device r
  }
}
";

/// CPU time of a rank whose tasks all wait for cells of a peer that comes late.
pub fn cpu(bench: &Bench) -> Result<(), String> {
    let (rank, late) = (bench.rank(), Duration::from_millis(u64::from(bench.times(300))));
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(PROGRAM)?, true)?;
    let mut y = [0_i32; WAITERS];
    let argument = tensor(&mut y, &[WAITERS as i64, 1]);
    let mut epoch = 0;
    bench.sample(&mut [(VALUE, &mut || {
        if rank == 1 {
            std::thread::sleep(late);
        }
        epoch += 1;
        let (begin, used) = (Instant::now(), cpu_time());
        executable.launch(&[argument, int(epoch)])?;
        Ok(100.0 * (cpu_time() - used).as_secs_f64() / begin.elapsed().as_secs_f64())
    })])?;
    match (0..).zip(&y).find(|&(i, &value)| rank == 0 && i64::from(value) != 1000 * epoch + i) {
        None => Ok(()),
        Some((i, value)) => Err(format!("element {i} is {value}, not {}", 1000 * epoch + i)),
    }
}
