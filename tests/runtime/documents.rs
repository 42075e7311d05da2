//! The programs of the chapters on tasks do what `docs/language.md` says.

use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pld::ir::parse::parse;
use pld::runtime::{Arg, Callback, CallbackContext, CompileOptions, Executable, View, World, WorldOptions};

use crate::programs::tensor;

const RANKS: usize = 3;

/// Calls `test` with a program of the document, compiled for ranks of one core and of several.
fn with(name: &str, options: &CompileOptions, test: impl Fn(&Arc<Executable>)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/language.md");
    let document = std::fs::read_to_string(path).unwrap();
    let begin = document.find(&format!("program {name}\n")).unwrap_or_else(|| panic!("{name} is in the document"));
    let (text, _) = document[begin..].split_once("```").unwrap();
    let program = parse(text, "language.md").unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
    for cores_per_rank in [1, 3] {
        let timeout = Duration::from_secs(20);
        let world = World::create(RANKS as u32, &WorldOptions { timeout, cores_per_rank, ..WorldOptions::default() });
        test(&Executable::compile(&program, &world.unwrap(), options).unwrap());
    }
}

fn persistent() -> CompileOptions {
    CompileOptions { persistent: true, ..CompileOptions::default() }
}

#[test]
fn graph() {
    with("graph", &CompileOptions::default(), |exe| {
        let mut x: Vec<f32> = (0..RANKS * 512).map(|i| i as f32).collect();
        let mut y = vec![0.0f32; RANKS * 512];
        let shape = [RANKS as i64, 8, 64];
        exe.launch(&[tensor(&mut x, &shape), tensor(&mut y, &shape)]).unwrap();
        for (i, &value) in y.iter().enumerate() {
            let (rank, element) = (i / 512, i % 512);
            let before = (rank + RANKS - 1) % RANKS * 512 + element;
            assert_eq!(value, if element < 256 { before as f32 } else { -(i as f32) }, "element {i}");
        }
    });
}

#[test]
fn join() {
    with("join", &CompileOptions::default(), |exe| {
        let mut x: Vec<i32> = (1..=RANKS as i32 * 3).collect();
        let (mut y, mut totals) = (vec![0; RANKS * 3], vec![0; RANKS]);
        let (rows, ranks) = ([RANKS as i64, 3], [RANKS as i64, 1]);
        exe.launch(&[tensor(&mut x, &rows), tensor(&mut y, &rows), tensor(&mut totals, &ranks)]).unwrap();
        assert_eq!(totals, [12, 30, 48]);
    });
}

#[test]
fn conditional() {
    with("conditional", &CompileOptions::default(), |exe| {
        // Only rank 1 begins with more than 1.
        let mut x: Vec<f32> = (0..RANKS * 64).map(|i| if i / 64 == 1 { i as f32 } else { -(i as f32) }).collect();
        let (mut flags, mut y) = (vec![0; RANKS * 2], vec![7.0f32; RANKS * 64]);
        let (two, row) = ([RANKS as i64, 2], [RANKS as i64, 64]);
        exe.launch(&[tensor(&mut flags, &two), tensor(&mut x, &row), tensor(&mut y, &row)]).unwrap();
        for (i, &value) in y.iter().enumerate() {
            let scaled = if i / 64 == 1 { i as f32 * 0.5 } else { 7.0 };
            assert_eq!(value, scaled + f32::from(u8::from(i % 64 == 0)), "element {i}");
        }
    });
}

#[test]
fn deferred() {
    with("deferred", &CompileOptions::default(), |exe| {
        let mut x: Vec<f32> = (0..RANKS * 64).map(|i| i as f32).collect();
        let mut y = vec![0.0f32; RANKS * RANKS * 64];
        let (row, rows) = ([RANKS as i64, 1, 64], [RANKS as i64, RANKS as i64, 64]);
        exe.launch(&[tensor(&mut x, &row), tensor(&mut y, &rows)]).unwrap();
        y.chunks(RANKS * 64).for_each(|gathered| assert_eq!(gathered, x));
    });
}

