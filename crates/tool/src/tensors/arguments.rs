//! The arguments of a program's launches: made up, from a file, and as the command line sets them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use pld::check::{Arg, Fill, Given, GivenTensor, UNBOUND_EXTENT, inputs};
use pld::ir::extent::{ExtentData, Known};
use pld::ir::{DType, Direction, Extent, Parameter, ParameterKind, Program, ScalarType};
use pld::runtime::{self, TensorArg};

use super::{Array, Kind, npz, type_text};
use crate::exit::{Failure, Result};

/// What a program works on.
#[derive(Args, Clone)]
pub struct InputOptions {
    /// Values of the tensors that are read: `iota`, `random`, or a file with all of them by name, whole, with their rank
    /// axis
    #[arg(long, value_name = "iota|random|FILE.npz", default_value = "iota")]
    pub inputs: PathBuf,
    /// Seed of random inputs
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// A scalar or a dimension of the program; may be repeated. Integers are otherwise the number of the launch, floats 1,
    /// bools true, dimensions as the inputs say or 4
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// What a launch is given.
pub struct Arguments {
    /// One for each parameter, in order.
    pub slots: Vec<Slot>,
}

/// One argument.
pub struct Slot {
    /// Name of the parameter.
    pub name: String,
    /// What is passed.
    pub value: SlotValue,
}

/// What is passed.
pub enum SlotValue {
    /// A tensor.
    Tensor {
        /// Element type.
        dtype: DType,
        /// What is done with it.
        direction: Direction,
        /// It has a part for each rank.
        sliced: bool,
        /// The whole with its rank axis, or a process's own part.
        array: Array,
    },
    /// A scalar; none for what follows the number of the launch.
    Scalar(ScalarType, Option<Number>),
}

/// A value for a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl Arguments {
    /// For a program in a world of that many ranks, of which this process drives all, or one.
    pub fn new(program: &Program, nranks: u32, rank: Option<u32>, options: &InputOptions) -> Result<Self> {
        let params = program.parameters();
        let fill = match options.inputs.to_str() {
            Some("iota") => Some(Fill::Iota),
            Some("random") => Some(Fill::Random),
            _ => None,
        };
        let arrays = if fill.is_some() { BTreeMap::new() } else { npz::read(&options.inputs)? };
        let file = File { options, arrays, is_used: fill.is_none() };
        file.check_names(&params)?;
        let mut settings = Settings::new(program, &params, &options.set)?;
        for param in &params {
            file.bind(program, param, &mut settings.dims)?;
        }
        let dims: Vec<i64> = settings.dims.iter().map(|value| value.unwrap_or(UNBOUND_EXTENT)).collect();
        let known = Known { world: Some(nranks.into()), dims: &dims };

        let mut shapes = Vec::new();
        for param in &params {
            shapes.push(match &param.kind {
                ParameterKind::Tensor { sliced, shape, .. } => whole_shape(program, param, shape, *sliced, known)?,
                ParameterKind::Scalar(_) => Vec::new(),
            });
        }
        let mut given = Vec::new();
        for (param, shape) in params.iter().zip(&shapes) {
            given.push(match &param.kind {
                ParameterKind::Scalar(_) => match settings.scalars.get(&param.name) {
                    Some(Number::Int(value)) => Given::Int(*value),
                    Some(Number::Float(value)) => Given::Float(*value),
                    Some(Number::Bool(value)) => Given::Bool(*value),
                    None => Given::Generated,
                },
                &ParameterKind::Tensor { dtype, direction, .. } => {
                    let bytes = file.tensor(param, dtype, direction, shape)?.map(Array::bytes);
                    Given::Tensor(GivenTensor { dtype, shape, bytes })
                }
            });
        }
        let made = inputs(program, nranks, 1, fill.unwrap_or(Fill::Iota), options.seed, &given)?;

        let mut slots = Vec::new();
        for (((param, shape), given), arg) in params.iter().zip(&shapes).zip(&given).zip(made.args) {
            let value = match (&param.kind, given) {
                (&ParameterKind::Scalar(ty), _) => SlotValue::Scalar(ty, settings.scalars.get(&param.name).copied()),
                (&ParameterKind::Tensor { dtype, direction, sliced, .. }, Given::Tensor(tensor)) => {
                    let shape = match rank {
                        Some(_) if sliced => shape[1..].to_vec(),
                        _ => shape.clone(),
                    };
                    let array = if direction == Direction::Out && tensor.bytes.is_none() {
                        Array::zeros(Kind::of(dtype), shape)
                    } else {
                        let bytes = match (arg, rank) {
                            (Arg::Ranked(parts), Some(rank)) => parts[rank as usize].clone(),
                            (Arg::Ranked(parts), None) => parts.concat(),
                            (Arg::Shared(bytes), _) => bytes,
                            (Arg::Bits(_), _) => unreachable!("a tensor is made for a tensor"),
                        };
                        Array::of(Kind::of(dtype), shape, &bytes)
                    };
                    SlotValue::Tensor { dtype, direction, sliced, array }
                }
                _ => unreachable!("a tensor is given for a tensor"),
            };
            slots.push(Slot { name: param.name.clone(), value });
        }
        Ok(Self { slots })
    }

