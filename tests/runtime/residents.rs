//! Tensors that live with the ranks.

use std::ops::Range;

use pld::error::{ErrorKind, Result};
use pld::ir::DType;
use pld::runtime::{Arg, Resident, World, WorldOptions};

use crate::programs::*;
use crate::ranks::{Job, Join, Outcome, Rank, Scenario};

pub const SCENARIOS: &[(&str, Scenario)] = &[("residents", residents_rank)];

/// `f = a + b * by[0]`; `by` is not sliced.
const ADD: &str = "program add
entry e(a: tensor[1, 16] i32 in, b: tensor[1, 16] i32 in, by: tensor[1] i32 in, f: tensor[1, 16] i32 out) {
  at add_step {
    x = load a[0, 0] [1, 16]
    y = load b[0, 0] [1, 16]
    times = by[0]
    scaled = mul y, times
    z = add x, scaled
    store z -> f[0, 0]
  }
}
host (a: tensor[world, 1, 16] i32 in, b: tensor[world, 1, 16] i32 in, by: tensor[1] i32 in,
      f: tensor[world, 1, 16] i32 out) {
  ranks r in 0..world { dispatch e(a[r], b[r], by, f[r]) device r }
}
";

/// Adds to one row of a cache.
const PREFILL: &str = "program prefill
entry fill_row(x: tensor[1, 16] i32 in, cache: tensor[8, 16] i32 inout, row: i32) {
  at fill_step {
    t = load x[0, 0] [1, 16]
    old = load cache[row, 0] [1, 16]
    new = add old, t
    store new -> cache[row, 0]
  }
}
host (x: tensor[world, 1, 16] i32 in, cache: tensor[world, 8, 16] i32 inout, row: i32) {
  ranks r in 0..world { dispatch fill_row(x[r], cache[r], row) device r }
}
";

/// Adds up the first rows of a cache.
const DECODE: &str = "program decode
entry sum_rows(cache: tensor[8, 16] i32 in, out: tensor[1, 16] i32 out, rows: i32) {
  at sum_step {
    acc = full i32 [1, 16] 0
    for row in 0..rows {
      t = load cache[row, 0] [1, 16]
      acc = add acc, t
    }
    store acc -> out[0, 0]
  }
}
host (cache: tensor[world, 8, 16] i32 in, out: tensor[world, 1, 16] i32 out, rows: i32) {
  ranks r in 0..world { dispatch sum_rows(cache[r], out[r], rows) device r }
}
";

fn local(world: &World) -> Range<u32> {
    world.rank().map_or(0..world.nranks(), |rank| rank..rank + 1)
}

/// A value of every rank of this process and position, as one tensor.
fn values(world: &World, value: impl Fn(u32, usize) -> i32) -> Vec<i32> {
    local(world).flat_map(|rank| (0..16).map(|i| value(rank, i)).collect::<Vec<_>>()).collect()
}

/// The shape of a host tensor of rows, one a rank.
fn shape(world: &World) -> Vec<i64> {
    if world.rank().is_some() { vec![1, 16] } else { vec![world.nranks().into(), 1, 16] }
}

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn read(resident: &Resident, rank: u32, count: usize) -> Result<Vec<i32>> {
    let mut bytes = vec![0; count * 4];
    resident.copy_out(rank, &mut bytes)?;
    Ok(bytes.chunks(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap())).collect())
}

fn weight(rank: u32, i: usize) -> i32 {
    10 + rank as i32 * 100 + i as i32
}

/// E9, E10: several runs in flight that share resident weights, whose source changes after it was copied.
fn weights(world: &World, add: &std::sync::Arc<pld::runtime::Executable>) -> Result<()> {
    let b = Resident::create_stacked(world, DType::I32, &[1, 16])?;
    let by = Resident::create(world, local(world).start, DType::I32, &[1])?;
    for rank in local(world) {
        assert_eq!(read(&b, rank, 16)?, [0; 16], "it begins zeroed");
        let mut source = bytes(&(0..16).map(|i| weight(rank, i)).collect::<Vec<_>>());
        b.copy_in(rank, &source)?;
        source.fill(0);
    }
    by.copy_in(local(world).start, &3i32.to_ne_bytes())?;
    let shape = shape(world);
    let mut inputs = [2, 7, 11].map(|a| values(world, |rank, i| a * 1000 + rank as i32 + i as i32));
    let mut outputs = [(); 3].map(|()| vec![-1; inputs[0].len()]);
    let submitted: Result<Vec<_>> = inputs
        .iter_mut()
        .zip(&mut outputs)
        .map(|(a, f)| add.submit(&[tensor(a, &shape), Arg::Resident(&b), Arg::Resident(&by), tensor(f, &shape)]))
        .collect();
    let runs = submitted?;
    // The runs keep the memory.
    drop(by);
    runs.iter().try_for_each(|run| run.wait(None))?;
    for (a, f) in [2, 7, 11].into_iter().zip(&outputs) {
        assert_eq!(*f, values(world, |rank, i| a * 1000 + rank as i32 + i as i32 + 3 * weight(rank, i)));
    }
    for rank in local(world) {
        assert_eq!(read(&b, rank, 16)?, (0..16).map(|i| weight(rank, i)).collect::<Vec<_>>(), "read back");
    }
    Ok(())
}

