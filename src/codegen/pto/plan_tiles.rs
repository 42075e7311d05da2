//! Gives each tile of a task its place in the unified buffer.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::effects::{Place, effects};
use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::{Block, DType, OpKind, Program, Tile};

use super::target::Target;

/// Bytes of a block, of which every row of a tile is a multiple, and every place too.
pub const BLOCK: i64 = 32;

/// Rows and columns of a tile in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// All dimensions but the last one.
    pub rows: i64,
    /// The last dimension.
    pub cols: i64,
}

impl Extent {
    /// Columns, rounded up to whole blocks.
    pub fn padded_cols(self, dtype: DType) -> i64 {
        let block = BLOCK / dtype.size();
        (self.cols + block - 1) / block * block
    }

    /// Bytes, with rows of whole blocks.
    pub fn bytes(self, dtype: DType) -> i64 {
        self.rows.saturating_mul(self.padded_cols(dtype)).saturating_mul(dtype.size())
    }
}

/// Where the tiles of a task lie.
#[derive(Debug, Default)]
pub struct TilePlan {
    /// Offset and extent of each, in order of first use.
    pub tiles: Vec<(Tile, i64, Extent)>,
    /// Bytes that they take, from 0.
    pub bytes: i64,
}

/// Plans the unified buffer for the body of a task. Tiles share bytes if the last use of one comes before the first of the
/// other; what a loop uses, it uses from its beginning to its end.
pub fn plan_tiles(text: &Text, program: &Program, body: Block, known: Known, target: Target) -> Result<TilePlan> {
    let mut uses = Uses { program, lives: BTreeMap::new(), order: Vec::new(), time: 0 };
    uses.block(body, None);
    let mut plan = TilePlan::default();
    let mut placed: Vec<((u32, u32), i64, i64)> = Vec::new();
    for tile in uses.order {
        let data = &program.tiles[tile];
        let numbers: Vec<i64> =
            data.shape.iter().map(|&e| program.extents.eval(e, known).unwrap_or(i64::MAX)).collect();
        let (&cols, outer) = numbers.split_last().expect("a tile has a dimension");
        let rows = outer.iter().fold(1i64, |rows, &n| rows.saturating_mul(n));
        let extent = Extent { rows, cols };
        let bytes = extent.bytes(data.dtype);
        if rows > Target::MAX_ROWS {
            let message = format!(
                "tile {} {numbers:?} {} has {rows} rows, but {} moves at most {} at once; load it in parts",
                text.tile(tile),
                data.dtype,
                target.name(),
                Target::MAX_ROWS
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let life = uses.lives[&tile];
        let offset = lowest_free(&placed, life, bytes);
        placed.push((life, offset, bytes));
        plan.bytes = plan.bytes.max(offset.saturating_add(bytes));
        plan.tiles.push((tile, offset, extent));
    }
    if plan.bytes > target.ub_bytes() {
        return Err(too_large(text, program, &plan, 0, target));
    }
    Ok(plan)
}

/// The task's tiles and `more` bytes do not fit.
pub fn too_large(text: &Text, program: &Program, plan: &TilePlan, more: i64, target: Target) -> Error {
    let mut message = format!(
        "the tiles of the task take {} bytes of the unified buffer, but {} has {}",
        plan.bytes.saturating_add(more),
        target.name(),
        target.ub_bytes()
    );
    for &(tile, _, extent) in &plan.tiles {
        let dtype = program.tiles[tile].dtype;
        let Extent { rows, cols } = extent;
        let bytes = extent.bytes(dtype);
        message += &format!("\n  {}: {rows} rows of {cols} {dtype} take {bytes} bytes", text.tile(tile));
    }
    if more > 0 {
        message += &format!("\n  what the op needs besides takes {more} bytes");
    }
    message += "\n  use smaller tiles in a loop; rows take a multiple of 32 bytes";
    Error::new(ErrorKind::Unsupported, message)
}

/// The lowest offset at which nothing lies that lives at the same time.
fn lowest_free(placed: &[((u32, u32), i64, i64)], life: (u32, u32), bytes: i64) -> i64 {
    let mut others: Vec<(i64, i64)> = placed
        .iter()
        .filter(|((first, last), ..)| *first <= life.1 && life.0 <= *last)
        .map(|&(_, offset, bytes)| (offset, offset.saturating_add(bytes)))
        .collect();
    others.sort_unstable();
    others.into_iter().fold(0, |at, (begin, end)| if at.saturating_add(bytes) <= begin { at } else { at.max(end) })
}

/// From when to when each tile is used.
struct Uses<'p> {
    program: &'p Program,
    lives: BTreeMap<Tile, (u32, u32)>,
    order: Vec<Tile>,
    time: u32,
}

impl Uses<'_> {
    /// Notes the uses of a block; inside a loop, as uses of all of it. `tiles` are those of the loop.
    fn block(&mut self, block: Block, mut tiles: Option<&mut Vec<Tile>>) {
        let program = self.program;
        for &op in &program.blocks[block] {
            self.time += 1;
            let kind = &program.ops[op].kind;
            for effect in effects(program, kind) {
                if let Place::Tile(tile) = effect.place {
                    self.note(tile, self.time);
                    if let Some(tiles) = &mut tiles {
                        tiles.push(tile);
                    }
                }
            }
            if let (OpKind::For { body, .. }, None) = (kind, &tiles) {
                let begin = self.time;
                let mut inside = Vec::new();
                self.block(*body, Some(&mut inside));
                for tile in inside {
                    self.note(tile, begin);
                    self.note(tile, self.time);
                }
                continue;
            }
            for inner in kind.blocks() {
                self.block(inner, tiles.as_deref_mut());
            }
        }
    }

    fn note(&mut self, tile: Tile, time: u32) {
        match self.lives.get_mut(&tile) {
            Some((first, last)) => (*first, *last) = ((*first).min(time), (*last).max(time)),
            None => {
                self.lives.insert(tile, (time, time));
                self.order.push(tile);
            }
        }
    }
}
