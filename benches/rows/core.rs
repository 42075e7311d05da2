//! Puts, signals and launches: what everything else is made of.

mod launch;

use std::time::{Duration, Instant};

use super::limits::copies;
use crate::limits::{self, CopySpeed, Copying, Signal};
use crate::rank::{Bench, cpu_time, microseconds};
use crate::row::{LIMIT, Row, Target, Unit, VALUE};
use crate::session::{Program, World, int, tensor};

/// The rows `core/...`.
pub fn rows() -> Vec<Row> {
    use Unit::{GigabytesPerSecond, Microseconds, Milliseconds, Nanoseconds, Percent};
    vec![
        Row::new("core/put_notify_8", Microseconds, put_notify)
            .ranks(2)
            .peer("put_notify/8")
            .target(Target::TimesLimit(1.25))
            .target(Target::AheadOfPeers),
        Row::new("core/put_bw_64k", GigabytesPerSecond, |bench| put_bandwidth(bench, 64 << 10))
            .ranks(2)
            .peer("put_bw/65536")
            .target(Target::TimesLimit(0.95)),
        Row::new("core/put_bw_1m", GigabytesPerSecond, |bench| put_bandwidth(bench, 1 << 20))
            .ranks(2)
            .peer("put_bw/1048576")
            .target(Target::TimesLimit(0.95)),
        Row::new("core/put_bw_64m", GigabytesPerSecond, |bench| put_bandwidth(bench, 64 << 20))
            .ranks(2)
            .peer("put_bw/67108864")
            .target(Target::TimesLimit(0.9)),
        Row::new("core/launch_spmd", Nanoseconds, launch_spmd).ranks(2).target(Target::Absolute(100.0)),
        Row::new("core/launch_cpp", Nanoseconds, launch::list).ranks(2).target(Target::TimesLimit(1.1)),
        Row::new("core/launch_cpp_args", Nanoseconds, launch::arguments).ranks(2).target(Target::TimesLimit(1.1)),
        Row::new("core/launch_thread_2", Nanoseconds, launch_thread).target(Target::TimesLimit(2.5)),
        Row::new("core/launch_notify_wait", Microseconds, launch_notify_wait).ranks(2).target(Target::OverLimit(0.2)),
        Row::new("core/allreduce_256_f32", Microseconds, all_reduce)
            .ranks(2)
            .peer("allreduce/1024")
            .target(Target::AheadOfPeers),
        Row::new("core/compile_allreduce", Milliseconds, compile_all_reduce).target(Target::Absolute(5.0)),
        Row::new("core/barrier_8", Microseconds, barrier).ranks(8).peer("barrier").target(Target::AheadOfPeers),
        Row::new("core/wait_cpu", Percent, wait_cpu).ranks(2).target(Target::Absolute(5.0)),
    ]
}

const PUT_NOTIFY: &str = "
program put_notify

entry ping_pong(x: tensor[1, 2] f32 in, data: window[1, 2] f32, signal: window[1, 1] i32, me: i32, rounds: i32) {
  at exchange {
    if me == 0 {
      for i in 0..rounds {
        put data @1 <- x
        notify signal[0, 0] @1 += 1
        wait signal[0, 0] >= i + 1
      }
    } else {
      for i in 0..rounds {
        wait signal[0, 0] >= i + 1
        put data @0 <- x
        notify signal[0, 0] @0 += 1
      }
    }
  }
}

host (x: tensor[1, 2] f32 in, rounds: i32) {
  data_buf = alloc_window [1, 2] f32
  signal_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    data = window data_buf [1, 2] f32
    signal = window signal_buf [1, 1] i32
    dispatch ping_pong(x, data, signal, r, rounds) device r
  }
}
";

/// One way of a ping-pong inside one launch.
fn put_notify(bench: &Bench) -> Result<(), String> {
    let (board, rank, rounds) = (bench.board(), bench.rank(), bench.times(20_000));
    let mut value = ping_pong(bench, rounds)?;
    bench.sample(&mut [
        ("limit:store", &mut || Ok(limits::trip(board, rank, rounds, Signal::Store))),
        ("limit:add", &mut || Ok(limits::trip(board, rank, rounds, Signal::Add))),
        (VALUE, &mut value),
    ])
}

/// What measures so many rounds of it.
pub fn ping_pong(bench: &Bench, rounds: u32) -> Result<impl FnMut() -> Result<f64, String>, String> {
    let (board, rank) = (bench.board(), bench.rank());
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(PUT_NOTIFY)?, false)?;
    let mut x = vec![1.0, 2.0];
    let arguments = [tensor(&mut x, &[1, 2]), int(i64::from(rounds))];
    Ok(move || {
        let _used = (&world, &x);
        limits::align(board, rank);
        Ok(microseconds(1, |_| executable.launch(&arguments))? / f64::from(rounds) / 2.0)
    })
}

