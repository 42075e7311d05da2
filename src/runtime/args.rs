//! The arguments of a launch: checked against the host driver's parameters and laid out for generated code.
//!
//! Checking writes into a table that was made beforehand; only a mistake allocates, for its message.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::core::Core;
use super::memo::Memo;
use super::resident::Resident;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::builder::MAX_RANK;
use crate::ir::extent::{ExtentData, Extents, Known};
use crate::ir::program::TensorDef;
use crate::ir::{self, CallbackArg, DType, Dim, Direction, Extent, OpKind, ParameterKind, Program, ScalarType};
use crate::transport::hccl::Card;

/// One argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// A tensor. A parameter that is sliced by rank takes the whole with its leading rank axis in a world that drives
    /// all ranks, and the rank's own part, without that axis, in a world that is one rank.
    Tensor(TensorArg<'a>),
    /// One part a rank, for a parameter that is sliced by rank in a world that drives all ranks.
    Ranks(&'a [TensorArg<'a>]),
    /// Memory that lives with the ranks. A stacked one for a parameter that is sliced by rank: shard `r` goes to rank
    /// `r`. One of a single rank where that is all that the process passes: for a parameter that is not sliced, and in a
    /// world that is one rank for any.
    Resident(&'a Resident),
    /// For an `i32` or `i64`.
    Int(i64),
    /// For an `f32`.
    Float(f64),
    /// For a `bool`.
    Bool(bool),
}

/// A tensor in memory of this process.
#[derive(Clone, Copy, Debug)]
pub struct TensorArg<'a> {
    /// Address of the first element; may be null if there are no elements.
    pub data: *mut u8,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: &'a [i64],
    /// Distances in elements; none for row-major packed, which is also the only layout that is accepted.
    pub strides: Option<&'a [i64]>,
}

impl TensorArg<'_> {
    /// Row-major and packed; strides of extents of 1 mean nothing, nor do any if there is no element.
    pub fn check_packed(&self, what: impl fmt::Display) -> Result<()> {
        let Some(strides) = self.strides else { return Ok(()) };
        if strides.len() != self.shape.len() {
            let message = format!("{what} has {} strides for {} dimensions", strides.len(), self.shape.len());
            return Err(Error::invalid(message));
        }
        if self.shape.contains(&0) {
            return Ok(());
        }
        let mut packed = 1i64;
        for (&extent, &stride) in self.shape.iter().zip(strides).rev() {
            if extent != 1 && stride != packed {
                let message = format!(
                    "{what} is not contiguous: strides {strides:?} of shape {:?}; make a packed copy",
                    self.shape
                );
                return Err(Error::invalid(message));
            }
            packed = packed.saturating_mul(extent);
        }
        Ok(())
    }
}

/// Arguments as generated code reads them, see [`crate::codegen::cpu::abi::Frame`].
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) values: Box<[u64]>,
    pub(super) dims: Box<[i64]>,
    spans: Vec<Span>,
    memo: Memo,
}

/// Memory of an argument.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: usize,
    end: usize,
    param: usize,
    written: bool,
}

/// An extent of a parameter.
#[derive(Clone, Copy, Debug)]
enum Size {
    Fixed(i64),
    /// Bound by the first argument that has it.
    Dim(Dim),
    /// Computed from what the others bind.
    Computed(Extent),
}

#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Tensor {
        dtype: DType,
        /// Without the rank axis.
        shape: Vec<Size>,
        /// Sliced by rank.
        ranked: bool,
        /// A task on the host uses it, with the parts of all ranks in one piece.
        whole: bool,
        written: bool,
    },
    Scalar(ScalarType),
}

/// The parameters of a host driver.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    params: Vec<Parameter>,
    extents: Extents,
    nranks: u32,
    /// The rank that this process is; none if it drives all.
    rank: Option<u32>,
    /// The world that residents must be of.
    world: WorldAddress,
    /// The cards of this process's ranks, whose memory tensors are; none if ranks run on CPUs.
    cards: Vec<Arc<Card>>,
}

/// Where the inside of a world lies; for comparison only.
#[derive(Clone, Copy, Debug)]
struct WorldAddress(*const Core);

// SAFETY: nobody reads through it.
unsafe impl Send for WorldAddress {}
// SAFETY: as above.
unsafe impl Sync for WorldAddress {}