    /// The arguments of a launch, which count from 1. What it writes is in the arrays afterwards, and there for the next.
    pub fn of_launch(&mut self, launch: u32) -> Vec<runtime::Arg<'_>> {
        self.slots.iter_mut().map(|slot| slot.arg(launch)).collect()
    }
}

impl Slot {
    fn arg(&mut self, launch: u32) -> runtime::Arg<'_> {
        match &mut self.value {
            SlotValue::Tensor { dtype, array, .. } => {
                let data = array.bytes_mut().as_mut_ptr();
                runtime::Arg::Tensor(TensorArg { data, dtype: *dtype, shape: &array.shape, strides: None })
            }
            SlotValue::Scalar(_, Some(Number::Int(value))) => runtime::Arg::Int(*value),
            SlotValue::Scalar(_, Some(Number::Float(value))) => runtime::Arg::Float(*value),
            SlotValue::Scalar(_, Some(Number::Bool(value))) => runtime::Arg::Bool(*value),
            SlotValue::Scalar(ScalarType::I32 | ScalarType::I64, None) => runtime::Arg::Int(launch.into()),
            SlotValue::Scalar(ScalarType::F32, None) => runtime::Arg::Float(1.0),
            SlotValue::Scalar(ScalarType::Bool, None) => runtime::Arg::Bool(true),
        }
    }
}

/// The whole tensor that a parameter takes.
fn whole_shape(program: &Program, param: &Parameter, part: &[Extent], sliced: bool, known: Known) -> Result<Vec<i64>> {
    let extents = part.iter().map(|&extent| program.extents.eval(extent, known).filter(|&value| value >= 0));
    let mut shape: Vec<i64> = known.world.filter(|_| sliced).into_iter().collect();
    for extent in extents {
        let extent = extent.ok_or_else(|| Failure::usage(format!("{} has no size; --set a dimension", param.name)))?;
        shape.push(extent);
    }
    // A tensor has at least one dimension of its own.
    if part.is_empty() {
        shape.push(1);
    }
    Ok(shape)
}

/// What the command line sets.
struct Settings {
    /// The dynamic dimensions, by index.
    dims: Vec<Option<i64>>,
    scalars: BTreeMap<String, Number>,
}

impl Settings {
    fn new(program: &Program, params: &[Parameter], set: &[String]) -> Result<Self> {
        let mut settings = Self { dims: vec![None; program.extents.dims.len()], scalars: BTreeMap::new() };
        for text in set {
            let (name, value) =
                text.split_once('=').ok_or_else(|| Failure::usage(format!("--set {text}: NAME=VALUE is needed")))?;
            let wrong = |what: &str| Failure::usage(format!("--set {text}: {name} is {what}"));
            let scalar = params.iter().find_map(|param| match param.kind {
                ParameterKind::Scalar(ty) if param.name == name => Some(ty),
                _ => None,
            });
            if let Some(ty) = scalar {
                let number = match ty {
                    ScalarType::I32 | ScalarType::I64 => value.parse().map(Number::Int).ok(),
                    ScalarType::F32 => value.parse().map(Number::Float).ok(),
                    ScalarType::Bool => value.parse().map(Number::Bool).ok(),
                };
                settings.scalars.insert(name.into(), number.ok_or_else(|| wrong(&format!("an {ty}")))?);
                continue;
            }
            match program.extents.dims.iter().find(|(_, data)| data.name == name) {
                Some((_, data)) if data.value.is_some() => return Err(wrong("a constant of the program")),
                Some((dim, _)) => {
                    let extent = value.parse().ok().filter(|&extent: &i64| extent >= 0);
                    settings.dims[dim.as_u32() as usize] = Some(extent.ok_or_else(|| wrong("a dimension, 0 or more"))?);
                }
                None => return Err(Failure::usage(format!("--set {text}: {}", names(program, params)))),
            }
        }
        Ok(settings)
    }
}