fn put_text(elements: usize) -> String {
    format!(
        "
program put_bandwidth
const N = {elements}

entry fill(x: tensor[1, N] f32 in, data: window[1, N] f32, signal: window[1, 1] i32, me: i32, times: i32, epoch: i32) {{
  at exchange {{
    if me == 0 {{
      for i in 0..times {{
        put data @1 <- x
      }}
      notify signal[0, 0] @1 += 1
    }} else {{
      wait signal[0, 0] >= epoch
    }}
  }}
}}

host (x: tensor[1, N] f32 in, times: i32, epoch: i32) {{
  data_buf = alloc_window [1, N] f32
  signal_buf = alloc_window [1, 1] i32
  ranks r in 0..world {{
    data = window data_buf [1, N] f32
    signal = window signal_buf [1, 1] i32
    dispatch fill(x, data, signal, r, times, epoch) device r
  }}
}}
"
    )
}

/// Rank 0 puts into rank 1's window again and again.
fn put_bandwidth(bench: &Bench, bytes: usize) -> Result<(), String> {
    let times = bench.times(copies(bytes));
    let mut put = stream(bench, bytes, times)?;
    // The limits copy from memory that lies in its lines as that of the puts does.
    let source = limits::source(bytes);
    if bench.rank() != 0 {
        return bench.sample(&mut [("limit:memcpy", &mut idle), ("limit:non_temporal", &mut idle), (VALUE, &mut put)]);
    }
    let speed = std::cell::RefCell::new(CopySpeed::new(&source)?);
    bench.sample(&mut [
        ("limit:memcpy", &mut || Ok(speed.borrow_mut().measure(Copying::Memcpy, times))),
        ("limit:non_temporal", &mut || Ok(speed.borrow_mut().measure(Copying::NonTemporal, times))),
        (VALUE, &mut put),
    ])
}

/// What measures the speed of `times` puts.
pub fn stream(bench: &Bench, bytes: usize, times: u32) -> Result<impl FnMut() -> Result<f64, String>, String> {
    let elements = bytes / size_of::<f32>();
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(&put_text(elements))?, true)?;
    let mut source = limits::source(bytes);
    // SAFETY: lines are floats without gaps.
    let floats: &mut [f32] = unsafe { std::slice::from_raw_parts_mut(source.as_mut_ptr().cast(), elements) };
    let x = tensor(floats, &[1, elements as i64]);
    let mut epoch = 0;
    Ok(move || {
        let _used = (&world, &source);
        epoch += 1;
        let arguments = [x, int(i64::from(times)), int(epoch)];
        let time = microseconds(1, |_| executable.launch(&arguments))?;
        Ok(bytes as f64 * f64::from(times) / time / 1e3)
    })
}

/// What the other ranks do while rank 0 measures a limit of its own.
fn idle() -> Result<f64, String> {
    Ok(0.0)
}

const EMPTY: &str = "
program empty

entry nothing() {
  at idle {
  }
}

host () {
  ranks r in 0..world {
    dispatch nothing() device r
  }
}
";

/// A launch that does nothing, by ranks that need not wait for each other.
fn launch_spmd(bench: &Bench) -> Result<(), String> {
    let times = bench.times(20_000);
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(EMPTY)?, true)?;
    bench.sample(&mut [(VALUE, &mut || Ok(microseconds(times, |_| executable.launch(&[]))? * 1e3))])
}

/// A launch that does nothing, by two threads of this process.
fn launch_thread(bench: &Bench) -> Result<(), String> {
    let times = bench.times(20_000);
    let world = World::create(2)?;
    let executable = world.compile(&Program::parse(EMPTY)?, true)?;
    bench.sample(&mut [
        ("limit:store", &mut || Ok(limits::hand_off(times, 1, Signal::Store) * 1e3)),
        ("limit:add", &mut || Ok(limits::hand_off(times, 1, Signal::Add) * 1e3)),
        (VALUE, &mut || Ok(microseconds(times, |_| executable.launch(&[]))? * 1e3)),
    ])
}

const NOTIFY_WAIT: &str = "
program notify_wait

entry exchange(x: tensor[1, 2] f32 in, data: window[1, 2] f32, signal: window[1, 1] i32, me: i32, epoch: i32) {
  at exchange {
    put data @(1 - me) <- x
    notify signal[0, 0] @(1 - me) += 1
    wait signal[0, 0] >= epoch
  }
}

