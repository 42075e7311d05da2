//! Programs for the checker: where they stand, their inputs, and the engine's functions that they call.

use std::path::Path;

use half::{bf16, f16};
use pld::check::{Arg, Call, Functions, Scalar, View};
use pld::ir::extent::Known;
use pld::ir::op::OpKind;
use pld::ir::parse::parse;
use pld::ir::program::Param;
use pld::ir::{DType, Program};

/// The documents that teach the language.
pub const DOCUMENTS: [&str; 2] = ["docs/language.md", "docs/collectives.md"];

/// A file of this package.
pub fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The text of a program of these documents.
pub fn document(name: &str) -> String {
    let documents = DOCUMENTS.map(file).concat();
    let (_, rest) = documents.split_once(&format!("```pld\nprogram {name}")).unwrap_or_else(|| panic!("no {name}"));
    let (text, _) = rest.split_once("```").expect("a block ends");
    format!("program {name}{text}")
}

/// A program with other sizes: each of `sizes` takes the place of a constant.
pub fn sized(text: &str, sizes: &[(&str, i64)]) -> String {
    sizes.iter().fold(text.to_owned(), |text, (name, value)| {
        let (head, rest) = text.split_once(&format!("const {name} = ")).unwrap_or_else(|| panic!("no const {name}"));
        let (_, tail) = rest.split_once('\n').expect("a line ends");
        format!("{head}const {name} = {value}\n{tail}")
    })
}

pub fn parsed(text: &str, name: &str) -> Program {
    parse(text, name).unwrap_or_else(|mistakes| panic!("{}\n{text}", mistakes[0]))
}

/// The value of an element of a host tensor, by name, launch, rank and place; none where any will do.
pub type Values = fn(nranks: u32, name: &str, launch: u32, rank: u32, at: i64) -> Option<f64>;

/// Any values will do.
pub fn any(_: u32, _: &str, _: u32, _: u32, _: i64) -> Option<f64> {
    None
}

/// Arguments of all launches: small numbers that differ between arguments, launches, ranks and places, where `values` has no
/// others. An integer is the number of the launch.
pub fn inputs(program: &Program, nranks: u32, dims: &[i64], launches: u32, values: Values) -> Vec<Arg> {
    let host = program.host.as_ref().expect("a host driver");
    let known = Known { world: Some(nranks.into()), dims };
    let in_parts = |tensor| {
        let slices = program.ops.values().filter_map(|op| match op.kind {
            OpKind::SliceRank { src, .. } => Some(src),
            _ => None,
        });
        slices.into_iter().any(|src| src == tensor)
    };
    let mut args = Vec::new();
    for launch in 1..=launches {
        args.extend(host.params.iter().zip(0..).map(|(param, number)| match *param {
            Param::Scalar(scalar) if program.scalars[scalar].ty.dtype() == DType::F32 => {
                Arg::Bits(2.0f32.to_bits().into())
            }
            Param::Scalar(scalar) if program.scalars[scalar].ty.dtype() == DType::Bool => Arg::Bits(1),
            Param::Scalar(_) => Arg::Bits(launch.into()),
            Param::Tensor(tensor) => {
                let data = &program.tensors[tensor];
                let name = data.name.as_deref().expect("parameters have names");
                let part = |rank: u32, extents: &[pld::ir::Extent]| -> Vec<u8> {
                    let extents = extents.iter().map(|&e| program.extents.eval(e, known).expect("sizes are known"));
                    let element = |i: i64| {
                        let any = (7 * i + 3 * i64::from(rank) + 5 * i64::from(launch) + 11 * number) % 23;
                        values(nranks, name, launch, rank, i).unwrap_or(any as f64)
                    };
                    (0..extents.product()).flat_map(|i| bytes(element(i), data.dtype)).collect()
                };
                match in_parts(tensor) {
                    true => Arg::Ranked((0..nranks).map(|rank| part(rank, &data.shape[1..])).collect()),
                    false => Arg::Shared(part(0, &data.shape)),
                }
            }
        }));
    }
    args
}

