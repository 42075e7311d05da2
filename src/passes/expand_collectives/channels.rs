//! Channels: the windows through which the calls on one window find each other.

use std::collections::{BTreeMap, HashMap};

use smallvec::smallvec;

use super::exchange::Stage;
use super::windows::Windows;
use super::{Call, Target, algorithms, hierarchy};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::extent::Shape;
use crate::ir::op::Operand;
use crate::ir::program::TensorDef;
use crate::ir::{Buffer, Builder, DType, Entry, Op, OpKind, Program, Tensor};

/// Cells of a line: nobody else's arrival disturbs it.
pub(super) const LINE: i64 = 16;
pub(super) const LINE_BYTES: i64 = LINE * 4;

/// Where data stands in a line, behind its cells, and how much: it comes along with the arrival.
pub(super) const MAIL_AT: i64 = 16;
pub(super) const MAIL_BYTES: i64 = LINE_BYTES - MAIL_AT;

/// Most different calls of a program: a number takes half of a cell, and leaves room for a synchronisation's.
const MOST_NUMBERS: usize = u16::MAX as usize - 1;

/// What names a channel in an entry: a window parameter, or nothing for that of the whole world.
type Key = Option<Tensor>;

/// The channels of a program.
pub(super) struct Channels {
    /// Bytes that one call may stage, and stage between hosts: half of what a lane has for it.
    slot_bytes: i64,
    shard_bytes: i64,
    cells: HashMap<(Entry, Key), Tensor>,
    mails: HashMap<(Entry, Key, DType), Tensor>,
    stages: HashMap<(Entry, Key, DType), Tensor>,
    shards: HashMap<(Entry, Key, DType), Tensor>,
    /// What different calls are called, and their numbers.
    numbers: HashMap<String, i64>,
}

