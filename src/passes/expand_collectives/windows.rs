//! The windows of channels in the host driver, by the buffer that names the channel; none is the world.

use std::collections::HashMap;

use super::channels::LINE_BYTES;
use crate::ir::extent::Shape;
use crate::ir::program::{BufferSize, Loc};
use crate::ir::{BinaryOp, Buffer, Builder, DType, Extent, Op, OpKind, Tensor};

/// One window for each channel, with views of several types.
pub(super) struct Windows {
    pub(super) lanes: i64,
    /// What they are called, behind the name of the channel. Programs of one pool share windows by name, so the name says how
    /// large they are.
    what: String,
    bytes: Extent,
    buffers: HashMap<Option<Buffer>, Buffer>,
    views: HashMap<(Option<Buffer>, DType, usize), Tensor>,
}

impl Windows {
    /// A line for each lane, parity of the synchronisation, and rank.
    ///
    /// Programs of which one counts full turns and the other does not have different ones.
    pub(super) fn of_cells(b: &mut Builder, lanes: i64, counts_full_turns: bool) -> Self {
        let (each, world) = (b.int(lanes * 2 * LINE_BYTES), b.world());
        let bytes = b.binary(BinaryOp::Mul, each, world);
        let bytes = b.extent(bytes).expect("a product of sizes is a size");
        let levels = if counts_full_turns { "_in_levels" } else { "" };
        let what = if lanes == 1 { format!("cells{levels}") } else { format!("cells{levels}_{lanes}") };
        Self { lanes, what, bytes, buffers: HashMap::new(), views: HashMap::new() }
    }

    /// Two slots for each lane.
    pub(super) fn of_stages(b: &mut Builder, name: &str, lanes: i64, slot_bytes: i64) -> Self {
        let bytes = b.extent_int(lanes * 2 * slot_bytes);
        let what = format!("{name}_{lanes}x{slot_bytes}");
        Self { lanes, what, bytes, buffers: HashMap::new(), views: HashMap::new() }
    }

    /// How many elements of a type one has place for.
    pub(super) fn elements(&self, b: &mut Builder, dtype: DType) -> Extent {
        let (bytes, size) = (b.size(self.bytes), b.int(dtype.size()));
        let elements = b.binary(BinaryOp::Div, bytes, size);
        b.extent(elements).expect("a quotient of sizes is a size")
    }

    /// A view of the window of a channel.
    pub(super) fn view(&mut self, b: &mut Builder, channel: Option<Buffer>, dtype: DType, shape: Shape) -> Tensor {
        let key = (channel, dtype, shape.len());
        if let Some(&view) = self.views.get(&key) {
            return view;
        }
        let of = channel.map(|buffer| b.program().buffers[buffer].clone());
        let (base, domain, loc) =
            of.map_or(("world".into(), None, Loc::default()), |data| (data.name, data.domain, data.loc));
        let known = self.buffers.get(&channel).copied();
        let name = b.unused_name(&format!("{base}_{}", self.what));
        let mut made = None;
        let ops = b.apart(loc, |b| {
            let new = |b: &mut Builder| b.alloc_window_in(domain, &name, BufferSize::Bytes(self.bytes));
            let buffer = known.unwrap_or_else(|| new(b));
            made = Some((buffer, b.window(buffer, dtype, shape)));
        });
        let (buffer, view) = made.expect("it was made");
        insert(b, known.or(channel), ops);
        self.buffers.insert(channel, buffer);
        self.views.insert(key, view);
        view
    }
}

/// Puts ops behind the allocation of a buffer, or at the beginning of the host driver.
fn insert(b: &mut Builder, behind: Option<Buffer>, ops: Vec<Op>) {
    let program = b.program();
    let body = program.host.as_ref().expect("a program with dispatches has a host driver").body;
    let allocates = |op: &Op| matches!(program.ops[*op].kind, OpKind::AllocWindow { buffer } if Some(buffer) == behind);
    let allocation = program.blocks[body].iter().copied().find(allocates);
    b.insert(body, allocation, ops);
}
