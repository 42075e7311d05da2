//! Channels: the windows through which the calls on one window find each other.

use std::collections::{BTreeMap, HashMap};

use smallvec::smallvec;

use super::{Call, Target, algorithms};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::op::Operand;
use crate::ir::program::{BufferSize, Loc, TensorDef};
use crate::ir::{Buffer, Builder, DType, Entry, Op, OpKind, Program, Tensor};

/// Cells of a line: nobody else's arrival disturbs it.
pub(super) const LINE: i64 = 16;

/// Most different calls of a program: a number takes half of a cell.
const MOST_NUMBERS: usize = u16::MAX as usize;

/// What names a channel in an entry: a window parameter, or nothing for that of the whole world.
type Key = Option<Tensor>;

/// The channels of a program.
pub(super) struct Channels {
    /// Bytes that one call may stage: half of a lane's stage.
    pub(super) slot_bytes: i64,
    cells: HashMap<(Entry, Key), Tensor>,
    stages: HashMap<(Entry, Key, DType), Tensor>,
    /// What different calls are called, and their numbers.
    numbers: HashMap<String, i64>,
}

impl Channels {
    /// Adds the windows that the calls need to their entries, dispatches, and the host driver.
    pub(super) fn new(b: &mut Builder, calls: &[Call], target: &Target) -> Result<Self> {
        let program = b.program();
        let slot_bytes = calls.iter().map(|call| algorithms::staged_bytes(program, call, target)).max().unwrap_or(0);
        let slot_bytes = (slot_bytes + 63) / 64 * 64;
        let mut channels = Self { slot_bytes, cells: HashMap::new(), stages: HashMap::new(), numbers: HashMap::new() };
        for call in calls {
            let next = channels.numbers.len() as i64 + 1;
            channels.numbers.entry(algorithms::label(program, call, target)).or_insert(next);
        }
        if channels.numbers.len() > MOST_NUMBERS {
            let message = format!("more than {MOST_NUMBERS} different collectives");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let needs = needs(program, calls, target);
        let lanes = needs.values().map(|need| need.lanes).max().unwrap_or(1);
        let mut windows = HostWindows { lanes, slot_bytes, cells: HashMap::new(), stages: HashMap::new() };
        for (&(entry, key), need) in &needs {
            channels.add(b, entry, key, need, &mut windows);
        }
        Ok(channels)
    }

    fn add(&mut self, b: &mut Builder, entry: Entry, key: Key, need: &Need, windows: &mut HostWindows) {
        let base = key.map_or_else(|| "world".into(), |tensor| name(b.program(), tensor));
        let dispatches = dispatches(b.program(), entry);
        let shape = windows.cells_shape(b);
        let cells = b.add_param_window(entry, &format!("{base}_cells"), DType::I32, shape);
        self.cells.insert((entry, key), cells);
        for &dispatch in &dispatches {
            let view = windows.cells(b, argument(b.program(), dispatch, key));
            b.add_argument(dispatch, view);
        }
        for &dtype in &need.stages {
            let shape = windows.stage_shape(b, dtype);
            let stage = b.add_param_window(entry, &format!("{base}_stage_{dtype}"), dtype, shape);
            self.stages.insert((entry, key, dtype), stage);
            for &dispatch in &dispatches {
                let view = windows.stage(b, argument(b.program(), dispatch, key), dtype);
                b.add_argument(dispatch, view);
            }
        }
    }

    /// The cells of a call's channel.
    pub(super) fn cells(&self, program: &Program, call: &Call) -> Tensor {
        self.cells[&(call.entry, key(program, call))]
    }

    /// The stage of a call's channel, for elements of a type.
    pub(super) fn stage(&self, program: &Program, call: &Call, dtype: DType) -> Option<Tensor> {
        self.stages.get(&(call.entry, key(program, call), dtype)).copied()
    }

    /// What a call is called, and its number.
    pub(super) fn number(&self, program: &Program, call: &Call, target: &Target) -> (String, i64) {
        let label = algorithms::label(program, call, target);
        let number = self.numbers[&label];
        (label, number)
    }
}

/// What the calls of an entry need of a channel.
struct Need {
    lanes: i64,
    stages: Vec<DType>,
}

fn needs(program: &Program, calls: &[Call], target: &Target) -> BTreeMap<(Entry, Key), Need> {
    let mut needs: BTreeMap<(Entry, Key), Need> = BTreeMap::new();
    for call in calls {
        let new = Need { lanes: 1, stages: Vec::new() };
        let need = needs.entry((call.entry, key(program, call))).or_insert(new);
        need.lanes = need.lanes.max(call.lanes.map_or(1, |(lanes, _)| lanes));
        if let Some(dtype) = algorithms::staged(program, call, target)
            && !need.stages.contains(&dtype)
        {
            need.stages.push(dtype);
        }
    }
    needs
}

/// The window that names a call's channel.
fn key(program: &Program, call: &Call) -> Key {
    call.collective.signal.or(call.collective.window()).map(|window| program.root(window))
}

fn name(program: &Program, tensor: Tensor) -> String {
    program.tensors[tensor].name.clone().unwrap_or_else(|| "window".into())
}

fn dispatches(program: &Program, entry: Entry) -> Vec<Op> {
    let of_entry = |op: &Op| matches!(program.ops[*op].kind, OpKind::Dispatch { entry: e, .. } if e == entry);
    program.ops.keys().filter(of_entry).collect()
}

/// The buffer whose view a dispatch passes for a window parameter.
fn argument(program: &Program, dispatch: Op, key: Key) -> Option<Buffer> {
    let TensorDef::Window(_, index) = program.tensors[key?].def else {
        unreachable!("a channel is a window parameter")
    };
    let OpKind::Dispatch { args, .. } = &program.ops[dispatch].kind else { unreachable!("it is a dispatch") };
    match args[index as usize] {
        Operand::Tensor(view) => match program.tensors[view].def {
            TensorDef::View(buffer) => Some(buffer),
            _ => unreachable!("the verifier passes views to windows"),
        },
        Operand::Scalar(_) => unreachable!("the verifier passes views to windows"),
    }
}

/// The windows of channels, by the buffer that names the channel.
struct HostWindows {
    lanes: i64,
    slot_bytes: i64,
    cells: HashMap<Option<Buffer>, Tensor>,
    stages: HashMap<Option<Buffer>, (Buffer, HashMap<DType, Tensor>)>,
}

impl HostWindows {
    /// By lane, parity of the synchronisation, and rank.
    fn cells_shape(&self, b: &mut Builder) -> crate::ir::extent::Shape {
        smallvec![b.extent_int(self.lanes), b.extent_int(2), b.extent_world(), b.extent_int(LINE)]
    }