impl Channels {
    /// Adds the windows that the calls need to their entries, dispatches, and the host driver.
    pub(super) fn new(b: &mut Builder, calls: &[Call], target: &Target) -> Result<Self> {
        let program = b.program();
        let slot_bytes = calls.iter().map(|call| algorithms::staged_bytes(program, call, target)).max().unwrap_or(0);
        let sharded = calls.iter().filter_map(|call| hierarchy::layout(program, call, target));
        let shard_bytes = sharded.map(|layout| layout.bytes()).max().unwrap_or(0);
        let mut channels = Self {
            slot_bytes,
            shard_bytes,
            cells: HashMap::new(),
            mails: HashMap::new(),
            stages: HashMap::new(),
            shards: HashMap::new(),
            numbers: HashMap::new(),
        };
        for call in calls {
            let next = channels.numbers.len() as i64 + 1;
            channels.numbers.entry(algorithms::label(program, call, target)).or_insert(next);
        }
        if channels.numbers.len() > MOST_NUMBERS {
            let message = format!("more than {MOST_NUMBERS} different collectives");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let needs = needs(program, calls, target);
        let lanes = calls.iter().map(|call| call.lanes.map_or(1, |(lanes, _)| lanes)).max().unwrap_or(1);
        let counts_full_turns = calls.iter().any(|call| call.levels.is_some());
        let mut windows = OfProgram {
            cells: Windows::of_cells(b, lanes, counts_full_turns),
            stages: Windows::of_stages(b, "stage", lanes, slot_bytes),
            shards: Windows::of_stages(b, "shards", lanes, shard_bytes),
        };
        for ((entry, key), need) in needs {
            channels.add(b, entry, key, &need, &mut windows);
        }
        Ok(channels)
    }

    fn add(&mut self, b: &mut Builder, entry: Entry, key: Key, need: &Need, windows: &mut OfProgram) {
        let OfProgram { cells, stages, shards } = windows;
        let base = key.map_or("world".into(), |tensor| name(b.program(), tensor));
        let lines: Shape = smallvec![b.extent_int(cells.lanes), b.extent_int(2), b.extent_world(), b.extent_int(LINE)];
        let window = add_window(b, entry, key, &format!("{base}_cells"), DType::I32, lines, cells);
        self.cells.insert((entry, key), window);
        for (dtypes, what, windows, made) in [
            (&need.mails, "mail", cells, &mut self.mails),
            (&need.stages, "stage", stages, &mut self.stages),
            (&need.shards, "shards", shards, &mut self.shards),
        ] {
            for &dtype in dtypes {
                let shape = smallvec![windows.elements(b, dtype)];
                let window = add_window(b, entry, key, &format!("{base}_{what}_{dtype}"), dtype, shape, windows);
                made.insert((entry, key, dtype), window);
            }
        }
    }

    /// The cells of a call's channel.
    pub(super) fn cells(&self, program: &Program, call: &Call) -> Tensor {
        self.cells[&(call.entry, key(program, call))]
    }

    /// The cells of a call's channel, as elements of a type.
    pub(super) fn mail(&self, program: &Program, call: &Call, dtype: DType) -> Option<Tensor> {
        self.mails.get(&(call.entry, key(program, call), dtype)).copied()
    }

    /// The stage of a call's channel, for elements of a type.
    pub(super) fn stage(&self, program: &Program, call: &Call, dtype: DType) -> Option<Stage> {
        let tensor = self.stages.get(&(call.entry, key(program, call), dtype)).copied()?;
        Some(Stage { tensor, slot_bytes: self.slot_bytes })
    }

    /// The same for what goes between hosts.
    pub(super) fn shards(&self, program: &Program, call: &Call, dtype: DType) -> Option<Stage> {
        let tensor = self.shards.get(&(call.entry, key(program, call), dtype)).copied()?;
        Some(Stage { tensor, slot_bytes: self.shard_bytes })
    }

    /// What a call is called, and its number.
    pub(super) fn number(&self, program: &Program, call: &Call, target: &Target) -> (String, i64) {
        let label = algorithms::label(program, call, target);
        let number = self.numbers[&label];
        (label, number)
    }
}

/// What the calls of an entry need of a channel.
#[derive(Default)]
struct Need {
    mails: Vec<DType>,
    stages: Vec<DType>,
    shards: Vec<DType>,
}

/// The windows of all channels.
struct OfProgram {
    cells: Windows,
    stages: Windows,
    shards: Windows,
}

/// Another window parameter of an entry, and its arguments.
fn add_window(
    b: &mut Builder,
    entry: Entry,
    key: Key,
    name: &str,
    dtype: DType,
    shape: Shape,
    windows: &mut Windows,
) -> Tensor {
    for dispatch in dispatches(b.program(), entry) {
        let channel = argument(b.program(), dispatch, key);
        let view = windows.view(b, channel, dtype, shape.clone());
        b.add_argument(dispatch, view);
    }
    b.add_param_window(entry, name, dtype, shape)
}

fn needs(program: &Program, calls: &[Call], target: &Target) -> BTreeMap<(Entry, Key), Need> {
    let mut needs: BTreeMap<(Entry, Key), Need> = BTreeMap::new();
    for call in calls {
        let need = needs.entry((call.entry, key(program, call))).or_default();
        let mailed = algorithms::mailed(program, call, target).map(|dtype| (&mut need.mails, dtype));
        let staged = algorithms::staged(program, call, target).map(|dtype| (&mut need.stages, dtype));
        let sharded = hierarchy::layout(program, call, target).map(|layout| (&mut need.shards, layout.dtype));
        for (dtypes, dtype) in mailed.into_iter().chain(staged).chain(sharded) {
            if !dtypes.contains(&dtype) {
                dtypes.push(dtype);
            }
        }
    }
    needs
}

/// The window that names a call's channel.
pub(super) fn key(program: &Program, call: &Call) -> Key {
    call.collective.signal.or(call.collective.window()).map(|window| program.root(window))
}

fn name(program: &Program, tensor: Tensor) -> String {
    program.tensors[tensor].name.clone().unwrap_or_else(|| "window".into())
}

pub(super) fn dispatches(program: &Program, entry: Entry) -> Vec<Op> {
    let of_entry = |op: &Op| matches!(program.ops[*op].kind, OpKind::Dispatch { entry: e, .. } if e == entry);
    program.ops.keys().filter(of_entry).collect()
}

/// The buffer whose view a dispatch passes for a window parameter.
pub(super) fn argument(program: &Program, dispatch: Op, key: Key) -> Option<Buffer> {
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
