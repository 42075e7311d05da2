//! Sizes of tensors, tiles, arrays and windows.

use crate::ir::program::{BufferSize, Param, TensorDef};
use crate::ir::{Array, Buffer, DType, Extent, Op, Tensor, Tile};

use super::names::Thing;
use super::report::Subject;
use super::{Context, names, rules};

/// Bytes that no tensor, tile or window of a 64-bit machine exceeds.
const MOST_BYTES: i64 = 1 << 47;

/// What a size must be.
#[derive(Clone, Copy)]
struct Demand {
    /// Known once the world is.
    fixed: bool,
    /// At least that.
    least: i64,
}

/// Sizes of the parameters of all entries and of the host driver.
pub(super) fn params(cx: &mut Context) {
    let program = cx.program;
    let entries = program.entries.values().flat_map(|entry| &entry.params);
    for param in entries.chain(program.host.iter().flat_map(|host| &host.params)) {
        if let &Param::Tensor(tensor) = param {
            check_tensor(cx, Subject::Param(tensor), tensor);
        }
    }
}

/// The size of a tensor that an op makes.
pub(super) fn tensor(cx: &mut Context, op: Op, tensor: Tensor) -> bool {
    check_tensor(cx, Subject::Op(op), tensor)
}

fn check_tensor(cx: &mut Context, subject: Subject, tensor: Tensor) -> bool {
    let data = &cx.program.tensors[tensor];
    let fixed = matches!(data.def, TensorDef::Window(..) | TensorDef::View(_));
    check_shape(cx, subject, Thing::Tensor(tensor), data.dtype, &data.shape, Demand { fixed, least: 0 })
}

/// The size of a tile that an op defines; said once a tile.
pub(super) fn tile(cx: &mut Context, op: Op, tile: Tile) -> bool {
    if let Some(sound) = cx.sized[tile] {
        return sound;
    }
    let data = &cx.program.tiles[tile];
    let demand = Demand { fixed: true, least: 1 };
    let sound = check_shape(cx, Subject::Op(op), Thing::Tile(tile), data.dtype, &data.shape, demand);
    cx.sized[tile] = Some(sound);
    sound
}

/// The length of an array.
pub(super) fn array(cx: &mut Context, op: Op, array: Array) -> bool {
    let data = &cx.program.arrays[array];
    let demand = Demand { fixed: true, least: 0 };
    check_shape(cx, Subject::Op(op), Thing::Array(array), data.ty.dtype(), &[data.len], demand)
}

/// The size of a window buffer.
pub(super) fn buffer(cx: &mut Context, op: Op, buffer: Buffer) -> bool {
    let (subject, thing, demand) = (Subject::Op(op), Thing::Buffer(buffer), Demand { fixed: true, least: 0 });
    match &cx.program.buffers[buffer].size {
        BufferSize::Shape(dtype, shape) => check_shape(cx, subject, thing, *dtype, shape, demand),
        BufferSize::Bytes(bytes) => check_shape(cx, subject, thing, DType::U8, &[*bytes], demand),
    }
}

fn check_shape(
    cx: &mut Context,
    subject: Subject,
    thing: Thing,
    dtype: DType,
    shape: &[Extent],
    demand: Demand,
) -> bool {
    if !shape.iter().all(|&extent| check_extent(cx, subject, thing, extent, demand)) {
        return false;
    }
    let bytes = shape.iter().try_fold(dtype.size(), |bytes, &extent| match cx.ranges.of_extent(extent).value() {
        Some(value) => bytes.checked_mul(value).filter(|&b| b <= MOST_BYTES),
        None => Some(bytes),
    });
    if bytes.is_none() {
        let names = cx.names;
        let message = format!("{} of shape {} {dtype} is too large", names.of(thing), names.shape(shape));
        cx.report.add(&rules::BAD_SIZE, subject, message).note(format!("at most {MOST_BYTES} bytes can be addressed"));
    }
    bytes.is_some()
}

fn check_extent(cx: &mut Context, subject: Subject, thing: Thing, extent: Extent, demand: Demand) -> bool {
    let names = cx.names;
    let extents = &cx.program.extents;
    let text = || names.extent(extent);
    if demand.fixed && extents.is_dynamic(extent) {
        let message = format!("the size {} of {} is only bound at launch", text(), names.of(thing));
        cx.report
            .add(&rules::DYNAMIC_SIZE, subject, message)
            .note("tiles, arrays and windows are laid out when the program is compiled")
            .hint("give it the largest size as a const, and use only the part that a launch needs");
        return false;
    }
    let of_world = cx.has_world(extent);
    let ranks = || {
        let world = cx.known.world.filter(|_| of_world);
        world.map_or(String::new(), |world| format!("the world has {}", names::count(world as usize, "rank")))
    };
    let decided = !extents.is_dynamic(extent) && (cx.known.world.is_some() || !of_world);
    if decided && extents.eval(extent, cx.known).is_none() {
        let (message, ranks) = (format!("the size {} of {} has no value", text(), names.of(thing)), ranks());
        cx.report
            .add(&rules::BAD_SIZE, subject, message)
            .note("it divides by zero, or does not fit 64 bits")
            .note(ranks);
        return false;
    }
    let most = cx.ranges.of_extent(extent).max;
    if most < demand.least {
        let (text, ranks) = (text(), ranks());
        let is = if text == most.to_string() { String::new() } else { format!(", which is {most}") };
        cx.report
            .add(&rules::BAD_SIZE, subject, format!("{} has an extent of {text}{is}", names.of(thing)))
            .note(ranks)
            .hint(if demand.least > 0 { "a tile has at least one element" } else { "an extent is not negative" });
        return false;
    }
    true
}