/// The tensors among the parameters of `program` that tasks on the host use, by number.
fn whole(program: &Program) -> HashSet<usize> {
    let mut whole = HashSet::new();
    let Some(host) = &program.host else { return whole };
    program.walk(host.body, &mut |op| {
        let OpKind::HostTask { args, .. } = &program.ops[op].kind else { return };
        for arg in args {
            if let CallbackArg::Tensor(tensor, _) = *arg
                && let TensorDef::HostParam(index, _) = program.tensors[tensor].def
            {
                whole.insert(index as usize);
            }
        }
    });
    whole
}

/// A dimension that no argument has bound yet; extents are not negative.
const UNBOUND: i64 = -1;

impl Signature {
    /// The parameters of `program` in a world.
    pub(super) fn new(program: &Program, core: &Core) -> Result<Self> {
        let (nranks, rank) = (core.nranks, core.rank);
        let extents = program.extents.clone();
        let whole = whole(program);
        let parameter = |(index, parameter): (usize, ir::Parameter)| {
            let kind = match parameter.kind {
                ParameterKind::Scalar(ty) => Kind::Scalar(ty),
                ParameterKind::Tensor { dtype, direction, sliced, shape } => {
                    let mut shape: Vec<Size> = shape.into_iter().map(|e| Size::new(&extents, e, nranks)).collect();
                    if shape.is_empty() {
                        shape.push(Size::Fixed(1));
                    }
                    let (whole, written) = (whole.contains(&index), direction != Direction::In);
                    Kind::Tensor { dtype, shape, ranked: sliced, whole, written }
                }
            };
            Parameter { name: parameter.name, kind }
        };
        let params = program.parameters().into_iter().enumerate().map(parameter).collect();
        let cards = core.queues.iter().map(|queue| queue.card().clone()).collect();
        let signature = Self { params, extents, nranks, rank, world: WorldAddress(core), cards };
        signature.check_dims()?;
        Ok(signature)
    }

    /// Every dynamic dimension has a parameter that binds it.
    fn check_dims(&self) -> Result<()> {
        let bound: HashSet<Dim> = self
            .params
            .iter()
            .flat_map(|p| match &p.kind {
                Kind::Tensor { shape, .. } => shape.as_slice(),
                Kind::Scalar(_) => &[],
            })
            .filter_map(|size| if let Size::Dim(dim) = size { Some(*dim) } else { None })
            .collect();
        match self.extents.dims.iter().find(|(dim, data)| data.value.is_none() && !bound.contains(dim)) {
            Some((_, data)) => {
                let message = format!("no host tensor has the extent {}, so no launch can bind it", data.name);
                Err(Error::new(ErrorKind::Verify, message))
            }
            None => Ok(()),
        }
    }

    /// A table for the arguments of this signature.
    pub(super) fn table(&self) -> Table {
        let (params, nranks) = (self.params.len(), self.nranks as usize);
        Table {
            values: vec![0; params * nranks].into(),
            dims: vec![UNBOUND; self.extents.dims.len()].into(),
            spans: Vec::with_capacity(params * nranks),
            memo: Memo::new(params),
        }
    }

    /// Checks `args` and lays them out in `table`.
    pub(super) fn bind(&self, args: &[Arg], table: &mut Table) -> Result<()> {
        if args.len() != self.params.len() {
            return Err(self.wrong_count(args.len()));
        }
        if args.is_empty() {
            return Ok(());
        }
        if table.memo.recalls(args) {
            return self.bind_scalars(args, table);
        }
        table.memo.forget();
        // Not `fill`: memset of no bytes at a dangling address is a masked store that the CPU takes 50 ns to suppress.
        table.dims.iter_mut().for_each(|dim| *dim = UNBOUND);
        table.spans.clear();
        let mut computed = false;
        for (index, arg) in args.iter().enumerate() {
            computed |= self.bind_one(index, arg, table)?;
        }
        if computed {
            args.iter().enumerate().try_for_each(|(index, arg)| self.check_computed(index, arg, &table.dims))?;
        }
        self.check_overlap(table)?;
        table.memo.keep(args);
        Ok(())
    }

    /// Binds the scalars among `args`; the tensors are those of the launch before.
    fn bind_scalars(&self, args: &[Arg], table: &mut Table) -> Result<()> {
        let rows = table.values.chunks_exact_mut(self.nranks as usize);
        for ((param, arg), row) in self.params.iter().zip(args).zip(rows) {
            if let Kind::Scalar(ty) = param.kind {
                row.fill(scalar_bits(&param.name, ty, arg)?);
            }
        }
        Ok(())
    }

