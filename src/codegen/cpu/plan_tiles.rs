//! Gives each tile and each large array its place in a rank's scratch memory.

use std::collections::HashSet;

use cranelift_entity::SecondaryMap;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::extent::Known;
use crate::ir::{Array, Block, Extent, OpKind, Program, Tile, effects};

/// Alignment of every place: a cache line, the widest vector.
const ALIGN: i64 = 64;

/// Arrays of more bytes lie in scratch memory instead of the stack, and so do those that come when the arrays of the
/// program have filled this much of it: stacks of tasks are small.
const STACK_ARRAY_BYTES: i64 = 4096;
const STACK_BYTES: i64 = 64 << 10;

/// Where things lie in scratch memory.
#[derive(Debug, Default)]
pub struct ScratchPlan {
    /// Offset of each tile.
    pub tiles: SecondaryMap<Tile, i64>,
    /// Offset of each array that is not on the stack.
    pub arrays: SecondaryMap<Array, Option<i64>>,
    /// How often ops read or write each tile.
    pub mentions: SecondaryMap<Tile, u32>,
    /// Bytes of scratch memory.
    pub bytes: i64,
}

/// Plans the scratch memory of a program. Arrays have places of their own; tiles live within one task, so the tiles of
/// different tasks share theirs.
pub fn plan_tiles(program: &Program, known: Known) -> Result<ScratchPlan> {
    let mut plan = ScratchPlan::default();
    let bytes = |what: &dyn Fn() -> String, size: i64, shape: &[Extent]| {
        let extents = shape.iter().map(|&e| program.extents.eval(e, known).filter(|&n| n >= 0));
        extents.into_iter().try_fold(size, |n, e| n.checked_mul(e?)).ok_or_else(|| too_large(&what()))
    };
    let mut on_stack = 0;
    for (array, data) in &program.arrays {
        let name = || format!("array {}", data.name.as_deref().unwrap_or("without a name"));
        let size = bytes(&name, data.ty.dtype().size(), &[data.len])?;
        if size > STACK_ARRAY_BYTES || on_stack + size > STACK_BYTES {
            plan.arrays[array] = Some(reserve(&mut plan.bytes, size).ok_or_else(|| too_large(&name()))?);
        } else {
            on_stack += size;
        }
    }
    let shared = plan.bytes;
    for task in tasks(program) {
        let mut end = shared;
        let mut placed = HashSet::new();
        for tile in tiles(program, task) {
            plan.mentions[tile] += 1;
            if placed.insert(tile) {
                let data = &program.tiles[tile];
                let name = || format!("tile {}", data.name.as_deref().unwrap_or("without a name"));
                let size = bytes(&name, data.dtype.size(), &data.shape)?;
                plan.tiles[tile] = reserve(&mut end, size).ok_or_else(|| too_large(&name()))?;
            }
        }
        plan.bytes = plan.bytes.max(end);
    }
    Ok(plan)
}

/// The bodies of all tasks.
fn tasks(program: &Program) -> Vec<Block> {
    let bodies = program.ops.values().filter_map(|op| match op.kind {
        OpKind::Task { body, .. } => Some(body),
        _ => None,
    });
    bodies.collect()
}

/// The tiles that a task mentions, repeated as often as it does.
fn tiles(program: &Program, task: Block) -> Vec<Tile> {
    let mut tiles = Vec::new();
    program.walk(task, &mut |op| {
        for effect in effects::effects(program, &program.ops[op].kind) {
            if let effects::Place::Tile(tile) = effect.place {
                tiles.push(tile);
            }
        }
    });
    tiles
}

/// Takes `size` bytes at the aligned end of the memory: their offset.
fn reserve(end: &mut i64, size: i64) -> Option<i64> {
    let offset = *end;
    *end = offset.checked_add(size)?.checked_add(ALIGN - 1)? / ALIGN * ALIGN;
    Some(offset)
}

fn too_large(what: &str) -> Error {
    Error::new(ErrorKind::NoMemory, format!("{what} has no size that fits an address space of 64 bits"))
}