/// E12: residents are made and dropped while programs go on; the same launch with one and without.
fn lifetimes(world: &World, add: &pld::runtime::Executable) -> Result<()> {
    let shape = shape(world);
    for round in 0..20 {
        let b = Resident::create_stacked(world, DType::I32, &[1, 16])?;
        let f = Resident::create_stacked(world, DType::I32, &[1, 16])?;
        for rank in local(world) {
            b.copy_in(rank, &bytes(&(0..16).map(|i| weight(rank, i) + round).collect::<Vec<_>>()))?;
        }
        let mut a = values(world, |rank, i| rank as i32 * 7 + i as i32);
        let mut by = [2];
        let args = [tensor(&mut a, &shape), Arg::Resident(&b), tensor(&mut by, &[1]), Arg::Resident(&f)];
        (0..3).try_for_each(|_| add.launch(&args))?;
        for rank in local(world) {
            let right = (0..16).map(|i| rank as i32 * 7 + i as i32 + 2 * (weight(rank, i) + round));
            assert_eq!(read(&f, rank, 16)?, right.collect::<Vec<_>>(), "round {round}");
        }
        let (mut host_b, mut host_f) = (values(world, |rank, i| rank as i32 - i as i32), vec![-1; a.len()]);
        let args =
            [tensor(&mut a, &shape), tensor(&mut host_b, &shape), tensor(&mut by, &[1]), tensor(&mut host_f, &shape)];
        add.launch(&args)?;
        assert_eq!(host_f, values(world, |rank, i| rank as i32 * 9 - i as i32));
    }
    Ok(())
}

/// E13: one program writes a resident cache, another one reads it again and again.
fn shared_cache(world: &std::sync::Arc<World>) -> Result<()> {
    let (prefill, decode) = (compile(PREFILL, world, false)?, compile(DECODE, world, false)?);
    let cache = Resident::create_stacked(world, DType::I32, &[8, 16])?;
    let shape = shape(world);
    let element = |rank: u32, row: i64, i: usize| rank as i32 * 1000 + row as i32 * 50 + i as i32;
    for row in 0..8 {
        let mut x = values(world, |rank, i| element(rank, row, i));
        prefill.launch(&[tensor(&mut x, &shape), Arg::Resident(&cache), Arg::Int(row)])?;
        for _ in 0..10 {
            let mut out = vec![-1; x.len()];
            decode.launch(&[Arg::Resident(&cache), tensor(&mut out, &shape), Arg::Int(row + 1)])?;
            assert_eq!(out, values(world, |rank, i| (0..=row).map(|row| element(rank, row, i)).sum()));
        }
    }
    Ok(())
}

fn all(world: &std::sync::Arc<World>) -> Result<()> {
    let add = compile(ADD, world, false)?;
    weights(world, &add)?;
    lifetimes(world, &add)?;
    shared_cache(world)
}

#[test]
fn residents_of_threads() {
    for nranks in [1, 2, 4] {
        all(&World::create(nranks, &WorldOptions::default()).unwrap()).unwrap();
    }
}

#[test]
fn residents_of_processes() {
    assert_eq!(Job::start("residents", 2).outcomes(), vec![Outcome::Done("fine".into()); 2]);
}

fn residents_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    all(&world)?;
    // In a process that is one rank, its tensor is all that it passes for a parameter that is sliced.
    let add = compile(ADD, &world, false)?;
    let own = || Resident::create(&world, me.rank(), DType::I32, &[1, 16]);
    let (a, f, mut by) = (own()?, own()?, [1]);
    a.copy_in(me.rank(), &bytes(&(0..16).map(|i| weight(me.rank(), i)).collect::<Vec<_>>()))?;
    add.launch(&[Arg::Resident(&a), Arg::Resident(&a), tensor(&mut by, &[1]), Arg::Resident(&f)])?;
    assert_eq!(read(&f, me.rank(), 16)?, (0..16).map(|i| 2 * weight(me.rank(), i)).collect::<Vec<_>>());
    let error = Resident::create(&world, 1 - me.rank(), DType::I32, &[1]).unwrap_err();
    let (other, me) = (1 - me.rank(), me.rank());
    let right = format!("rank {other} is not one that this process drives: those are {me} to {me}");
    assert_eq!(error.message, right);
    Ok("fine".into())
}