/// A quarter of the rows of x * weights * scale.
unsafe extern "C" fn gemm(context: *const CallbackContext, _: *mut c_void) -> i32 {
    // SAFETY: the launch calls with the tensors and values that the program lists: 3 matrices and an f32.
    let (context, [x, weights, y], scale) = unsafe {
        let context = &*context;
        let tensors: &[View; 3] = &*context.tensors.cast();
        let matrix = |view: &View| std::slice::from_raw_parts_mut(view.data.cast::<f32>(), 64 * *view.shape as usize);
        let [x, weights, y] = tensors;
        (context, [matrix(x), matrix(weights), matrix(y)], f64::from_bits(*context.scalars as u64))
    };
    let rows = 16 / context.blocks as usize;
    for row in context.block as usize * rows..(context.block as usize + 1) * rows {
        for column in 0..64 {
            let products = (0..64).map(|k| x[row * 64 + k] * weights[k * 64 + column]);
            y[row * 64 + column] = products.sum::<f32>() * scale as f32;
        }
    }
    0
}

unsafe extern "C" fn log_norm(context: *const CallbackContext, _: *mut c_void) -> i32 {
    // SAFETY: the context lives during the call.
    i32::from(unsafe { (*context).blocks } != 1)
}

#[test]
fn feed_forward() {
    let callback = |function| Callback { function, user_data: std::ptr::null_mut() };
    let callbacks = vec![("gemm".into(), callback(gemm)), ("log_norm".into(), callback(log_norm))];
    with("feed_forward", &CompileOptions { callbacks, ..CompileOptions::default() }, |exe| {
        // Weights that move column k to column k + rank.
        let mut x: Vec<f32> = (0..RANKS * 1024).map(|i| (i % 1024) as f32).collect();
        let mut weights = vec![0.0f32; RANKS * 4096];
        for rank in 0..RANKS {
            (0..64).for_each(|k| weights[rank * 4096 + k * 64 + (k + rank) % 64] = 1.0);
        }
        let mut y = vec![0.0f32; RANKS * 1024];
        let (rows, square) = ([RANKS as i64, 16, 64], [RANKS as i64, 64, 64]);
        let args = [tensor(&mut x, &rows), tensor(&mut weights, &square), tensor(&mut y, &rows), Arg::Float(2.0)];
        exe.launch(&args).unwrap();
        for (i, &value) in y.iter().enumerate() {
            let (row, column) = (i % 1024 / 64, i % 64);
            let sum: usize = (0..RANKS).map(|rank| 2 * (row * 64 + (column + 64 - rank) % 64)).sum();
            assert_eq!(value, sum as f32, "element {i}");
        }
    });
}

#[test]
fn phases() {
    with("phases", &persistent(), |exe| {
        let (counts_shape, x_shape) = ([RANKS as i64, 1, RANKS as i64], [RANKS as i64, 1, 4, 64]);
        let (y_shape, totals_shape) = ([RANKS as i64, 1, 1, 64], [RANKS as i64, 1]);
        for epoch in 1..=50 {
            let mut counts: Vec<i32> = (0..RANKS as i32 * RANKS as i32).map(|i| i + 100 * epoch).collect();
            let mut x: Vec<f32> = (0..RANKS * 256).map(|i| (i % 7) as f32 + epoch as f32).collect();
            let (mut y, mut totals) = (vec![0.0f32; RANKS * 64], vec![0; RANKS]);
            let args = [
                tensor(&mut counts, &counts_shape),
                tensor(&mut x, &x_shape),
                tensor(&mut y, &y_shape),
                tensor(&mut totals, &totals_shape),
                Arg::Int(epoch.into()),
            ];
            exe.launch(&args).unwrap();
            for (i, &value) in y.iter().enumerate() {
                let column: f32 = (0..RANKS * 4).map(|row| x[row * 64 + i % 64]).sum();
                assert_eq!(value, column, "epoch {epoch}, element {i}");
            }
            let of_rank = |rank: usize| -> i32 { (0..RANKS).map(|src| counts[src * RANKS + rank]).sum() };
            assert_eq!(totals, (0..RANKS).map(of_rank).collect::<Vec<_>>(), "epoch {epoch}");
        }
    });
}

#[test]
fn reuse() {
    with("reuse", &persistent(), |exe| {
        let (row, rows) = ([RANKS as i64, 1, 64], [RANKS as i64, RANKS as i64, 64]);
        for epoch in 1..=50 {
            let mut tails: Vec<f32> = (0..RANKS * 64).map(|i| (i as i32 * epoch) as f32).collect();
            let mut y = vec![0.0f32; RANKS * RANKS * 64];
            exe.launch(&[tensor(&mut tails, &row), tensor(&mut y, &rows), Arg::Int(epoch.into())]).unwrap();
            y.chunks(RANKS * 64).for_each(|all| assert_eq!(all, tails, "epoch {epoch}"));
        }
    });
}
