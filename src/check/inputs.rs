//! Arguments of the host driver for every launch: what the caller gives, and what is made up.

use super::Arg;
use super::value::{Value, cast, encode};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::extent::{ExtentData, Known};
use crate::ir::{DType, Dim, Extent, Parameter, ParameterKind, Program, ScalarType};
use crate::random::mix;

/// The extent of a dimension that no given tensor binds.
pub const UNBOUND_EXTENT: i64 = 4;

/// What runs take: see [`super::Options`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// Values of the dynamic dimensions, by index.
    pub dims: Vec<i64>,
    /// A set of arguments for each launch, one behind the other.
    pub args: Vec<Arg>,
}

/// How tensors are filled that are not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Element `i` of rank `r` in launch `n` is `(r + 1) * 100003 + i + (n - 1) * 1000003`, wrapped to the type; of a
    /// float type, the remainder by a small prime, so that sums of some elements are exact.
    Iota,
    /// By the seed; floats are small integers, as above.
    Random,
}

/// An argument as the caller has it.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// None: it is made up.
    Generated,
    /// A tensor; the whole with its leading rank axis, if it is sliced by rank.
    Tensor(GivenTensor<'a>),
    /// One part a rank of a tensor that is sliced by rank.
    Parts(&'a [GivenTensor<'a>]),
    /// For an `i32` or `i64`.
    Int(i64),
    /// For an `f32`.
    Float(f64),
    /// For a `bool`.
    Bool(bool),
}

/// A tensor of the caller: row-major and packed.
#[derive(Clone, Copy, Debug)]
pub struct GivenTensor<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: &'a [i64],
    /// Its elements; without them only the shape counts.
    pub bytes: Option<&'a [u8]>,
}

/// The inputs of all launches. `given` is empty, one set of arguments for all launches, or a set for each of them. What
/// is not given is made up: tensors by `fill`, integers are the number of the launch, floats 1, bools true. A dimension
/// that no given tensor binds is [`UNBOUND_EXTENT`].
///
/// Errors: `InvalidArgument` if what is given is not what the host driver takes, `NoMemory`.
pub fn inputs(program: &Program, nranks: u32, launches: u32, fill: Fill, seed: u64, given: &[Given]) -> Result<Inputs> {
    let params = program.parameters();
    let sets = given.len().checked_div(params.len()).unwrap_or(0);
    if given.len() != sets * params.len() || !(sets <= 1 || sets == launches as usize) {
        return Err(wrong_count(&params, launches, given.len()));
    }
    let of_launch = |launch: u32| match sets {
        0 => &[][..],
        1 => given,
        _ => &given[launch as usize * params.len()..][..params.len()],
    };
    let in_launch = |launch: u32, error: Error| match sets {
        0 | 1 => error,
        _ => Error::new(error.kind, format!("launch {}: {error}", launch + 1)),
    };
    let mut dims = Dims { program, nranks, values: vec![None; program.extents.dims.len()] };
    for launch in 0..launches {
        for (param, given) in params.iter().zip(of_launch(launch)) {
            dims.bind(param, given).map_err(|e| in_launch(launch, e))?;
        }
    }
    let dims = dims.values.into_iter().map(|value| value.unwrap_or(UNBOUND_EXTENT)).collect();
    let mut inputs = Inputs { dims, args: Vec::new() };
    for launch in 0..launches {
        for (index, param) in params.iter().enumerate() {
            let given = of_launch(launch).get(index).copied().unwrap_or(Given::Generated);
            let filler = Filler { fill, seed, launch, param: index };
            let arg = arg(param, program, nranks, &inputs.dims, given, filler).map_err(|e| in_launch(launch, e))?;
            inputs.args.push(arg);
        }
    }
    Ok(inputs)
}

/// The dynamic dimensions while they are bound.
struct Dims<'a> {
    program: &'a Program,
    nranks: u32,
    values: Vec<Option<i64>>,
}