    /// Binds an argument; says whether it has extents that can only be checked when all dimensions are bound.
    fn bind_one(&self, index: usize, arg: &Arg, table: &mut Table) -> Result<bool> {
        let param = &self.params[index];
        let nranks = self.nranks as usize;
        let row = &mut table.values[index * nranks..][..nranks];
        let local = self.rank.map_or(0..nranks, |rank| rank as usize..rank as usize + 1);
        let (dtype, shape, ranked, in_one, written) = match (&param.kind, arg) {
            (Kind::Scalar(ty), _) => {
                row.fill(scalar_bits(&param.name, *ty, arg)?);
                return Ok(false);
            }
            (Kind::Tensor { dtype, shape, ranked, whole, written }, _) => (*dtype, shape, *ranked, *whole, *written),
        };
        let mut keep = |tensor: &TensorArg, bytes: usize| {
            if bytes > 0 {
                let begin = tensor.data.addr();
                table.spans.push(Span { begin, end: begin + bytes, param: index, written });
            }
        };
        let whole = ranked && self.rank.is_none();
        match arg {
            Arg::Tensor(_) if whole && self.cards.len() > 1 => {
                let message = format!(
                    "the parts of argument {} lie on {} cards: pass them as a list, or as a stacked resident",
                    param.name,
                    self.cards.len()
                );
                return Err(Error::invalid(message));
            }
            Arg::Tensor(tensor) => {
                self.check_on_card(param, tensor)?;
                let leading = whole.then_some(i64::from(self.nranks));
                let bytes = check_tensor(param, dtype, shape, leading, tensor, &self.extents, &mut table.dims)?;
                let part = if whole { bytes / nranks } else { 0 };
                for rank in local {
                    row[rank] = (tensor.data.addr() + rank * part) as u64;
                }
                keep(tensor, bytes);
            }
            Arg::Ranks(_) if whole && in_one => {
                let name = &param.name;
                let message = format!("argument {name} is a list of parts, but a task on the host takes it in one");
                return Err(Error::invalid(message));
            }
            Arg::Ranks(parts) if whole => {
                if parts.len() != nranks {
                    let message = format!("argument {} has {} parts for {nranks} ranks", param.name, parts.len());
                    return Err(Error::invalid(message));
                }
                for (rank, part) in parts.iter().enumerate() {
                    self.check_on_card(param, part)?;
                    let bytes = check_tensor(param, dtype, shape, None, part, &self.extents, &mut table.dims)?;
                    row[rank] = part.data.addr() as u64;
                    keep(part, bytes);
                }
            }
            Arg::Ranks(_) if ranked => {
                let message = format!("argument {} is a list of parts, and this process is one rank", param.name);
                return Err(Error::invalid(message));
            }
            Arg::Ranks(_) => {
                let message = format!("argument {} is a list of parts, but is not sliced by rank", param.name);
                return Err(Error::invalid(message));
            }
            Arg::Resident(_) if whole && in_one => {
                let message = format!("argument {} is a resident, but a task on the host takes it in one", param.name);
                return Err(Error::invalid(message));
            }
            Arg::Resident(resident) => {
                let shards = resident.shards();
                if !shards.is_of(self.world.0) {
                    return Err(Error::invalid(format!("argument {} is a resident of another world", param.name)));
                }
                if shards.stacked && !ranked {
                    let message = format!("argument {} is a stacked resident, but is not sliced by rank", param.name);
                    return Err(Error::invalid(message));
                }
                if !shards.stacked && whole {
                    let message = format!("argument {} is a resident of one rank, but is sliced by rank", param.name);
                    return Err(Error::invalid(message));
                }
                for (rank, part) in shards.tensors() {
                    let bytes = check_tensor(param, dtype, shape, None, &part, &self.extents, &mut table.dims)?;
                    let rows = if shards.stacked { rank as usize..rank as usize + 1 } else { local.clone() };
                    row[rows].fill(part.data.addr() as u64);
                    keep(&part, bytes);
                }
            }
            Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) => {
                return Err(Error::invalid(format!("argument {} is a scalar, not a {dtype} tensor", param.name)));
            }
        }
        Ok(shape.iter().any(|size| matches!(size, Size::Computed(_))))
    }

    /// A tensor of a world of cards is memory of a card, as far as CANN tells.
    fn check_on_card(&self, param: &Parameter, tensor: &TensorArg) -> Result<()> {
        let address = tensor.data.addr() as u64;
        match self.cards.first().filter(|_| !tensor.data.is_null()).and_then(|card| card.is_host_memory(address)) {
            Some(true) => {
                let message = format!(
                    "argument {} is memory of the host ({:p}), but ranks are cards: pass memory of the card, or a resident",
                    param.name, tensor.data
                );
                Err(Error::invalid(message))
            }
            _ => Ok(()),
        }
    }

    fn check_computed(&self, index: usize, arg: &Arg, dims: &[i64]) -> Result<()> {
        let param = &self.params[index];
        let Kind::Tensor { shape, ranked, .. } = &param.kind else { return Ok(()) };
        let known = Known { world: Some(i64::from(self.nranks)), dims };
        let check = |given: &[i64]| {
            for (axis, (size, &extent)) in shape.iter().zip(given).enumerate() {
                if let Size::Computed(e) = size {
                    match self.extents.eval(*e, known) {
                        Some(right) if right == extent => {}
                        right => return Err(wrong_extent(param, axis, extent, right, "by the other arguments")),
                    }
                }
            }
            Ok(())
        };
        match arg {
            Arg::Tensor(tensor) if *ranked && self.rank.is_none() => check(&tensor.shape[1..]),
            Arg::Tensor(tensor) => check(tensor.shape),
            Arg::Ranks(parts) => parts.iter().try_for_each(|part| check(part.shape)),
            Arg::Resident(resident) => resident.shards().tensors().try_for_each(|(_, part)| check(part.shape)),
            Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) => Ok(()),
        }
    }

    /// What is written overlaps nothing.
    fn check_overlap(&self, table: &mut Table) -> Result<()> {
        let spans = &mut table.spans;
        if !spans.iter().any(|s| s.written) {
            return Ok(());
        }
        spans.sort_unstable_by_key(|s| (s.begin, s.end));
        // Of the spans so far, the one that reaches furthest, and the written one that does.
        let (mut any, mut out): (Option<Span>, Option<Span>) = (None, None);
        for &span in spans.iter() {
            let other = if span.written { any } else { out };
            if let Some(other) = other.filter(|o| o.end > span.begin) {
                return Err(self.overlap(other, span));
            }
            let further = |best: Option<Span>| if best.is_some_and(|b| b.end > span.end) { best } else { Some(span) };
            any = further(any);
            if span.written {
                out = further(out);
            }
        }
        Ok(())
    }

    #[cold]
    fn overlap(&self, a: Span, b: Span) -> Error {
        let (written, other) = if a.written { (a, b) } else { (b, a) };
        let (name, other_name) = (&self.params[written.param].name, &self.params[other.param].name);
        let bytes = a.end.min(b.end) - b.begin;
        let message = if written.param == other.param {
            format!("two parts of argument {name} overlap by {bytes} bytes, and it is written")
        } else {
            format!("argument {name}, which is written, overlaps argument {other_name} by {bytes} bytes")
        };
        Error::invalid(message)
    }

    #[cold]
    fn wrong_count(&self, given: usize) -> Error {
        let names: Vec<&str> = self.params.iter().map(|p| p.name.as_str()).collect();
        Error::invalid(format!("{given} arguments are given, the program takes {} ({})", names.len(), names.join(", ")))
    }
}

