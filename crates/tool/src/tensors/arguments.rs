//! The arguments of a program's launches: made up, from a file, and as the command line sets them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use pld::check::value::{Value, cast, encode};
use pld::check::{self, Fill, Given, GivenTensor, UNBOUND_EXTENT};
use pld::ir::extent::{ExtentData, Known};
use pld::ir::{DType, Direction, Extent, Parameter, ParameterKind, Program, ScalarType};
use pld::runtime::{self, TensorArg};

use super::{Array, Kind, npz, type_text};
use crate::exit::{Failure, Result};

/// What a program works on.
#[derive(Args, Clone)]
pub struct InputOptions {
    /// Values of the tensors that are read: iota, random, or a file with all of them by name, whole, with their rank
    /// axis
    #[arg(long, value_name = "iota|random|FILE.npz", default_value = "iota")]
    pub inputs: PathBuf,
    /// Of random inputs, and of what else is drawn
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// A scalar, a dimension, or every element of a tensor; may be repeated. Integers are otherwise the number of the
    /// launch, floats 1, bools true, dimensions as the inputs say or 4
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// What the options say about the parameters of a program.
pub struct Inputs {
    params: Vec<Parameter>,
    /// The whole tensor of each parameter, with its rank axis; empty for scalars.
    shapes: Vec<Vec<i64>>,
    /// Tensors that are not made up.
    arrays: Vec<Option<Array>>,
    /// Scalars that are set.
    numbers: Vec<Option<Number>>,
    fill: Fill,
    seed: u64,
}

/// A value for a scalar, or for the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl Inputs {
    /// For a program in a world of that many ranks.
    pub fn new(program: &Program, nranks: u32, options: &InputOptions) -> Result<Self> {
        let params = program.parameters();
        let fill = match options.inputs.to_str() {
            Some("iota") => Some(Fill::Iota),
            Some("random") => Some(Fill::Random),
            _ => None,
        };
        let arrays = if fill.is_some() { BTreeMap::new() } else { npz::read(&options.inputs)? };
        let mut file = File { options, arrays, is_used: fill.is_none() };
        file.check_names(&params)?;
        let settings = Settings::new(program, &params, &options.set)?;
        let mut dims = settings.dims;
        params.iter().try_for_each(|param| file.bind(program, param, &mut dims))?;
        let dims: Vec<i64> = dims.iter().map(|value| value.unwrap_or(UNBOUND_EXTENT)).collect();
        let known = Known { world: Some(nranks.into()), dims: &dims };

        let (mut shapes, mut arrays) = (Vec::new(), Vec::new());
        let numbers: Vec<_> = params.iter().map(|param| settings.numbers.get(&param.name).copied()).collect();
        for (param, number) in params.iter().zip(&numbers) {
            let ParameterKind::Tensor { dtype, direction, sliced, shape } = &param.kind else {
                shapes.push(Vec::new());
                arrays.push(None);
                continue;
            };
            let shape = whole_shape(program, param, shape, *sliced, known)?;
            arrays.push(match number {
                Some(number) => Some(number.array(*dtype, shape.clone())),
                None => file.take(param, *dtype, *direction, &shape)?,
            });
            shapes.push(shape);
        }
        Ok(Self { params, shapes, arrays, numbers, fill: fill.unwrap_or(Fill::Iota), seed: options.seed })
    }

    /// The inputs of that many launches in a row: the same tensors in all of them, or others in each if they are made up.
    pub fn of_launches(&self, program: &Program, nranks: u32, launches: u32) -> Result<check::Inputs> {
        let mut given = Vec::new();
        for (index, param) in self.params.iter().enumerate() {
            given.push(match (&param.kind, self.numbers[index]) {
                (&ParameterKind::Tensor { dtype, .. }, _) => {
                    let bytes = self.arrays[index].as_ref().map(Array::bytes);
                    Given::Tensor(GivenTensor { dtype, shape: &self.shapes[index], bytes })
                }
                (ParameterKind::Scalar(_), Some(Number::Int(value))) => Given::Int(value),
                (ParameterKind::Scalar(_), Some(Number::Float(value))) => Given::Float(value),
                (ParameterKind::Scalar(_), Some(Number::Bool(value))) => Given::Bool(value),
                (ParameterKind::Scalar(_), None) => Given::Generated,
            });
        }
        Ok(check::inputs(program, nranks, launches, self.fill, self.seed, &given)?)
    }
}

impl Number {
    /// A tensor of it.
    fn array(self, dtype: DType, shape: Vec<i64>) -> Array {
        let (value, from) = match self {
            Number::Int(value) => (Value::Int(value.into()), DType::I64),
            Number::Float(value) => (Value::Float(value as f32), DType::F32),
            Number::Bool(value) => (Value::Int(value.into()), DType::Bool),
        };
        let element = encode(cast(value, from, dtype), dtype);
        let mut array = Array::zeros(Kind::of(dtype), shape);
        array.bytes_mut().chunks_exact_mut(element.len()).for_each(|bytes| bytes.copy_from_slice(&element));
        array
    }
}