    fn stage_shape(&self, b: &mut Builder, dtype: DType) -> crate::ir::extent::Shape {
        smallvec![b.extent_int(self.lanes * 2 * self.slot_bytes / dtype.size())]
    }

    fn cells(&mut self, b: &mut Builder, channel: Option<Buffer>) -> Tensor {
        if let Some(&view) = self.cells.get(&channel) {
            return view;
        }
        let shape = self.cells_shape(b);
        // Programs in one pool share windows by name: only if they are of one size.
        let lanes = if self.lanes == 1 { String::new() } else { format!("_{}", self.lanes) };
        let size = BufferSize::Shape(DType::I32, shape.clone());
        let (_, view) =
            allocate(b, channel, &format!("cells{lanes}"), size, |b, buffer| b.window(buffer, DType::I32, shape));
        self.cells.insert(channel, view);
        view
    }

    fn stage(&mut self, b: &mut Builder, channel: Option<Buffer>, dtype: DType) -> Tensor {
        let shape = self.stage_shape(b, dtype);
        let new = |b: &mut Builder, buffer| b.window(buffer, dtype, shape);
        if let Some((buffer, views)) = self.stages.get_mut(&channel) {
            if let Some(&view) = views.get(&dtype) {
                return view;
            }
            let view = after_allocation(b, *buffer, |b| new(b, *buffer));
            views.insert(dtype, view);
            return view;
        }
        let bytes = b.extent_int(self.lanes * 2 * self.slot_bytes);
        let what = format!("stage_{}x{}", self.lanes, self.slot_bytes);
        let (buffer, view) = allocate(b, channel, &what, BufferSize::Bytes(bytes), new);
        self.stages.insert(channel, (buffer, HashMap::from([(dtype, view)])));
        view
    }
}

/// Allocates a window for a channel, and makes a view of it: behind the window that names the channel, or first of all.
fn allocate(
    b: &mut Builder,
    channel: Option<Buffer>,
    what: &str,
    size: BufferSize,
    view: impl FnOnce(&mut Builder, Buffer) -> Tensor,
) -> (Buffer, Tensor) {
    let of = channel.map(|buffer| b.program().buffers[buffer].clone());
    let base = of.as_ref().map_or("world", |data| &data.name);
    let name = b.unused_name(&format!("{base}_{what}"));
    let (domain, loc) = of.as_ref().map_or((None, Loc::default()), |data| (data.domain, data.loc));
    let mut made = None;
    let ops = b.apart(loc, |b| {
        let buffer = b.alloc_window_in(domain, &name, size);
        made = Some((buffer, view(b, buffer)));
    });
    insert(b, channel, ops);
    made.expect("it was made")
}

fn after_allocation(b: &mut Builder, buffer: Buffer, view: impl FnOnce(&mut Builder) -> Tensor) -> Tensor {
    let loc = b.program().buffers[buffer].loc;
    let mut made = None;
    let ops = b.apart(loc, |b| made = Some(view(b)));
    insert(b, Some(buffer), ops);
    made.expect("it was made")
}

/// Puts ops behind the allocation of a buffer, or at the beginning of the host driver.
fn insert(b: &mut Builder, behind: Option<Buffer>, ops: Vec<Op>) {
    let program = b.program();
    let body = program.host.as_ref().expect("a program with dispatches has a host driver").body;
    let allocates = |op: &Op| matches!(program.ops[*op].kind, OpKind::AllocWindow { buffer } if Some(buffer) == behind);
    let at = program.blocks[body].iter().position(allocates).map_or(0, |at| at + 1);
    b.replace(body, at, 0, ops);
}