impl Size {
    fn new(extents: &Extents, extent: Extent, nranks: u32) -> Self {
        let known = Known { world: Some(i64::from(nranks)), dims: &[] };
        match (extents.get(extent), extents.eval(extent, known)) {
            (_, Some(value)) => Size::Fixed(value),
            (ExtentData::Dim(dim), None) if extents.dims[dim].value.is_none() => Size::Dim(dim),
            _ => Size::Computed(extent),
        }
    }
}

/// Checks one tensor and binds its dimensions; its size in bytes.
fn check_tensor(
    param: &Parameter,
    dtype: DType,
    shape: &[Size],
    leading: Option<i64>,
    tensor: &TensorArg,
    extents: &Extents,
    dims: &mut [i64],
) -> Result<usize> {
    let name = &param.name;
    if tensor.dtype != dtype {
        return Err(Error::invalid(format!("argument {name} is {}, not {dtype}", tensor.dtype)));
    }
    let (rank, skip) = (shape.len() + leading.is_some() as usize, leading.is_some() as usize);
    if tensor.shape.len() != rank {
        return Err(wrong_rank(param, tensor.shape, rank, leading));
    }
    let mut bytes = Some(dtype.size());
    for (axis, &extent) in tensor.shape.iter().enumerate() {
        if extent < 0 {
            return Err(Error::invalid(format!("argument {name} has the extent {extent} in dimension {axis}")));
        }
        bytes = bytes.and_then(|b| b.checked_mul(extent));
    }
    if tensor.shape.contains(&0) {
        bytes = Some(0);
    }
    if let Some(nranks) = leading
        && tensor.shape[0] != nranks
    {
        return Err(wrong_extent(param, 0, tensor.shape[0], Some(nranks), "for the ranks"));
    }
    for (axis, (size, &extent)) in shape.iter().zip(&tensor.shape[skip..]).enumerate() {
        match *size {
            Size::Fixed(right) if right != extent => {
                return Err(wrong_extent(param, axis + skip, extent, Some(right), "by the program"));
            }
            Size::Dim(dim) => {
                let bound = &mut dims[dim.as_u32() as usize];
                if *bound == UNBOUND {
                    *bound = extent;
                } else if *bound != extent {
                    let why = format!("as {} is bound before", extents.dims[dim].name);
                    return Err(wrong_extent(param, axis + skip, extent, Some(*bound), &why));
                }
            }
            Size::Fixed(_) | Size::Computed(_) => {}
        }
    }
    let Some(bytes) =
        bytes.and_then(|b| usize::try_from(b).ok()).filter(|b| tensor.data.addr().checked_add(*b).is_some())
    else {
        return Err(Error::invalid(format!("argument {name} is larger than an address space of 64 bits")));
    };
    tensor.check_packed(format_args!("argument {name}"))?;
    if bytes > 0 && tensor.data.is_null() {
        return Err(Error::invalid(format!("argument {name} is null, and has {bytes} bytes")));
    }
    if tensor.data.addr() & (dtype.size() as usize - 1) != 0 {
        let message = format!("argument {name} begins at {:p}, which is not aligned for {dtype}", tensor.data);
        return Err(Error::invalid(message));
    }
    Ok(bytes)
}