impl Dims<'_> {
    /// Binds the dimensions that are extents of a given tensor.
    fn bind(&mut self, param: &Parameter, given: &Given) -> Result<()> {
        let ParameterKind::Tensor { shape, sliced, .. } = &param.kind else { return Ok(()) };
        match given {
            Given::Tensor(tensor) => self.bind_shape(param, shape, (*sliced).into(), tensor.shape),
            Given::Parts(parts) => parts.iter().try_for_each(|part| self.bind_shape(param, shape, 0, part.shape)),
            _ => Ok(()),
        }
    }

    fn bind_shape(&mut self, param: &Parameter, shape: &[Extent], skip: usize, given: &[i64]) -> Result<()> {
        for (axis, (&extent, &value)) in shape.iter().zip(given.iter().skip(skip)).enumerate() {
            let Some(dim) = self.dynamic(extent) else { continue };
            if value < 0 {
                let message = format!("argument {} has the extent {value} in dimension {}", param.name, axis + skip);
                return Err(Error::invalid(message));
            }
            match &mut self.values[dim.as_u32() as usize] {
                Some(bound) if *bound != value => {
                    let why = format!("{bound} as {} is bound before", self.program.extents.dims[dim].name);
                    return Err(wrong_extent(param, axis + skip, value, &why));
                }
                bound => *bound = Some(value),
            }
        }
        Ok(())
    }

    /// The dimension that an extent is, if arguments bind it.
    fn dynamic(&self, extent: Extent) -> Option<Dim> {
        let extents = &self.program.extents;
        let known = Known { world: Some(self.nranks.into()), dims: &[] };
        match extents.get(extent) {
            ExtentData::Dim(dim) if extents.eval(extent, known).is_none() && extents.dims[dim].value.is_none() => {
                Some(dim)
            }
            _ => None,
        }
    }
}

/// The argument of one launch.
fn arg(param: &Parameter, program: &Program, nranks: u32, dims: &[i64], given: Given, filler: Filler) -> Result<Arg> {
    let (dtype, shape, sliced) = match &param.kind {
        ParameterKind::Scalar(ty) => return scalar(param, *ty, given, filler.launch).map(Arg::Bits),
        ParameterKind::Tensor { dtype, shape, sliced, .. } => (*dtype, shape, *sliced),
    };
    let known = Known { world: Some(nranks.into()), dims };
    let shape = shape.iter().map(|&extent| program.extents.eval(extent, known).filter(|&value| value >= 0));
    let mut shape: Vec<i64> = shape.collect::<Option<_>>().ok_or_else(|| no_size(param))?;
    if shape.is_empty() {
        shape.push(1);
    }
    let sizes = shape.iter().map(|&extent| extent as usize);
    let count = sizes.clone().try_fold(1usize, usize::checked_mul).ok_or_else(|| no_size(param))?;
    let size = count.checked_mul(dtype.size() as usize).ok_or_else(|| no_size(param))?;
    let ranks = if sliced { nranks as usize } else { 1 };
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for rank in 0..ranks {
        let given = match given {
            Given::Generated => None,
            Given::Tensor(tensor) => {
                let leading = sliced.then_some(i64::from(nranks));
                check(param, dtype, leading, &shape, size * ranks, &tensor)?;
                tensor.bytes.map(|bytes| &bytes[rank * size..][..size])
            }
            Given::Parts(_) if !sliced => {
                let message = format!("argument {} is a list of parts, but is not sliced by rank", param.name);
                return Err(Error::invalid(message));
            }
            Given::Parts(given) if given.len() != ranks => {
                let message = format!("argument {} has {} parts for {ranks} ranks", param.name, given.len());
                return Err(Error::invalid(message));
            }
            Given::Parts(given) => {
                check(param, dtype, None, &shape, size, &given[rank])?;
                given[rank].bytes
            }
            Given::Int(_) | Given::Float(_) | Given::Bool(_) => {
                return Err(Error::invalid(format!("argument {} is a scalar, not a {dtype} tensor", param.name)));
            }
        };
        let mut part = Vec::new();
        let full = |_| Error::new(ErrorKind::NoMemory, format!("argument {} has {size} bytes a rank", param.name));
        part.try_reserve_exact(size).map_err(full)?;
        match given {
            Some(bytes) => part.extend_from_slice(bytes),
            None => (0..count).for_each(|position| filler.element(dtype, rank, position, &mut part)),
        }
        parts.push(part);
    }
    Ok(if sliced { Arg::Ranked(parts) } else { Arg::Shared(parts.remove(0)) })
}