fn bytes(value: f64, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::F32 => (value as f32).to_ne_bytes().into(),
        DType::F16 => f16::from_f64(value).to_ne_bytes().into(),
        DType::BF16 => bf16::from_f64(value).to_ne_bytes().into(),
        DType::Bool => vec![u8::from(value as i64 % 2 == 1)],
        _ => (value as i64).to_ne_bytes()[..dtype.size() as usize].into(),
    }
}

/// Routing tables, and what belongs to them, of `moe_dispatch_combine` with two experts a rank: the experts of a token
/// are different ones, rank 0 has all tokens and the others have one less.
pub fn routing<const T: i64, const TOPK: i64>(nranks: u32, name: &str, launch: u32, rank: u32, at: i64) -> Option<f64> {
    let (experts, launch, rank) = (i64::from(nranks) * 2, i64::from(launch), i64::from(rank));
    let value = match name {
        "indices" => {
            let (token, route) = (at / TOPK, at % TOPK);
            (token * 3 + rank + launch + route) % experts
        }
        "tokens" => T - (rank + launch - 1).min(1),
        _ => return None,
    };
    Some(value as f64)
}

/// The functions that the programs call. They return 1 if what they are told makes no sense.
pub struct Kernels;

impl Functions for Kernels {
    fn call(&self, call: Call, tensors: &mut [View], scalars: &[Scalar]) -> Option<Result<(), i32>> {
        let Call { name, block, blocks, .. } = call;
        let done = match name {
            "expert" => expert(tensors, block, blocks),
            "gemm" => gemm(tensors, scalars, block, blocks),
            "log_norm" => Some(()),
            _ => return None,
        };
        Some(done.ok_or(1))
    }
}

fn place<const N: usize>(view: &View, index: i64) -> Option<std::ops::Range<usize>> {
    let inside = (0..view.shape.iter().product()).contains(&index);
    let begin = usize::try_from(index).ok()? * N;
    inside.then_some(begin..begin + N)
}

fn f32_at(view: &View, index: i64) -> Option<f32> {
    Some(f32::from_ne_bytes(view.bytes[place::<4>(view, index)?].try_into().unwrap()))
}

fn i32_at(view: &View, index: i64) -> Option<i64> {
    Some(i32::from_ne_bytes(view.bytes[place::<4>(view, index)?].try_into().unwrap()).into())
}

fn i8_at(view: &View, index: i64) -> Option<i8> {
    Some(view.bytes[place::<1>(view, index)?.start] as i8)
}

/// An expert's answers to the rows in its lanes.
fn expert(tensors: &mut [View], e: i64, n_local: i64) -> Option<()> {
    let [x, scale, weight, counts, first, y] = tensors else { return None };
    let (d, nranks, pad) = (x.shape[1], counts.shape[0], scale.shape[1]);
    let lane = x.shape[0] / nranks / n_local;
    for src in 0..nranks {
        for i in 0..i32_at(counts, src * n_local + e)? {
            if i >= lane {
                return None;
            }
            let (row, to) = ((e * nranks + src) * lane + i, i32_at(first, e * nranks + src)? + i);
            for column in 0..d {
                let x = f32::from(i8_at(x, row * d + column)?);
                let answer = x * f32_at(scale, row * pad)? * f32_at(weight, row * pad)? * (1.0 + e as f32 * 0.25);
                let place = place::<2>(y, to * d + column)?;
                y.bytes[place].copy_from_slice(&bf16::from_f32(answer).to_ne_bytes());
            }
        }
    }
    Some(())
}

/// One block's rows of x * weights, times the scalar if there is one.
fn gemm(tensors: &mut [View], scalars: &[Scalar], block: i64, blocks: i64) -> Option<()> {
    let [x, weights, y] = tensors else { return None };
    let (rows, inner, columns) = (x.shape[0] / blocks, x.shape[1], weights.shape[1]);
    let scale = match scalars {
        [] => 1.0,
        [Scalar::Float(scale)] => *scale,
        _ => return None,
    };
    for row in block * rows..(block + 1) * rows {
        for column in 0..columns {
            let mut sum = 0.0;
            for k in 0..inner {
                sum += f32_at(x, row * inner + k)? * f32_at(weights, k * columns + column)?;
            }
            let place = place::<4>(y, row * columns + column)?;
            y.bytes[place].copy_from_slice(&(sum * scale).to_ne_bytes());
        }
    }
    Some(())
}