fn scalar_bits(name: &str, ty: ScalarType, arg: &Arg) -> Result<u64> {
    let wrong = |given: &str| Err(Error::invalid(format!("argument {name} is {given}, not an {ty}")));
    match (ty, arg) {
        (ScalarType::I32, Arg::Int(value)) => match i32::try_from(*value) {
            Ok(value) => Ok(u64::from(value as u32)),
            Err(_) => Err(Error::invalid(format!("argument {name} is {value}, which is no i32"))),
        },
        (ScalarType::I64, Arg::Int(value)) => Ok(*value as u64),
        (ScalarType::F32, Arg::Float(value)) => {
            let single = *value as f32;
            if single.is_infinite() && value.is_finite() {
                return Err(Error::invalid(format!("argument {name} is {value:e}, which is no f32")));
            }
            Ok(u64::from(single.to_bits()))
        }
        (ScalarType::Bool, Arg::Bool(value)) => Ok(u64::from(*value)),
        (_, Arg::Int(value)) => wrong(&format!("the integer {value}")),
        (_, Arg::Float(value)) => wrong(&format!("the float {value}")),
        (_, Arg::Bool(value)) => wrong(&value.to_string()),
        (_, Arg::Tensor(_) | Arg::Ranks(_) | Arg::Resident(_)) => wrong("a tensor"),
    }
}

#[cold]
fn wrong_rank(param: &Parameter, shape: &[i64], rank: usize, leading: Option<i64>) -> Error {
    let axis = if leading.is_some() { ", the rank axis first" } else { "" };
    let shown = &shape[..shape.len().min(MAX_RANK)];
    let message = format!("argument {} has {} dimensions {shown:?}, not {rank}{axis}", param.name, shape.len());
    Error::invalid(message)
}

#[cold]
fn wrong_extent(param: &Parameter, axis: usize, given: i64, right: Option<i64>, why: &str) -> Error {
    let right = right.map_or_else(|| "one that overflows".into(), |r| r.to_string());
    Error::invalid(format!("argument {} has the extent {given} in dimension {axis}, not {right} {why}", param.name))
}
