//! Compiled code, launched with the arguments that the checker takes.

use std::ffi::{CStr, c_void};

use pld::check::{self, Call, Functions, Scalar};
use pld::ir::extent::Known;
use pld::ir::program::Param;
use pld::ir::{CallbackArg, DType, OpKind, Program, ScalarType};
use pld::runtime::{Arg, Callback, CallbackContext, CompileOptions, Executable, TensorArg, World, WorldOptions};

use crate::exchanges::Kernels;

/// A function of the engine: its types are those of the program.
struct Function {
    kernels: Option<&'static Kernels>,
    tensors: Vec<DType>,
    scalars: Vec<ScalarType>,
}

/// The functions that a program calls, by name.
fn functions(program: &Program, kernels: Option<&'static Kernels>) -> Vec<(String, Box<Function>)> {
    let mut all: Vec<(String, Box<Function>)> = Vec::new();
    for op in program.ops.values() {
        let (name, args) = match &op.kind {
            OpKind::Extern { task, args, .. } => (&program.tasks[*task].name, args),
            OpKind::HostTask { name, args } => (name, args),
            _ => continue,
        };
        let mut function = Function { kernels, tensors: Vec::new(), scalars: Vec::new() };
        for arg in args {
            match *arg {
                CallbackArg::Tensor(tensor, _) => function.tensors.push(program.tensors[tensor].dtype),
                CallbackArg::Scalar(scalar) => function.scalars.push(program.scalars[scalar].ty),
            }
        }
        if all.iter().all(|(known, _)| known != name) {
            all.push((name.clone(), Box::new(function)));
        }
    }
    all
}

unsafe extern "C" fn call(context: *const CallbackContext, function: *mut c_void) -> i32 {
    // SAFETY: the context lives during the call, with as many tensors and scalars as it says; the function lives as long
    // as the executable. Ranks have one core here, so that nobody else touches the tensors meanwhile.
    unsafe {
        let (context, function) = (&*context, &*function.cast::<Function>());
        let views = std::slice::from_raw_parts(context.tensors, context.ntensors);
        let mut tensors = Vec::new();
        for (view, &dtype) in views.iter().zip(&function.tensors) {
            let shape = std::slice::from_raw_parts(view.shape, view.ndims as usize).to_vec();
            let strides = std::slice::from_raw_parts(view.strides, view.ndims as usize).to_vec();
            let len = (shape.iter().product::<i64>() * dtype.size()) as usize;
            let bytes = std::slice::from_raw_parts_mut(view.data.cast::<u8>(), len);
            tensors.push(check::View { bytes, dtype, shape, strides });
        }
        let words = std::slice::from_raw_parts(context.scalars, context.nscalars);
        let scalar = |(&word, ty): (&i64, &ScalarType)| match ty {
            ScalarType::F32 => Scalar::Float(f64::from_bits(word as u64) as f32),
            _ => Scalar::Int(word),
        };
        let scalars: Vec<Scalar> = words.iter().zip(&function.scalars).map(scalar).collect();
        let name = CStr::from_ptr(context.name).to_str().expect("names are text");
        let (rank, launch) = (context.rank, context.launch as u32);
        let call = Call { name, rank, launch, block: context.block, blocks: context.blocks };
        let call = |kernels: &Kernels| kernels.call(call, &mut tensors, &scalars);
        match function.kernels.and_then(call) {
            Some(Ok(())) | None => 0,
            Some(Err(code)) => code,
        }
    }
}

/// Launches a program once with each set of `sets`, and returns what the last one has left. Without `kernels` the
/// functions of the engine change nothing.
pub fn launch(
    program: &Program,
    nranks: u32,
    persistent: bool,
    dims: &[i64],
    sets: &[check::Arg],
    kernels: Option<&'static Kernels>,
) -> Vec<check::Arg> {
    let host = program.host.as_ref().expect("a host driver");
    let functions = functions(program, kernels);
    let callbacks = functions.iter().map(|(name, function)| {
        let user_data = std::ptr::from_ref::<Function>(function).cast_mut().cast();
        (name.clone(), Callback { function: call, user_data })
    });
    let options = CompileOptions { persistent, callbacks: callbacks.collect(), ..CompileOptions::default() };
    let world = World::create(nranks, &WorldOptions::default()).unwrap();
    let executable = Executable::compile(program, &world, &options).unwrap_or_else(|e| panic!("{e}"));
    let known = Known { world: Some(nranks.into()), dims };
    let mut last = Vec::new();
    for set in sets.chunks(host.params.len()) {
        // Ranks behind each other, in memory that is aligned.
        let mut memory: Vec<Vec<u64>> = set.iter().map(|arg| words(&bytes(arg))).collect();
        let shapes: Vec<Vec<i64>> = host
            .params
            .iter()
            .map(|param| match *param {
                Param::Tensor(tensor) => {
                    let shape = program.tensors[tensor].shape.iter();
                    shape.map(|&e| program.extents.eval(e, known).expect("sizes are known")).collect()
                }
                Param::Scalar(_) => Vec::new(),
            })
            .collect();
        let args: Vec<Arg> = host
            .params
            .iter()
            .zip(set)
            .zip(memory.iter_mut().zip(&shapes))
            .map(|((param, arg), (memory, shape))| match (*param, arg) {
                (Param::Tensor(tensor), _) => Arg::Tensor(TensorArg {
                    data: memory.as_mut_ptr().cast(),
                    dtype: program.tensors[tensor].dtype,
                    shape,
                    strides: None,
                }),
                (Param::Scalar(scalar), &check::Arg::Bits(bits)) => match program.scalars[scalar].ty {
                    ScalarType::F32 => Arg::Float(f32::from_bits(bits as u32).into()),
                    ScalarType::Bool => Arg::Bool(bits != 0),
                    _ => Arg::Int(bits as i64),
                },
                (Param::Scalar(_), arg) => panic!("{arg:?} for a scalar"),
            })
            .collect();
        executable.launch(&args).unwrap_or_else(|e| panic!("{e}"));
        last = set
            .iter()
            .zip(&memory)
            .map(|(arg, memory)| {
                let all: Vec<u8> = memory.iter().flat_map(|word| word.to_ne_bytes()).collect();
                match arg {
                    check::Arg::Ranked(parts) => {
                        let size = parts[0].len();
                        check::Arg::Ranked((0..parts.len()).map(|r| all[r * size..][..size].to_vec()).collect())
                    }
                    check::Arg::Shared(bytes) => check::Arg::Shared(all[..bytes.len()].to_vec()),
                    check::Arg::Bits(bits) => check::Arg::Bits(*bits),
                }
            })
            .collect();
    }
    last
}

fn bytes(arg: &check::Arg) -> Vec<u8> {
    match arg {
        check::Arg::Ranked(parts) => parts.concat(),
        check::Arg::Shared(bytes) => bytes.clone(),
        check::Arg::Bits(_) => Vec::new(),
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