/// What launches are given.
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

impl Arguments {
    /// For a world of that many ranks, of which this process drives all, or one.
    pub fn new(program: &Program, nranks: u32, rank: Option<u32>, options: &InputOptions) -> Result<Self> {
        let inputs = Inputs::new(program, nranks, options)?;
        let made = inputs.of_launches(program, nranks, 1)?;
        let mut slots = Vec::new();
        for (index, (param, arg)) in inputs.params.iter().zip(made.args).enumerate() {
            let value = match param.kind {
                ParameterKind::Scalar(ty) => SlotValue::Scalar(ty, inputs.numbers[index]),
                ParameterKind::Tensor { dtype, direction, sliced, .. } => {
                    let bytes = match (arg, rank) {
                        (check::Arg::Ranked(mut parts), Some(rank)) => parts.swap_remove(rank as usize),
                        (check::Arg::Ranked(parts), None) => parts.concat(),
                        (check::Arg::Shared(bytes), _) => bytes,
                        (check::Arg::Bits(_), _) => unreachable!("a tensor is made for a tensor"),
                    };
                    let own = usize::from(sliced && rank.is_some());
                    let mut array = Array::of(Kind::of(dtype), inputs.shapes[index][own..].to_vec(), &bytes);
                    if direction == Direction::Out && inputs.arrays[index].is_none() {
                        array.bytes_mut().fill(0);
                    }
                    SlotValue::Tensor { dtype, direction, sliced, array }
                }
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
    /// Scalars and tensors, by name.
    numbers: BTreeMap<String, Number>,
}

impl Settings {
    fn new(program: &Program, params: &[Parameter], set: &[String]) -> Result<Self> {
        let mut settings = Self { dims: vec![None; program.extents.dims.len()], numbers: BTreeMap::new() };
        for text in set {
            let wrong = |what: String| Failure::usage(format!("--set {text}: {what}"));
            let (name, value) = text.split_once('=').ok_or_else(|| wrong("NAME=VALUE is needed".into()))?;
            if let Some(param) = params.iter().find(|param| param.name == name) {
                let ty = match param.kind {
                    ParameterKind::Scalar(ty) => ty.dtype(),
                    ParameterKind::Tensor { dtype, .. } => dtype,
                };
                let number = match ty {
                    DType::Bool => value.parse().map(Number::Bool).ok(),
                    ty if ty.is_float() => value.parse().map(Number::Float).ok(),
                    _ => value.parse().map(Number::Int).ok(),
                };
                settings.numbers.insert(name.into(), number.ok_or_else(|| wrong(format!("{name} is {ty}")))?);
                continue;
            }
            match program.extents.dims.iter().find(|(_, data)| data.name == name) {
                Some((_, data)) if data.value.is_some() => {
                    return Err(wrong(format!("{name} is a constant of the program")));
                }
                Some((dim, _)) => {
                    let extent = value.parse().ok().filter(|&extent: &i64| extent >= 0);
                    let extent = extent.ok_or_else(|| wrong(format!("{name} is a dimension, 0 or more")))?;
                    settings.dims[dim.as_u32() as usize] = Some(extent);
                }
                None => return Err(wrong(names(program, params))),
            }
        }
        Ok(settings)
    }
}

/// What can be set.
fn names(program: &Program, params: &[Parameter]) -> String {
    let dims = program.extents.dims.values().filter(|data| data.value.is_none());
    let names = params.iter().map(|param| param.name.as_str()).chain(dims.map(|data| data.name.as_str()));
    match names.collect::<Vec<_>>().as_slice() {
        [] => "the program has nothing to set".into(),
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
    fn take(&mut self, param: &Parameter, dtype: DType, direction: Direction, shape: &[i64]) -> Result<Option<Array>> {
        let Some(array) = self.arrays.remove(&param.name) else {
            return match direction {
                Direction::In | Direction::InOut if self.is_used => {
                    Err(self.wrong(format!("{} is missing: {}", param.name, type_text(Kind::of(dtype), shape))))
                }
                _ => Ok(None),
            };
        };
        check_type(&array, dtype, shape).map_err(|message| self.wrong(format!("{}: {message}", param.name)))?;
        Ok(Some(array))
    }
}

/// An array has the type and shape of a tensor.
fn check_type(array: &Array, dtype: DType, shape: &[i64]) -> Result<(), String> {
    if array.kind.fits(dtype) && array.shape == shape {
        return Ok(());
    }
    let (is, wanted) = (type_text(array.kind, &array.shape), type_text(Kind::of(dtype), shape));
    Err(format!("{wanted} is needed, not {is}"))
}
