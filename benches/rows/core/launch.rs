//! What a launch costs in C and in C++, in the same program: both loops are compiled as an engine's would be.

use std::ffi::c_void;

use crate::rank::{Bench, microseconds};
use crate::row::VALUE;
use crate::session::{Arg, Program, World, tensor};

#[expect(improper_ctypes, reason = "an argument may point to a resident, which only the library looks into")]
unsafe extern "C" {
    fn pld_bench_launch_c(x: *mut c_void, tensor: *const Arg, times: u32) -> i32;
    fn pld_bench_launch_c_args(x: *mut c_void, tensor: *const Arg, times: u32) -> i32;
    fn pld_bench_launch_cpp(x: *mut c_void, tensor: *const Arg, times: u32) -> i32;
    fn pld_bench_launch_cpp_args(x: *mut c_void, tensor: *const Arg, times: u32) -> i32;
}

/// Launches so many times.
type Launches = unsafe extern "C" fn(*mut c_void, *const Arg, u32) -> i32;

const PROGRAM: &str = "
program empty

entry nothing(x: tensor[1, 2] f32 in, epoch: i32) {
  at idle {
  }
}

host (x: tensor[1, 2] f32 in, epoch: i32) {
  ranks r in 0..world {
    dispatch nothing(x, epoch) device r
  }
}
";

/// A launch that does nothing, with a tensor and a number in a list that is made once.
pub fn list(bench: &Bench) -> Result<(), String> {
    compare(bench, pld_bench_launch_c, pld_bench_launch_cpp)
}

/// The same with the arguments made for each launch.
pub fn arguments(bench: &Bench) -> Result<(), String> {
    compare(bench, pld_bench_launch_c_args, pld_bench_launch_cpp_args)
}

/// C++, with C as the limit.
fn compare(bench: &Bench, c: Launches, cpp: Launches) -> Result<(), String> {
    let times = bench.times(20_000);
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(PROGRAM)?, true)?;
    let mut x = [1.0, 2.0];
    let x = tensor(&mut x, &[1, 2]);
    let measure = |launches: Launches| {
        let time = microseconds(1, |_| {
            // SAFETY: the executable lives, and the argument is one of its program's.
            match unsafe { launches(executable.raw(), &raw const x, times) } {
                0 => Ok(()),
                status => Err(format!("a launch ended with status {status}")),
            }
        })?;
        Ok(time / f64::from(times) * 1e3)
    };
    bench.sample(&mut [("limit:c", &mut || measure(c)), (VALUE, &mut || measure(cpp))])
}
