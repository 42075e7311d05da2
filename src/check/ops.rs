//! What each op of a task does.

use std::ops::Range;
use std::rc::Rc;

use smallvec::SmallVec;

use super::fault::{Fault, Step};
use super::machine::{Machine, Odd, Raced, Stop};
use super::memory::{Landing, Piece, ranges};
use super::options::Memory as Model;
use super::plan::{Numbers, Reach};
use super::registers::{Base, Next, Registers, View};
use super::shadow::Access;
use super::signal::{Apply, Awaited, Cell, Note, Seen};
use super::task::{At, Block};
use super::value::{Value, cast, combined, encode, int_op, reduce, tile_op, wrap};
use crate::ir::effects::{Access as Does, Peers};
use crate::ir::op::{Dims, MAX_CONDITIONS, PeerRange};
use crate::ir::{
    Atomic, BinaryOp, FaultKind, NotifyOp, Op, OpKind, ReduceAxis, Scalar, ScalarType, Tensor, Tile, TileOrScalar,
    WaitCmp,
};

/// The parts that an op touches, in the order of the table of effects.
pub(super) type Parts = SmallVec<[Part; 2]>;

/// A part of a tensor at some rank, and what is done to it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub does: Does,
    pub piece: Piece,
    pub ranges: Vec<Range<usize>>,
    /// Of another rank.
    remote: bool,
}