host (x: tensor[1, 2] f32 in, epoch: i32) {
  data_buf = alloc_window [1, 2] f32
  signal_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    data = window data_buf [1, 2] f32
    signal = window signal_buf [1, 1] i32
    dispatch exchange(x, data, signal, r, epoch) device r
  }
}
";

/// Launches in which both ranks put, notify and wait.
fn launch_notify_wait(bench: &Bench) -> Result<(), String> {
    let (board, rank, times) = (bench.board(), bench.rank(), bench.times(20_000));
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(NOTIFY_WAIT)?, true)?;
    let mut x = [1.0, 2.0];
    let x = tensor(&mut x, &[1, 2]);
    let mut epoch = 0;
    bench.sample(&mut [
        ("limit:store", &mut || Ok(limits::trip(board, rank, times, Signal::Store))),
        ("limit:add", &mut || Ok(limits::trip(board, rank, times, Signal::Add))),
        (VALUE, &mut || {
            limits::align(board, rank);
            microseconds(times, |_| {
                epoch += 1;
                executable.launch(&[x, int(epoch)])
            })
        }),
    ])
}

const ALL_REDUCE: &str = include_str!("../../examples/pld/allreduce.pld");

/// The guide's all-reduce, launch after launch.
fn all_reduce(bench: &Bench) -> Result<(), String> {
    let (board, rank, times) = (bench.board(), bench.rank(), bench.times(20_000));
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(ALL_REDUCE)?, false)?;
    let mut input: Vec<f32> = (0..256).map(|i| (rank * 1000 + i) as f32).collect();
    let mut output = vec![0.0; 256];
    let arguments = [tensor(&mut input, &[1, 256]), tensor(&mut output, &[1, 256])];
    bench.sample(&mut [
        (LIMIT, &mut || Ok(limits::all_reduce(board, rank, times))),
        (VALUE, &mut || {
            limits::align(board, rank);
            microseconds(times, |_| executable.launch(&arguments))
        }),
    ])?;
    match output.iter().enumerate().find(|(i, sum)| **sum != (1000 + 2 * i) as f32) {
        None => Ok(()),
        Some((i, sum)) => Err(format!("element {i} of the all-reduce is {sum}, not {}", 1000 + 2 * i)),
    }
}

/// From the program to code that can be launched; verified on the way.
fn compile_all_reduce(bench: &Bench) -> Result<(), String> {
    let times = bench.times(20);
    let program = Program::parse(ALL_REDUCE)?;
    let world = World::create(2)?;
    bench.sample(&mut [(VALUE, &mut || Ok(microseconds(times, |_| world.compile(&program, false).map(drop))? / 1e3))])
}

const BARRIER: &str = "
program barrier

entry meet(signal: window[1, 1] i32, me: i32, rounds: i32) {
  at barrier {
    for i in 0..rounds {
      for peer in 0..world { notify signal[0, 0] @peer += 1 }
      wait signal[0, 0] >= (i + 1) * world
    }
  }
}

host (rounds: i32) {
  signal_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    signal = window signal_buf [1, 1] i32
    dispatch meet(signal, r, rounds) device r
  }
}
";

/// Barriers inside one launch, with more ranks than CPUs: every rank tells every rank, so that each has to get a CPU
/// only once a barrier.
fn barrier(bench: &Bench) -> Result<(), String> {
    let (board, ranks, rounds) = (bench.board(), bench.ranks(), bench.times(400));
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(BARRIER)?, false)?;
    bench.sample(&mut [
        (LIMIT, &mut || Ok(limits::barrier(board, ranks, rounds))),
        (VALUE, &mut || {
            let time = microseconds(1, |_| executable.launch(&[int(i64::from(rounds))]))?;
            Ok(time / f64::from(rounds))
        }),
    ])
}

/// CPU time of a rank whose peer comes late.
fn wait_cpu(bench: &Bench) -> Result<(), String> {
    let (rank, late) = (bench.rank(), Duration::from_millis(u64::from(bench.times(1000))));
    let world = World::join(bench)?;
    let executable = world.compile(&Program::parse(NOTIFY_WAIT)?, true)?;
    let mut x = [1.0, 2.0];
    let x = tensor(&mut x, &[1, 2]);
    let mut epoch = 0;
    bench.sample(&mut [(VALUE, &mut || {
        if rank == 1 {
            std::thread::sleep(late);
        }
        epoch += 1;
        let (begin, used) = (Instant::now(), cpu_time());
        executable.launch(&[x, int(epoch)])?;
        Ok(100.0 * (cpu_time() - used).as_secs_f64() / begin.elapsed().as_secs_f64())
    })])
}