/// What can be set.
fn names(program: &Program, params: &[Parameter]) -> String {
    let scalars = params.iter().filter(|param| matches!(param.kind, ParameterKind::Scalar(_)));
    let dims = program.extents.dims.values().filter(|data| data.value.is_none());
    let names: Vec<&str> =
        scalars.map(|param| param.name.as_str()).chain(dims.map(|data| data.name.as_str())).collect();
    match names.as_slice() {
        [] => "the program has neither scalars nor dimensions to set".into(),
        names => format!("the program has {} to set", names.join(", ")),
    }
}

/// The file of inputs, if there is one.
struct File<'a> {
    options: &'a InputOptions,
    arrays: BTreeMap<String, Array>,
    is_used: bool,
}

impl File<'_> {
    fn wrong(&self, message: impl Into<String>) -> Failure {
        Failure::usage(format!("{}: {}", self.options.inputs.display(), message.into()))
    }

    /// Every array is for a tensor.
    fn check_names(&self, params: &[Parameter]) -> Result<()> {
        let tensors = params.iter().filter(|param| matches!(param.kind, ParameterKind::Tensor { .. }));
        let names: Vec<&str> = tensors.map(|param| param.name.as_str()).collect();
        match self.arrays.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(self.wrong(format!("the program has no tensor {name}; it has {}", names.join(", ")))),
            None => Ok(()),
        }
    }

    /// Binds the dimensions that are extents of a tensor in the file.
    fn bind(&self, program: &Program, param: &Parameter, dims: &mut [Option<i64>]) -> Result<()> {
        let ParameterKind::Tensor { sliced, shape, .. } = &param.kind else { return Ok(()) };
        let Some(array) = self.arrays.get(&param.name) else { return Ok(()) };
        for (&extent, &value) in shape.iter().zip(array.shape.iter().skip((*sliced).into())) {
            let ExtentData::Dim(dim) = program.extents.get(extent) else { continue };
            let data = &program.extents.dims[dim];
            match &mut dims[dim.as_u32() as usize] {
                _ if data.value.is_some() => {}
                Some(bound) if *bound != value => {
                    let message = format!("{} has {value} for {}, which is {bound} already", param.name, data.name);
                    return Err(self.wrong(message));
                }
                bound => *bound = Some(value),
            }
        }
        Ok(())
    }

    /// The array for a tensor; none if it is made up.
    fn tensor(&self, param: &Parameter, dtype: DType, direction: Direction, shape: &[i64]) -> Result<Option<&Array>> {
        let Some(array) = self.arrays.get(&param.name) else {
            return match direction {
                Direction::In | Direction::InOut if self.is_used => {
                    Err(self.wrong(format!("{} is missing: {}", param.name, type_text(Kind::of(dtype), shape))))
                }
                _ => Ok(None),
            };
        };
        check(array, dtype, shape).map_err(|message| self.wrong(format!("{}: {message}", param.name)))?;
        Ok(Some(array))
    }
}

/// An array has the type and shape of a tensor.
fn check(array: &Array, dtype: DType, shape: &[i64]) -> Result<(), String> {
    if array.kind.fits(dtype) && array.shape == shape {
        return Ok(());
    }
    let (is, wanted) = (type_text(array.kind, &array.shape), type_text(Kind::of(dtype), shape));
    Err(format!("{wanted} is needed, not {is}"))
}
