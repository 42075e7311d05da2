//! What the machine can do at all; rows without targets, to read the others by.

use crate::limits::{self, CopySpeed, Copying, Signal};
use crate::rank::Bench;
use crate::row::{Row, Unit, VALUE};

/// The rows `limit/...`.
pub fn rows() -> Vec<Row> {
    use Unit::{GigabytesPerSecond, Microseconds, Nanoseconds};
    vec![
        Row::new("limit/trip", Microseconds, |bench| trip(bench, Signal::Store)).ranks(2),
        Row::new("limit/trip_add", Microseconds, |bench| trip(bench, Signal::Add)).ranks(2).peer("shared_put_notify/8"),
        Row::new("limit/hand_off", Nanoseconds, |bench| hand_off(bench, Signal::Store)),
        Row::new("limit/hand_off_add", Nanoseconds, |bench| hand_off(bench, Signal::Add)),
        Row::new("limit/wake_up", Microseconds, wake_up).ranks(2),
        Row::new("limit/wake_nobody", Nanoseconds, wake_nobody),
        Row::new("limit/memcpy_64k", GigabytesPerSecond, |bench| copy(bench, 64 << 10, Copying::Memcpy)),
        Row::new("limit/memcpy_1m", GigabytesPerSecond, |bench| copy(bench, 1 << 20, Copying::Memcpy)),
        Row::new("limit/memcpy_64m", GigabytesPerSecond, |bench| copy(bench, 64 << 20, Copying::Memcpy)),
        Row::new("limit/non_temporal_64k", GigabytesPerSecond, |bench| copy(bench, 64 << 10, Copying::NonTemporal)),
        Row::new("limit/non_temporal_1m", GigabytesPerSecond, |bench| copy(bench, 1 << 20, Copying::NonTemporal)),
        Row::new("limit/non_temporal_64m", GigabytesPerSecond, |bench| copy(bench, 64 << 20, Copying::NonTemporal)),
    ]
}

fn trip(bench: &Bench, signal: Signal) -> Result<(), String> {
    let (board, rank, times) = (bench.board(), bench.rank(), bench.times(20_000));
    bench.sample(&mut [(VALUE, &mut || Ok(limits::trip(board, rank, times, signal)))])
}

fn hand_off(bench: &Bench, signal: Signal) -> Result<(), String> {
    let times = bench.times(20_000);
    bench.sample(&mut [(VALUE, &mut || Ok(limits::hand_off(times, 1, signal) * 1e3))])
}

fn wake_up(bench: &Bench) -> Result<(), String> {
    let (board, rank, times) = (bench.board(), bench.rank(), bench.times(400));
    bench.sample(&mut [(VALUE, &mut || Ok(limits::wake_up(board, rank, times)))])
}

fn wake_nobody(bench: &Bench) -> Result<(), String> {
    let times = bench.times(20_000);
    bench.sample(&mut [(VALUE, &mut || limits::wake_nobody(times))])
}

fn copy(bench: &Bench, bytes: usize, how: Copying) -> Result<(), String> {
    let times = bench.times(copies(bytes));
    let source = limits::source(bytes);
    let mut speed = CopySpeed::new(&source)?;
    bench.sample(&mut [(VALUE, &mut || Ok(speed.measure(how, times)))])
}

/// How many copies of `bytes` take a few milliseconds.
pub fn copies(bytes: usize) -> u32 {
    ((64 << 20) / bytes as u32).max(1)
}