impl Machine<'_> {
    /// Goes on to the block's next signal; yes if it has come to its end.
    pub fn go_on(&mut self, block: &mut Block, entry: &mut Registers) -> Step<bool> {
        match std::mem::replace(&mut block.at, At::Begin) {
            At::Begin => {
                let op = self.who[block.id as usize].op;
                let mut parts = self.locate(block, op)?;
                let kind = &self.plan.program.ops[op].kind;
                let predicate = kind.task().and_then(|(_, options)| options.predicate.as_ref());
                if let Some(predicate) = predicate {
                    let part = parts.pop().expect("a predicate reads an element");
                    if !self.holds(block, op, predicate, &part) {
                        return Ok(true);
                    }
                }
                if let OpKind::Extern { task, blocks, args, .. } = kind {
                    let name = &self.plan.program.tasks[*task].name;
                    let blocks = blocks.map_or(1, |blocks| block.registers.int(blocks));
                    self.callback(block, op, name, args, parts, blocks);
                    return Ok(true);
                }
            }
            At::Notify(op) => self.notify(block, op)?,
            At::Wait(awaited) => self.acquire(block, &awaited),
            At::End(cells) => {
                cells.iter().for_each(|awaited| self.acquire(block, awaited));
                return Ok(true);
            }
        }
        loop {
            let op = match block.registers.next(self.plan, Some(entry), false)? {
                Next::Op(op) => op,
                Next::Drain => unreachable!("a task has nothing pending"),
                Next::TooLong => {
                    self.stop.get_or_insert(Stop::TooLong);
                    return Ok(true);
                }
                Next::End if block.deferred.is_empty() => return Ok(true),
                Next::End => {
                    self.begin_waiter(block);
                    block.at = At::End(block.deferred.clone());
                    return Ok(false);
                }
            };
            match self.plan.program.ops[op].kind {
                OpKind::Notify { .. } => {
                    block.at = At::Notify(op);
                    return Ok(false);
                }
                OpKind::Wait { window, expected, cmp, .. } => {
                    block.at = At::Wait(self.awaited(block, op, window, expected, cmp)?);
                    return Ok(false);
                }
                OpKind::DeferWait { window, expected, .. } => {
                    let awaited = self.awaited(block, op, window, expected, WaitCmp::Ge)?;
                    block.deferred.push(awaited);
                    if block.deferred.len() as i64 > MAX_CONDITIONS {
                        let count = block.deferred.len() as i64;
                        self.odd.push(Odd::Waiters { by: block.id, count });
                    }
                }
                _ => self.op(block, op)?,
            }
        }
    }

    fn op(&mut self, block: &mut Block, op: Op) -> Step {
        let plan = self.plan;
        let program = plan.program;
        let kind = &program.ops[op].kind;
        let parts = self.locate(block, op)?;
        parts.iter().for_each(|part| self.touch(block, op, part));
        match kind {
            OpKind::Slice { dst, src, at } => self.slice(&mut block.registers, op, *dst, *src, at)?,
            OpKind::Flatten { dst, src } => self.flatten(&mut block.registers, *dst, *src),
            OpKind::Read { dst, src, .. } => {
                let dtype = program.tensors[*src].dtype;
                let value = self.memory.elements(parts[0].piece, &parts[0].ranges, dtype)[0];
                block.registers.set(*dst, wrap(value, program.scalars[*dst].ty.dtype()));
            }
            OpKind::Write { dst, value, .. } => {
                let dtype = program.tensors[*dst].dtype;
                let bytes = encode(block.registers.as_element(*value, dtype), dtype).to_vec();
                self.write(block, op, &parts[0], bytes, Atomic::None, *dst);
            }
            OpKind::Load { dst, src, .. } | OpKind::RemoteLoad { dst, src, .. } => {
                let dtype = program.tensors[*src].dtype;
                block.tiles[*dst] = self.memory.elements(parts[0].piece, &parts[0].ranges, dtype);
            }
            OpKind::Store { src, dst, .. } => self.store(block, op, *src, &parts[0], Atomic::None, *dst),
            OpKind::RemoteStore { src, dst, atomic, .. } => self.store(block, op, *src, &parts[0], *atomic, *dst),
            OpKind::Put { dst, atomic, .. } => {
                let bytes = self.memory.gather(parts[0].piece, &parts[0].ranges);
                self.write(block, op, &parts[1], bytes, *atomic, *dst);
            }
            OpKind::Get { dst, .. } => {
                let bytes = self.memory.gather(parts[0].piece, &parts[0].ranges);
                self.write(block, op, &parts[1], bytes, Atomic::None, *dst);
            }
            OpKind::GetReduce { op: combine, dst, src, .. } => {
                let (to, from) = parts.split_last().expect("the destination comes last");
                let (dtype, result) = (program.tensors[*src].dtype, program.tensors[*dst].dtype);
                let gifts = from.iter().map(|part| self.memory.elements(part.piece, &part.ranges, dtype));
                let all = combined(*combine, dtype, gifts);
                let bytes = all.into_iter().flat_map(|value| encode(wrap(value, result), result)).collect();
                self.write(block, op, to, bytes, Atomic::None, *dst);
            }
            OpKind::Require { cmp, a, b, peer } => self.require(block, op, *cmp, (*a, *b), *peer)?,
            OpKind::Agree { theirs, mine, peer, .. } => {
                let [they, me] = [theirs, mine].map(|&scalar| block.registers.int(scalar));
                if they != me {
                    let peer = self.rank_about(block, &[*theirs, *mine], *peer);
                    return Err(Fault::new(op, FaultKind::Agree, &[they, peer], &[me]));
                }
            }
            OpKind::Full { dst, value } => {
                let value = block.registers.as_element(*value, program.tiles[*dst].dtype);
                let len = plan.tiles[*dst].iter().product::<i64>();
                block.tiles[*dst] = vec![value; len as usize];
            }
            OpKind::Copy { dst, src } => block.tiles[*dst] = block.tiles[*src].clone(),
            OpKind::Cast { dst, src } => {
                let (from, to) = (program.tiles[*src].dtype, program.tiles[*dst].dtype);
                block.tiles[*dst] = block.tiles[*src].iter().map(|&value| cast(value, from, to)).collect();
            }
            OpKind::Tile { op: tile, dst, a, b } => {
                let dtype = program.tiles[*a].dtype;
                let a = &block.tiles[*a];
                let result: Option<Vec<Value>> = match b {
                    TileOrScalar::Tile(b) => {
                        a.iter().zip(&block.tiles[*b]).map(|(&x, &y)| tile_op(*tile, dtype, x, y)).collect()
                    }
                    TileOrScalar::Scalar(b) => {
                        let b = block.registers.as_element(*b, dtype);
                        a.iter().map(|&x| tile_op(*tile, dtype, x, b)).collect()
                    }
                };
                block.tiles[*dst] = result.ok_or_else(|| Fault::new(op, FaultKind::Division, &[], &[]))?;
            }
            OpKind::Reduce { op, axis, dst, src } => {
                let (shape, dtype) = (&plan.tiles[*src], program.tiles[*src].dtype);
                let (rows, cols) = (shape[0] as usize, shape[1] as usize);
                let tile = &block.tiles[*src];
                let lines: Vec<Vec<Value>> = match axis {
                    ReduceAxis::Row => (0..rows).map(|i| tile[i * cols..][..cols].to_vec()).collect(),
                    ReduceAxis::Col => (0..cols).map(|j| (0..rows).map(|i| tile[i * cols + j]).collect()).collect(),
                };
                block.tiles[*dst] = lines.iter().map(|line| reduce(*op, dtype, line)).collect();
            }
            kind => unreachable!("{} is no op of a task", kind.name()),
        }
        block.registers.work += 1;
        Ok(())
    }

    /// A view of a part of a tensor.
    pub fn slice(&mut self, registers: &mut Registers, op: Op, dst: Tensor, src: Tensor, at: &Dims) -> Step {
        let at = registers.ints(at);
        self.check(op, 0, src, &at, &self.plan.shapes[dst])?;
        let view = registers.views[src].clone().expect("a slice is of a tensor that is there");
        let offset = view.at(&at);
        Rc::make_mut(&mut registers.views)[dst] = Some(View { offset, ..view });
        Ok(())
    }

    /// All elements of a packed tensor.
    pub fn flatten(&mut self, registers: &mut Registers, dst: Tensor, src: Tensor) {
        let view = registers.views[src].clone().expect("what is flattened is there");
        let strides = Numbers::from_elem(self.plan.program.tensors[src].dtype.size(), 1);
        Rc::make_mut(&mut registers.views)[dst] = Some(View { strides, ..view });
    }

    fn require(&self, block: &Block, op: Op, cmp: BinaryOp, sides: (Scalar, Scalar), peer: Option<Scalar>) -> Step {
        let (a, b) = (block.registers.int(sides.0), block.registers.int(sides.1));
        if int_op(cmp, a.into(), b.into()) == Some(0) {
            let peer = peer.map_or(-1, |peer| self.rank_about(block, &[sides.0, sides.1], peer));
            return Err(Fault::new(op, FaultKind::Require, &[a, peer], &[b]));
        }
        Ok(())
    }

    /// A peer as a rank of the world: numbered in the window that one of two values was read from.
    fn rank_about(&self, block: &Block, values: &[Scalar], peer: Scalar) -> i64 {
        let number = block.registers.int(peer);
        let window = values.iter().find_map(|&value| self.plan.program.window_of(value));
        let rank = window.and_then(|window| {
            let domain = self.plan.domain(block.registers.buffer(self.plan, window));
            usize::try_from(number).ok().and_then(|number| domain.get(number)).copied()
        });
        rank.map_or(number, |rank| rank as i64)
    }

    // Where.

    fn check(&self, op: Op, operand: u32, tensor: Tensor, at: &[i64], extents: &[i64]) -> Step {
        if extents.iter().min() == Some(&0) {
            return Ok(());
        }
        for (dim, &extent) in self.plan.shapes[tensor].iter().enumerate() {
            let end = i128::from(at[dim]) + i128::from(extents[dim]);
            if at[dim] < 0 || extents[dim] < 0 || end > extent.into() {
                return Err(Fault { dim: dim as u32, operand, ..Fault::new(op, FaultKind::Bounds, at, extents) });
            }
        }
        Ok(())
    }

    /// The ranks that peers are, in their order; the own rank without any.
    fn ranks(&self, block: &Block, op: Op, window: Tensor, peers: Option<Peers>) -> Step<SmallVec<[usize; 2]>> {
        let Some(peers) = peers else { return Ok(smallvec::smallvec![block.key.0]) };
        let domain = self.plan.domain(block.registers.buffer(self.plan, window));
        let nranks = domain.len() as i64;
        let fault = |numbers: &[i64]| Fault::new(op, FaultKind::Peer, numbers, &[nranks]);
        match peers {
            Peers::One(peer) => {
                let peer = block.registers.int(peer);
                let inside = (0..nranks).contains(&peer);
                inside.then(|| smallvec::smallvec![domain[peer as usize]]).ok_or_else(|| fault(&[peer]))
            }
            Peers::Range(PeerRange { first, end }) => {
                let (first, end) = (block.registers.int(first), block.registers.int(end));
                let inside = (0..nranks).contains(&first) && (1..=nranks).contains(&end.wrapping_sub(first));
                let ranks = || (first..end).map(|peer| domain[(peer % nranks) as usize]).collect();
                inside.then(ranks).ok_or_else(|| fault(&[first, end]))
            }
        }
    }

    /// The places that an op touches, which are inside their tensors.
    fn locate(&self, block: &Block, op: Op) -> Step<Parts> {
        let plan = self.plan;
        let touches = &plan.touches[op];
        let ranks = touches.iter().map(|touch| self.ranks(block, op, touch.tensor, touch.peers));
        let ranks = ranks.collect::<Step<SmallVec<[_; 2]>>>()?;
        // The destination comes last in the table, and is the first operand.
        let mut parts = Parts::new();
        for (operand, (touch, ranks)) in touches.iter().zip(&ranks).rev().enumerate() {
            let shape = &plan.shapes[touch.tensor];
            let (at, extents) = match &touch.reach {
                Reach::Numbers(extents) => (block.registers.ints(&touch.at), extents.clone()),
                Reach::Scalars(extents) => (block.registers.ints(&touch.at), block.registers.ints(extents)),
                Reach::Whole => (Numbers::from_elem(0, shape.len()), shape.clone()),
            };
            self.check(op, operand as u32, touch.tensor, &at, &extents)?;
            let view = block.registers.views[touch.tensor].as_ref().expect("a tensor is there before it is used");
            let (own, element) = (block.key.0, plan.program.tensors[touch.tensor].dtype.size());
            parts.extend(ranks.iter().rev().map(|&rank| {
                let rank = if matches!(view.base, Base::Window(_)) { rank } else { own };
                Part {
                    does: touch.does,
                    piece: self.memory.piece(view.base, rank, self.first_arg(own)),
                    ranges: ranges(view, &at, &extents, element),
                    remote: rank != own,
                }
            }));
        }
        parts.reverse();
        Ok(parts)
    }

    // Memory.

    /// Notes an access and its races. What is written to another rank is on its way.
    pub(super) fn touch(&mut self, block: &mut Block, op: Op, part: &Part) {
        let does = part.does;
        let flying = part.remote && matches!(does, Does::Write | Does::Accumulate);
        let mut time = block.time;
        if flying && self.is_lazy(op) {
            time = match block.stores {
                Some(stores) => stores,
                None => *block.stores.insert(self.lanes.begin(block.key.0, &block.clock)),
            };
        }
        let (issued, wait) = (block.time, block.wait);
        let access = Access { does, time, issued, wait, flying, op, by: block.id, after: Default::default() };
        let mut races = Vec::new();
        for range in &part.ranges {
            self.memory.shadow_mut(part.piece).touch(range.clone(), access, &block.clock, &mut races);
        }
        for race in races {
            if race.first.does == Does::Accumulate && does == Does::Accumulate {
                self.unordered_sums.get_or_insert((race.first, access));
                continue;
            }
            if self.raced.insert((race.first.op, op)) {
                let after = race.first.after.0;
                self.races.push(Raced {
                    knows_previous: after.piece > 0 && block.clock.covers(after),
                    undrained: block.clock.covers(race.first.issued),
                    race,
                    piece: part.piece,
                });
            }
        }
    }

    /// The end of the task does not drain what the op writes.
    fn is_lazy(&self, op: Op) -> bool {
        self.plan.options.memory == Model::Npu && matches!(self.plan.program.ops[op].kind, OpKind::RemoteStore { .. })
    }

    fn store(&mut self, block: &mut Block, op: Op, src: Tile, to: &Part, atomic: Atomic, dst: Tensor) {
        let dtype = self.plan.program.tensors[dst].dtype;
        let bytes = block.tiles[src].iter().flat_map(|&value| encode(value, dtype)).collect();
        self.write(block, op, to, bytes, atomic, dst);
    }

    /// Writes at once to the own rank. What goes to another one lands by the next ordering point.
    fn write(&mut self, block: &mut Block, op: Op, to: &Part, bytes: Vec<u8>, atomic: Atomic, dst: Tensor) {
        let adds = (atomic == Atomic::Add).then_some(self.plan.program.tensors[dst].dtype);
        let landing = Landing { piece: to.piece, ranges: to.ranges.clone(), bytes, adds, lazy: self.is_lazy(op) };
        if to.remote && self.random.as_mut().is_none_or(|random| random.below(2) == 0) {
            block.landings.push(landing);
        } else {
            self.land(&landing);
        }
    }

    // Signals.

    fn cell(&self, block: &Block, op: Op) -> Step<(Cell, Part)> {
        let part = self.locate(block, op)?.pop().expect("a signal op touches its cell");
        let rank = self.memory.window_of(part.piece).expect("a signal is in a window");
        let era = if self.plan.options.persistent { 0 } else { self.launch(block.key.0) };
        Ok((Cell { era, rank, at: part.ranges[0].start }, part))
    }

    fn awaited(&mut self, block: &Block, op: Op, window: Tensor, value: Scalar, cmp: WaitCmp) -> Step<Awaited> {
        let (cell, _) = self.cell(block, op)?;
        let buffer = block.registers.buffer(self.plan, window);
        let Value::Int(expected) = block.registers.scalar_as(value, ScalarType::I32) else {
            unreachable!("a signal is an integer")
        };
        let awaited = Awaited { op, cell, buffer, expected: expected as i32, cmp };
        let launch = self.launch(block.key.0);
        let history = self.cells.entry(cell).or_default();
        history.waits.entry(launch).or_default().insert((op, awaited.expected));
        Ok(awaited)
    }

    /// Everything that the block has written has landed, and the cell says so.
    fn notify(&mut self, block: &mut Block, op: Op) -> Step {
        let OpKind::Notify { window, value, op: does, .. } = self.plan.program.ops[op].kind else {
            unreachable!("a notify is at hand")
        };
        let (cell, part) = self.cell(block, op)?;
        let Value::Int(value) = block.registers.scalar_as(value, ScalarType::I32) else {
            unreachable!("a signal is an integer")
        };
        let mut landings = std::mem::take(&mut block.landings);
        while !landings.is_empty() {
            let next = self.random.as_mut().map_or(0, |random| random.below(landings.len()));
            self.land(&landings.remove(next));
        }
        if let Some(stores) = block.stores {
            block.clock.learn(stores);
            block.stores = Some(self.lanes.advance(stores));
        }
        let (old, value) = (self.memory.cell(cell.rank, cell.at), value as i32);
        let result = does.apply(old, value);
        self.memory.set_cell(cell.rank, cell.at, result);
        let buffer = block.registers.buffer(self.plan, window);
        let exact = self.plan.exact.contains(&buffer);
        let launch = self.launch(block.key.0);
        let history = self.cells.entry(cell).or_default();
        let by = history.notes.len();
        if result != old {
            for &(time, _, seen) in &history.seen {
                let waits_exactly = self.seen[seen as usize].awaited.is_some_and(|a| a.cmp == WaitCmp::Eq);
                if waits_exactly && !block.clock.covers(time) {
                    self.odd.push(Odd::Moved { cell, seen, by });
                }
            }
        }
        let shadow = self.memory.shadow(part.piece);
        let last_set = history.notes.iter().rposition(|note| note.does == NotifyOp::Set);
        match does {
            NotifyOp::Set => {
                for lost in last_set.unwrap_or(0)..history.notes.len() {
                    let note = &history.notes[lost];
                    // Who only waits for as much as a growing counter has reached loses nothing.
                    let grows = note.does == NotifyOp::Set && value > note.value && !exact;
                    // Nobody has to see how the owner itself takes a signal back.
                    let own = self.who[note.by as usize].rank == cell.rank && block.clock.covers(note.time);
                    let read = shadow.is_read(cell.at, note.time, &block.clock);
                    if !grows && !own && !read && !history.is_seen(lost, &block.clock) {
                        self.odd.push(Odd::Overwritten { cell, lost, by });
                        break;
                    }
                }
                history.released = block.clock.clone();
            }
            NotifyOp::Add => {
                if let Some(set) = last_set
                    && !block.clock.covers(history.notes[set].time)
                {
                    self.odd.push(Odd::Overwritten { cell, lost: by, by: set });
                }
                history.released.join(&block.clock);
            }
        }
        let (clock, time) = (block.clock.clone(), block.time);
        history.notes.push(Note { op, by: block.id, launch, does, value, result, clock, time });
        self.touch(block, op, &part);
        self.footprint.notified = Some((cell, does == NotifyOp::Add));
        block.time = self.lanes.advance(block.time);
        block.clock.learn(block.time);
        Ok(())
    }

    /// A wait is satisfied.
    fn acquire(&mut self, block: &mut Block, awaited: &Awaited) {
        let cell = awaited.cell;
        let part = Part {
            does: Does::Await,
            piece: self.memory.windows(cell.rank),
            ranges: std::iter::once(cell.at..cell.at + 4).collect(),
            remote: false,
        };
        let launch = self.launch(block.key.0);
        let history = self.cells.get_mut(&cell).expect("a wait has made its cell's history");
        let satisfied_before = history.left_by(launch, &block.clock).is_some_and(|left| awaited.holds(left));
        block.clock.join(&history.released);
        let notes = history.notes.len();
        let number = self.seen.len() as u32;
        let before = smallvec::smallvec![block.wait];
        self.seen.push(Seen { awaited: Some(*awaited), by: block.id, launch, notes, before });
        history.seen.push((block.time, notes, number));
        block.wait = number;
        if satisfied_before && !awaited.holds(0) && history.had_to_wait(awaited, launch) {
            self.odd.push(Odd::Stale { awaited: *awaited, by: block.id, launch });
        }
        if !satisfied_before {
            history.own.insert((launch, awaited.op, awaited.expected));
        }
        self.footprint.awaited.push(cell);
        self.touch(block, awaited.op, &part);
    }
}
