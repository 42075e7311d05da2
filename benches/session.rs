//! The library as the rows use it: worlds, programs from text, arguments.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pld::ir::{DType, Program, parse};
use pld::runtime::{Arg, CompileOptions, Executable, TensorArg, World, WorldOptions};
use pld::transport::shm::{Bootstrap, ShmOptions};

use crate::rank::{Bench, pin, unpin};

/// The program that `text` says.
pub fn program(text: &str) -> Result<Program, String> {
    let lines = |mistakes: Vec<pld::ir::Diagnostic>| mistakes.iter().map(|m| format!("{m}\n")).collect::<String>();
    parse::parse(text, "bench.pld").map_err(lines)
}

/// The world of this team: each process is a rank. It is pinned after it has joined, as the peers' programs are.
pub fn join(bench: &Bench) -> Result<Arc<World>, String> {
    unpin();
    let options = ShmOptions {
        bootstrap: Bootstrap::File(bench.meeting().clone()),
        rank: Some(bench.rank()),
        nranks: Some(bench.ranks()),
        deadline: Instant::now() + Duration::from_secs(10),
        agreement: Vec::new(),
    };
    let world = World::join(&options, &WorldOptions::default()).map_err(|e| e.to_string())?;
    pin(bench.rank());
    Ok(world)
}

/// A world of `nranks` threads of this process. Only this one, rank 0, is pinned.
pub fn create(nranks: u32) -> Result<Arc<World>, String> {
    unpin();
    let world = World::create(nranks, &WorldOptions::default()).map_err(|e| e.to_string())?;
    pin(0);
    Ok(world)
}

/// Compiles the program that `text` says for `world`.
pub fn compile(text: &str, world: &Arc<World>, persistent: bool) -> Result<Arc<Executable>, String> {
    let options = CompileOptions { persistent, ..CompileOptions::default() };
    Executable::compile(&program(text)?, world, &options).map_err(|e| e.to_string())
}

/// A tensor of f32 as an argument.
pub fn tensor<'a>(data: &mut [f32], shape: &'a [i64]) -> Arg<'a> {
    assert_eq!(data.len() as i64, shape.iter().product::<i64>());
    Arg::Tensor(TensorArg { data: data.as_mut_ptr().cast(), dtype: DType::F32, shape, strides: None })
}

/// One launch.
pub fn launch(executable: &Executable, arguments: &[Arg]) -> Result<(), String> {
    executable.launch(arguments).map_err(|e| e.to_string())
}