/// A given tensor is what the parameter takes.
fn check(
    param: &Parameter,
    dtype: DType,
    leading: Option<i64>,
    shape: &[i64],
    size: usize,
    given: &GivenTensor,
) -> Result<()> {
    let name = &param.name;
    if given.dtype != dtype {
        return Err(Error::invalid(format!("argument {name} is {}, not {dtype}", given.dtype)));
    }
    let right: Vec<i64> = leading.into_iter().chain(shape.iter().copied()).collect();
    if given.shape.len() != right.len() {
        let axis = if leading.is_some() { ", the rank axis first" } else { "" };
        let message = format!("argument {name} has {} dimensions, not {}{axis}", given.shape.len(), right.len());
        return Err(Error::invalid(message));
    }
    if let Some(axis) = (0..right.len()).find(|&axis| given.shape[axis] != right[axis]) {
        return Err(wrong_extent(param, axis, given.shape[axis], &right[axis].to_string()));
    }
    match given.bytes {
        Some(bytes) if bytes.len() != size => {
            Err(Error::invalid(format!("argument {name} has {} bytes, not {size}", bytes.len())))
        }
        _ => Ok(()),
    }
}

fn scalar(param: &Parameter, ty: ScalarType, given: Given, launch: u32) -> Result<u64> {
    let name = &param.name;
    let wrong = |given: &str| Err(Error::invalid(format!("argument {name} is {given}, not an {ty}")));
    match (ty, given) {
        (ScalarType::I32 | ScalarType::I64, Given::Generated) => Ok(u64::from(launch) + 1),
        (ScalarType::F32, Given::Generated) => Ok(u64::from(1f32.to_bits())),
        (ScalarType::Bool, Given::Generated) => Ok(1),
        (ScalarType::I32, Given::Int(value)) => match i32::try_from(value) {
            Ok(value) => Ok(u64::from(value as u32)),
            Err(_) => Err(Error::invalid(format!("argument {name} is {value}, which is no i32"))),
        },
        (ScalarType::I64, Given::Int(value)) => Ok(value as u64),
        (ScalarType::F32, Given::Float(value)) => {
            let single = value as f32;
            if single.is_infinite() && value.is_finite() {
                return Err(Error::invalid(format!("argument {name} is {value:e}, which is no f32")));
            }
            Ok(u64::from(single.to_bits()))
        }
        (ScalarType::Bool, Given::Bool(value)) => Ok(value.into()),
        (_, Given::Int(value)) => wrong(&format!("the integer {value}")),
        (_, Given::Float(value)) => wrong(&format!("the float {value}")),
        (_, Given::Bool(value)) => wrong(&value.to_string()),
        (_, Given::Tensor(_) | Given::Parts(_)) => wrong("a tensor"),
    }
}

fn no_size(param: &Parameter) -> Error {
    let message =
        format!("argument {} has no size, with {UNBOUND_EXTENT} for every dimension that is not bound", param.name);
    Error::invalid(message)
}

fn wrong_count(params: &[Parameter], launches: u32, given: usize) -> Error {
    let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    let times = if launches > 1 {
        format!(", or {} for {launches} launches", params.len() * launches as usize)
    } else {
        String::new()
    };
    let (count, names) = (params.len(), names.join(", "));
    Error::invalid(format!("{given} arguments are given, the program takes {count} ({names}){times}"))
}

fn wrong_extent(param: &Parameter, axis: usize, given: i64, right: &str) -> Error {
    Error::invalid(format!("argument {} has the extent {given} in dimension {axis}, not {right}", param.name))
}