#[test]
fn mistakes_are_named() {
    let world = World::create(2, &WorldOptions::default()).unwrap();
    let other = World::create(2, &WorldOptions::default()).unwrap();
    let add = compile(ADD, &world, false).unwrap();
    let stacked = |world: &World, shape: &[i64]| Resident::create_stacked(world, DType::I32, shape).unwrap();
    let (right, foreign, wrong) = (stacked(&world, &[1, 16]), stacked(&other, &[1, 16]), stacked(&world, &[1, 17]));
    let one = Resident::create(&world, 1, DType::I32, &[1, 16]).unwrap();
    let floats = Resident::create_stacked(&world, DType::F32, &[1, 16]).unwrap();
    let (mut a, mut by, mut f) = ([1; 32], [1], [-1; 32]);
    let shape = [2, 1, 16];
    let mut refused = |index: usize, arg: Arg, message: &str| {
        let (a, f) = (tensor(&mut a, &shape), tensor(&mut f, &shape));
        let mut args = [a, Arg::Resident(&right), tensor(&mut by, &[1]), f];
        args[index] = arg;
        let error = add.launch(&args).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidArgument, message));
    };
    refused(1, Arg::Resident(&foreign), "argument b is a resident of another world");
    refused(1, Arg::Resident(&one), "argument b is a resident of one rank, but is sliced by rank");
    refused(2, Arg::Resident(&right), "argument by is a stacked resident, but is not sliced by rank");
    refused(1, Arg::Resident(&wrong), "argument b has the extent 17 in dimension 1, not 16 by the program");
    refused(1, Arg::Resident(&floats), "argument b is f32, not i32");
    refused(3, Arg::Resident(&right), "argument f, which is written, overlaps argument b by 64 bytes");

    let error = |result: Result<Resident>| result.unwrap_err().message;
    let rank = error(Resident::create(&world, 2, DType::I32, &[1]));
    assert_eq!(rank, "rank 2 is not one that this process drives: those are 0 to 1");
    let extent = error(Resident::create(&world, 0, DType::I32, &[4, -1]));
    assert_eq!(extent, "the extent in dimension 1 is -1");
    let size = error(Resident::create_stacked(&world, DType::I32, &[i64::MAX, 4]));
    assert_eq!(size, "the shape [9223372036854775807, 4] exceeds the address space");
    let memory = Resident::create_stacked(&world, DType::I32, &[1 << 50]).unwrap_err();
    assert_eq!(memory.kind, ErrorKind::NoMemory);
    assert_eq!(right.copy_in(0, &[1; 63]).unwrap_err().message, "a copy of 63 bytes, but the shard has 64");
    assert_eq!(right.copy_in(2, &[1; 64]).unwrap_err().message, "this resident has no shard of rank 2");
    assert_eq!(one.copy_out(0, &mut [1; 64]).unwrap_err().message, "this resident has no shard of rank 0");

    world.close().unwrap();
    assert_eq!(right.copy_in(0, &[1; 64]).unwrap_err().kind, ErrorKind::InvalidState);
    assert_eq!(right.copy_out(0, &mut [1; 64]).unwrap_err().kind, ErrorKind::InvalidState);
    assert_eq!(Resident::create_stacked(&world, DType::I32, &[1]).unwrap_err().kind, ErrorKind::InvalidState);
}

/// A run uses its residents until it has ended; then they are free at once.
#[test]
fn a_resident_in_use_is_not_copied() {
    let world = World::create(2, &WorldOptions::default()).unwrap();
    let exe = compile(MOE, &world, false).unwrap();
    let sums = Resident::create_stacked(&world, DType::I64, &[1]).unwrap();
    let wait_for = |count| [Arg::Resident(&sums), Arg::Int(1), Arg::Int(2), Arg::Int(count), Arg::Bool(false)];
    for _ in 0..200 {
        exe.submit(&wait_for(1)).unwrap().wait(None).unwrap();
        sums.copy_in(1, &[7; 8]).unwrap();
    }
    let mut bytes = [0; 8];
    let endless = exe.submit(&wait_for(2)).unwrap();
    let error = sums.copy_out(0, &mut bytes).unwrap_err();
    let right = "a resident that launches under way use (1 times) cannot be copied";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Busy, right));
    assert_eq!(sums.copy_in(1, &bytes).unwrap_err().kind, ErrorKind::Busy);
    world.abort(1).unwrap();
    assert_eq!(endless.wait(None).unwrap_err().kind, ErrorKind::Aborted);
    sums.copy_out(0, &mut bytes).unwrap();
    assert_eq!(i64::from_ne_bytes(bytes), (31 * 31) + 1, "what was computed before the wait");
}

/// A part is never another rank's: the verifier refuses a program that passes it on.
#[test]
fn parts_are_not_permuted() {
    let world = World::create(2, &WorldOptions::default()).unwrap();
    let permuted = ADD.replace("b[r]", "b[1 - r]");
    let error = compile(&permuted, &world, false).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Verify);
    assert!(error.message.contains("PLD-V070"), "{error}");
}