/// Makes elements up.
#[derive(Clone, Copy)]
struct Filler {
    fill: Fill,
    seed: u64,
    launch: u32,
    param: usize,
}

impl Filler {
    fn element(self, dtype: DType, rank: usize, position: usize, part: &mut Vec<u8>) {
        let value = match self.fill {
            Fill::Iota => (rank as u64 + 1) * 100_003 + position as u64 + u64::from(self.launch) * 1_000_003,
            Fill::Random => {
                let stream = [self.launch.into(), self.param as u64, rank as u64, position as u64];
                stream.into_iter().fold(mix(self.seed), |state, next| mix(state ^ next))
            }
        };
        // Floats are numbers that their type has.
        let value = match dtype {
            DType::F32 => value % 1021,
            DType::F16 | DType::BF16 => value % 31,
            DType::F8E4M3 | DType::F8E5M2 => value % 7,
            DType::Bool => value % 2,
            _ => value,
        };
        part.extend(encode(cast(Value::Int(value.into()), DType::U64, dtype), dtype));
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::ir::parse::parse;

    const PROGRAM: &str = "\
program inputs

dim n

entry e(x: tensor[n, 2] i32 in, w: tensor[n * 2] f16 in, y: tensor[1] u8 out, epoch: i32, me: i32) {}

host (xs: tensor[world, n, 2] i32 in, w: tensor[n * 2] f16 in, ys: tensor[world, 1] u8 out, epoch: i32, s: f32, on: bool) {
  ranks r in 0..world {
    dispatch e(xs[r], w, ys[r], epoch, r) device r
  }
}
";

    fn make(launches: u32, fill: Fill, seed: u64, given: &[Given]) -> Result<Inputs> {
        inputs(&parse(PROGRAM, "inputs.pld").expect("a program"), 2, launches, fill, seed, given)
    }

    fn tensor<'a>(dtype: DType, shape: &'a [i64], bytes: Option<&'a [u8]>) -> GivenTensor<'a> {
        GivenTensor { dtype, shape, bytes }
    }

    fn ints(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
        values.into_iter().flat_map(i32::to_ne_bytes).collect()
    }

    #[test]
    fn nothing_given() {
        let made = make(2, Fill::Iota, 0, &[]).expect("inputs");
        assert_eq!((made.dims, made.args.len()), (vec![4], 12));
        let part = |rank, launch| ints((0..8).map(|i| (rank + 1) * 100_003 + i + launch * 1_000_003));
        assert_eq!(made.args[0], Arg::Ranked(vec![part(0, 0), part(1, 0)]));
        assert_eq!(made.args[6], Arg::Ranked(vec![part(0, 1), part(1, 1)]));
        let halves = (0..8).map(|i| f16::from_f32(((100_003 + i) % 31) as f32));
        assert_eq!(made.args[1], Arg::Shared(halves.flat_map(f16::to_ne_bytes).collect()));
        assert_eq!(made.args[2], Arg::Ranked(vec![vec![100_003u32 as u8], vec![200_006u32 as u8]]));
        let one = 1f32.to_bits().into();
        assert_eq!(made.args[3..6], [Arg::Bits(1), Arg::Bits(one), Arg::Bits(1)]);
        assert_eq!(made.args[9..], [Arg::Bits(2), Arg::Bits(one), Arg::Bits(1)]);
    }

    #[test]
    fn what_is_given_comes_in_every_launch() {
        let (whole, half) = (ints(1..=12), [0x3c; 12]);
        let given = [
            Given::Tensor(tensor(DType::I32, &[2, 3, 2], Some(&whole))),
            Given::Tensor(tensor(DType::F16, &[6], Some(&half))),
            Given::Parts(&[tensor(DType::U8, &[1], Some(&[7])), tensor(DType::U8, &[1], None)]),
            Given::Int(-1),
            Given::Float(0.5),
            Given::Bool(false),
        ];
        let made = make(2, Fill::Iota, 0, &given).expect("inputs");
        assert_eq!((made.dims, made.args.len()), (vec![3], 12));
        for args in made.args.chunks(6) {
            assert_eq!(args[0], Arg::Ranked(vec![ints(1..=6), ints(7..=12)]));
            assert_eq!(args[1], Arg::Shared(half.into()));
            assert_eq!(args[3..], [Arg::Bits(0xffff_ffff), Arg::Bits(0x3f00_0000), Arg::Bits(0)]);
        }
        assert_eq!(made.args[2], Arg::Ranked(vec![vec![7], vec![200_006u32 as u8]]));
        let mut both = given.to_vec();
        both.extend([Given::Generated; 6]);
        let made = make(2, Fill::Iota, 0, &both).expect("inputs");
        assert_eq!((made.dims, &made.args[9]), (vec![3], &Arg::Bits(2)));
    }

    #[test]
    fn a_seed_makes_the_same_again() {
        let make = |seed| make(2, Fill::Random, seed, &[]).expect("inputs");
        assert_eq!(make(7), make(7));
        let (one, other) = (make(7), make(8));
        assert_ne!(one.args[0], other.args[0]);
        assert_ne!(one.args[0], one.args[6]);
        let Arg::Ranked(parts) = &one.args[0] else { panic!("{:?}", one.args[0]) };
        assert_ne!(parts[0], parts[1]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |index: usize, wrong: Given| {
            let mut given = [Given::Generated; 6];
            given[index] = wrong;
            make(1, Fill::Iota, 0, &given).expect_err("a mistake").message
        };
        let x = |dtype, shape| wrong(0, Given::Tensor(GivenTensor { dtype, shape, bytes: None }));
        assert_eq!(x(DType::I64, &[2, 3, 2]), "argument xs is i64, not i32");
        assert_eq!(x(DType::I32, &[3, 2]), "argument xs has 2 dimensions, not 3, the rank axis first");
        assert_eq!(x(DType::I32, &[3, 3, 2]), "argument xs has the extent 3 in dimension 0, not 2");
        assert_eq!(x(DType::I32, &[2, 3, 5]), "argument xs has the extent 5 in dimension 2, not 2");
        assert_eq!(x(DType::I32, &[2, -1, 2]), "argument xs has the extent -1 in dimension 1");
        let short = Given::Tensor(GivenTensor { dtype: DType::I32, shape: &[2, 1, 2], bytes: Some(&[0; 15]) });
        assert_eq!(wrong(0, short), "argument xs has 15 bytes, not 16");
        assert_eq!(wrong(0, Given::Parts(&[])), "argument xs has 0 parts for 2 ranks");
        let parts = [tensor(DType::I32, &[1, 2], None), tensor(DType::I32, &[2, 2], None)];
        let message = "argument xs has the extent 2 in dimension 0, not 1 as n is bound before";
        assert_eq!(wrong(0, Given::Parts(&parts)), message);
        assert_eq!(wrong(1, Given::Parts(&[])), "argument w is a list of parts, but is not sliced by rank");
        assert_eq!(wrong(2, Given::Int(1)), "argument ys is a scalar, not a u8 tensor");
        assert_eq!(wrong(3, Given::Int(1 << 31)), "argument epoch is 2147483648, which is no i32");
        assert_eq!(wrong(3, Given::Float(0.5)), "argument epoch is the float 0.5, not an i32");
        assert_eq!(wrong(4, Given::Float(1e300)), "argument s is 1e300, which is no f32");
        assert_eq!(wrong(5, Given::Int(1)), "argument on is the integer 1, not an bool");
        let count = |launches, count| {
            make(launches, Fill::Iota, 0, &vec![Given::Generated; count]).expect_err("a mistake").message
        };
        assert_eq!(count(1, 5), "5 arguments are given, the program takes 6 (xs, w, ys, epoch, s, on)");
        let message = "12 arguments are given, the program takes 6 (xs, w, ys, epoch, s, on), or 18 for 3 launches";
        assert_eq!(count(3, 12), message);
    }
}
