//! Blocks and statements.

use super::mistake::*;
use super::{Meaning, Parsed, Parser, Reported};
use crate::ir::builder::MAX_NESTING;
use crate::ir::entity::{Domain, Tensor, Tile};
use crate::ir::lex::{Position, Token, clip};
use crate::ir::op::{Dims, Operand, PeerRange, Region, Staging, TileOrScalar};
use crate::ir::program::{BufferSize, DomainRanks};
use crate::ir::syntax::KEYWORDS;
use crate::ir::types::{Atomic, Combine, NotifyOp, ReduceAxis, ReduceOp, TileOp, WaitCmp};

/// Words that begin a statement.
const STATEMENTS: &[&str] = &[
    "agree",
    "all_to_all",
    "all_to_all_v",
    "allgather",
    "allreduce",
    "at",
    "barrier",
    "broadcast",
    "defer_wait",
    "dispatch",
    "extern",
    "for",
    "get",
    "get_max",
    "get_min",
    "get_prod",
    "get_sum",
    "host_task",
    "if",
    "manual",
    "notify",
    "put",
    "ranks",
    "reduce_scatter",
    "remote_store",
    "require",
    "spmd",
    "store",
    "wait",
];

/// One side of a transfer: a tensor, and where in it the part begins if it is one.
type Side = (Tensor, Option<Dims>);

impl<'t> Parser<'t> {
    /// Statements in braces, in a scope of their own.
    pub(super) fn block(&mut self) -> Parsed<()> {
        if self.builder.nesting() > MAX_NESTING {
            return Err(Reported); // By the builder.
        }
        let open = self.at;
        self.expect("{")?;
        let depth = self.scope.len();
        loop {
            self.skip_newlines();
            match self.token {
                Token::Symbol("}") => {
                    self.advance();
                    break;
                }
                Token::End | Token::Name("program" | "dim" | "const" | "entry" | "host") => {
                    self.unclosed(open);
                    break;
                }
                _ => {}
            }
            if self.statement().is_err() {
                self.recover();
            }
            self.end_of_line();
        }
        self.leave_scope(depth);
        Ok(())
    }

    fn unclosed(&mut self, open: Position) {
        // The blocks around it are not closed either; the innermost one says it for all.
        if self.unclosed.replace(self.at) != Some(self.at) {
            self.report(open, UNBALANCED, "this block is not closed", "end it with }");
        }
    }

    fn statement(&mut self) -> Parsed<()> {
        let at = self.at;
        let Token::Name(word) = self.token else {
            return Err(self.unexpected("a statement", ""));
        };
        match word {
            "at" | "spmd" | "extern" => self.task(at, None),
            "manual" => self.manual(at),
            "defer_wait" => self.defer_wait(at),
            "host_task" => self.host_task(at),
            "for" => self.for_(at),
            "if" => self.if_(at),
            "ranks" => self.ranks(at),
            "store" => self.store(at),
            "put" => self.put(at),
            "get" => self.get(at),
            "get_sum" => self.get_reduce(at, Combine::Sum),
            "get_prod" => self.get_reduce(at, Combine::Prod),
            "get_max" => self.get_reduce(at, Combine::Max),
            "get_min" => self.get_reduce(at, Combine::Min),
            "require" => self.require(at),
            "agree" => self.agree(at),
            "barrier" | "allreduce" | "reduce_scatter" | "broadcast" | "allgather" | "all_to_all" | "all_to_all_v" => {
                self.collective(at, word)
            }
            "remote_store" => self.remote_store(at),
            "notify" => self.notify(at),
            "wait" => self.wait(at),
            "dispatch" => self.dispatch(at),
            _ if KEYWORDS.binary_search(&word).is_ok() => {
                let message = format!("{word:?} does not begin a statement");
                let hint = match word {
                    "else" => "else stands on the line of the } before it",
                    _ => "a result needs a name: t = load x[0, 0] [1, 8]",
                };
                Err(self.report(at, UNEXPECTED, message, hint))
            }
            _ => self.named_statement(at),
        }
    }

    // Blocks.

    fn for_(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let name_at = self.at;
        let name = self.name("a loop index");
        let bounds = name.as_ref().map_err(|_| Reported).and_then(|_| {
            self.expect_word("in")?;
            let first = self.expression()?;
            self.expect("..")?;
            let end = self.expression()?;
            let step = if self.eat_word("step") { self.expression()? } else { self.builder.int(1) };
            Ok((first, end, step))
        });
        let header = bounds.is_ok();
        self.locate(at);
        let zero = self.builder.int(0);
        let (first, end, step) = bounds.unwrap_or((zero, zero, zero));
        let index = self.builder.for_begin(first, end, step);
        let body = self.loop_body(name, name_at, index, header);
        self.locate(at);
        self.builder.for_end();
        body
    }

    fn ranks(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let name_at = self.at;
        let name = self.name("a rank index");
        let bounds = name.as_ref().map_err(|_| Reported).and_then(|_| {
            self.expect_word("in")?;
            let first = self.expression()?;
            self.expect("..")?;
            Ok((first, self.expression()?))
        });
        let header = bounds.is_ok();
        self.locate(at);
        let zero = self.builder.int(0);
        let (first, end) = bounds.unwrap_or((zero, zero));
        let index = self.builder.ranks_begin(first, end);
        let body = self.loop_body(name, name_at, index, header);
        self.locate(at);
        self.builder.ranks_end();
        body
    }

    pub(super) fn loop_body(
        &mut self,
        name: Parsed<&'t str>,
        name_at: Position,
        index: crate::ir::Scalar,
        header: bool,
    ) -> Parsed<()> {
        let depth = self.scope.len();
        if let Ok(name) = name {
            self.locate(name_at);
            self.bind(name_at, name, Meaning::Scalar(index));
            self.builder.name_scalar(index, name);
        }
        let start = if header { Ok(()) } else { self.recover_to_block(false) };
        let body = start.and_then(|()| self.block());
        self.leave_scope(depth);
        body
    }

    fn if_(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let cond = self.expression();
        let header = cond.is_ok();
        self.locate(at);
        let cond = cond.unwrap_or_else(|Reported| self.builder.bool(false));
        self.builder.if_begin(cond);
        let start = if header { Ok(()) } else { self.recover_to_block(false) };
        let mut body = start.and_then(|()| self.block());
        if body.is_ok() && self.eat_word("else") {
            self.locate(at);
            self.builder.else_begin();
            let else_at = self.at;
            body = if self.is_word("if") { self.if_(else_at) } else { self.block() };
        }
        self.locate(at);
        self.builder.if_end();
        body
    }

    // Definitions and assignments.

    fn named_statement(&mut self, at: Position) -> Parsed<()> {
        let name = self.name("a value")?;
        if self.is("[") {
            return self.element_assignment(at, name);
        }
        if !self.is("=") {
            let hint = match nearest(name, STATEMENTS.iter().copied()) {
                Some(word) => format!("{word:?} is a statement"),
                None if self.is("+=") => format!("write {0} = {0} + ...", clip(name)),
                None => String::new(),
            };
            return Err(self.unexpected(&format!("\"=\" after {:?}", clip(name)), &hint));
        }
        self.advance();
        if matches!(self.token, Token::Name("at" | "spmd" | "extern")) {
            return self.task(at, Some(name));
        }
        match self.names.get(name).copied() {
            None => self.definition(at, name),
            Some(Meaning::Unknown) => Err(Reported),
            Some(Meaning::Var(var)) => {
                let value = self.expression()?;
                self.locate(at);
                self.builder.var_set(var, value);
                Ok(())
            }
            Some(Meaning::Tile(tile)) => match self.value(at, name)? {
                Meaning::Tile(value) => {
                    self.locate(at);
                    self.builder.assign(tile, value);
                    Ok(())
                }
                other => {
                    let message = format!("{:?} is a tile; {} cannot be assigned to it", clip(name), self.kind(other));
                    Err(self.report(at, WRONG_KIND, message, "full makes a tile of a value"))
                }
            },
            Some(found) => {
                let message = format!("{:?} is {} and never changes", clip(name), self.kind(found));
                let hint = match found {
                    Meaning::Scalar(_) => format!("for a variable write {} = var i32 = ...", clip(name)),
                    Meaning::Array(_) | Meaning::Tensor(_) => format!("elements change: {}[i] = ...", clip(name)),
                    _ => String::new(),
                };
                Err(self.report(at, IMMUTABLE, message, hint))
            }
        }
    }

    fn element_assignment(&mut self, at: Position, name: &'t str) -> Parsed<()> {
        match self.look_up(at, name)? {
            Meaning::Array(array) => {
                let index = self.array_index(name)?;
                self.expect("=")?;
                let value = self.expression()?;
                self.locate(at);
                self.builder.array_set(array, index, value);
            }
            Meaning::Tensor(tensor) => {
                let offsets = self.offsets()?;
                self.expect("=")?;
                let value = self.expression()?;
                self.locate(at);
                self.builder.write(tensor, &offsets, value);
            }
            found => return Err(self.wrong_kind(at, name, found, "a tensor or array", "")),
        }
        Ok(())
    }

    fn definition(&mut self, at: Position, name: &'t str) -> Parsed<()> {
        let value = self.value(at, name);
        self.locate(at);
        let meaning = match value {
            Ok(Meaning::Scalar(scalar)) => Meaning::Scalar(self.builder.name_scalar(scalar, name)),
            Ok(Meaning::Tile(tile)) => {
                self.builder.name_tile(tile, name);
                Meaning::Tile(tile)
            }
            Ok(Meaning::Tensor(tensor)) => {
                self.builder.name_tensor(tensor, name);
                Meaning::Tensor(tensor)
            }
            Ok(other) => other,
            Err(Reported) => Meaning::Unknown,
        };
        self.bind(at, name, meaning);
        if matches!(meaning, Meaning::Unknown) { Err(Reported) } else { Ok(()) }
    }

    /// The right side of a definition.
    fn value(&mut self, at: Position, name: &'t str) -> Parsed<Meaning> {
        let Token::Name(word) = self.token else { return self.expression().map(Meaning::Scalar) };
        let verb_at = self.at;
        match word {
            "var" => {
                self.advance();
                let ty = self.scalar_type()?;
                self.expect("=")?;
                let init = self.expression()?;
                self.locate(at);
                Ok(Meaning::Var(self.builder.var(Some(name), ty, init)))
            }
            "array" => {
                self.advance();
                let ty = self.scalar_type()?;
                self.expect("[")?;
                let len = self.extent()?;
                self.expect("]")?;
                self.expect("=")?;
                let fill = self.expression()?;
                self.locate(at);
                Ok(Meaning::Array(self.builder.array(Some(name), ty, len, fill)))
            }
            "slice" => {
                self.advance();
                let (src, offsets) = self.place()?;
                let shape = self.shape()?;
                self.locate(at);
                Ok(Meaning::Tensor(self.builder.slice(src, &offsets, shape)))
            }
            "flatten" => {
                self.advance();
                let src = self.tensor()?;
                self.locate(at);
                Ok(Meaning::Tensor(self.builder.flatten(src)))
            }
            "alloc_window" => {
                self.advance();
                let size = if self.eat_word("bytes") {
                    BufferSize::Bytes(self.extent()?)
                } else {
                    let (shape, dtype) = self.tensor_type()?;
                    BufferSize::Shape(dtype, shape)
                };
                let domain = if self.eat_word("in") { Some(self.domain_name()?) } else { None };
                self.locate(at);
                Ok(Meaning::Buffer(self.builder.alloc_window_in(domain, name, size)))
            }
            "domain" => {
                self.advance();
                let ranks = self.domain_ranks()?;
                self.locate(at);
                Ok(Meaning::Domain(self.builder.domain(name, ranks)))
            }
            "window" => {
                self.advance();
                let buffer_at = self.at;
                let buffer_name = self.name("a window buffer")?;
                let buffer = match self.look_up(buffer_at, buffer_name)? {
                    Meaning::Buffer(buffer) => buffer,
                    found => return Err(self.wrong_kind(buffer_at, buffer_name, found, "a window buffer", "")),
                };
                let (shape, dtype) = self.tensor_type()?;
                self.locate(at);
                Ok(Meaning::Tensor(self.builder.window(buffer, dtype, shape)))
            }
            "load" => {
                self.advance();
                let (src, offsets) = self.place()?;
                let shape = self.shape()?;
                self.locate(at);
                Ok(Meaning::Tile(self.builder.load(src, &offsets, shape)))
            }
            "remote_load" => {
                self.advance();
                let (src, offsets) = self.place()?;
                let peer = self.peer()?;
                let shape = self.shape()?;
                self.locate(at);
                Ok(Meaning::Tile(self.builder.remote_load(src, peer, &offsets, shape)))
            }
            "full" => {
                self.advance();
                let dtype = self.dtype()?;
                let shape = self.shape()?;
                let value = self.expression()?;
                self.locate(at);
                Ok(Meaning::Tile(self.builder.full(dtype, shape, value)))
            }
            "copy" => {
                self.advance();
                let src = self.tile()?;
                self.locate(at);
                Ok(Meaning::Tile(self.builder.copy(src)))
            }
            // `cast(v, i32)`, `min(a, b)` and `max(a, b)` are expressions.
            "cast" | "min" | "max" if self.next_is_parenthesis() => self.expression().map(Meaning::Scalar),
            "cast" => {
                self.advance();
                let src = self.tile()?;
                let dtype = self.dtype()?;
                self.locate(at);
                Ok(Meaning::Tile(self.builder.tile_cast(dtype, src)))
            }
            "row_sum" | "row_max" | "col_sum" | "col_max" => {
                self.advance();
                let src = self.tile()?;
                self.locate(at);
                let axis = if word.starts_with("row") { ReduceAxis::Row } else { ReduceAxis::Col };
                let op = if word.ends_with("sum") { ReduceOp::Sum } else { ReduceOp::Max };
                Ok(Meaning::Tile(self.builder.reduce(op, axis, src)))
            }
            _ if let Some(op) = TileOp::from_name(word) => {
                self.advance();
                let a = self.tile()?;
                self.expect(",")?;
                let b = self.tile_or_scalar()?;
                self.locate(at);
                Ok(Meaning::Tile(self.builder.tile_op(op, a, b)))
            }
            _ => match self.names.get(word) {
                Some(&Meaning::Tensor(tensor)) if self.in_host => {
                    self.advance();
                    self.rank_slice(verb_at, word, tensor).map(Meaning::Tensor)
                }
                Some(&found @ Meaning::Tile(_)) => {
                    let hint = "tiles are copied with copy t, and combined with add t, u and the like";
                    Err(self.wrong_kind(verb_at, word, found, "a value", hint))
                }
                _ => self.expression().map(Meaning::Scalar),
            },
        }
    }

    /// `0..4`, or `[0, 2]`.
    fn domain_ranks(&mut self) -> Parsed<DomainRanks> {
        if !self.is("[") {
            let first = self.extent()?;
            self.expect("..")?;
            return Ok(DomainRanks::Range(first, self.extent()?));
        }
        let mut ranks = Vec::new();
        self.list("[", "]", |p| {
            ranks.push(p.extent()?);
            Ok(())
        })?;
        Ok(DomainRanks::List(ranks))
    }

    fn domain_name(&mut self) -> Parsed<Domain> {
        let at = self.at;
        let name = self.name("a domain")?;
        match self.look_up(at, name)? {
            Meaning::Domain(domain) => Ok(domain),
            found => Err(self.wrong_kind(at, name, found, "a domain", "name one before: tp = domain 0..4")),
        }
    }

    pub(super) fn tile(&mut self) -> Parsed<Tile> {
        let at = self.at;
        let name = self.name("a tile")?;
        match self.look_up(at, name)? {
            Meaning::Tile(tile) => Ok(tile),
            found => Err(self.wrong_kind(at, name, found, "a tile", "load or full makes one")),
        }
    }

    fn tile_or_scalar(&mut self) -> Parsed<TileOrScalar> {
        if let Token::Name(name) = self.token
            && let Some(&Meaning::Tile(tile)) = self.names.get(name)
        {
            self.advance();
            return Ok(TileOrScalar::Tile(tile));
        }
        self.expression().map(TileOrScalar::Scalar)
    }

    // Memory and other ranks.

    fn store(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let src = self.tile()?;
        self.expect("->")?;
        let (dst, offsets) = self.place()?;
        self.locate(at);
        self.builder.store(src, dst, &offsets);
        Ok(())
    }

    fn put(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let dst = self.tensor()?;
        let dst_offsets = self.optional_offsets()?;
        let peer = self.peer()?;
        self.expect("<-")?;
        let src = self.tensor()?;
        let src_offsets = self.optional_offsets()?;
        let shape = self.optional_offsets()?;
        let region = self.region(at, dst_offsets, src_offsets, shape)?;
        let atomic = if self.eat_word("add") { Atomic::Add } else { Atomic::None };
        let staging = self.staging()?;
        self.locate(at);
        self.builder.put(dst, peer, src, region, atomic, staging);
        Ok(())
    }

    fn get(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let ((dst, dst_offsets), (src, src_offsets)) = self.sides()?;
        let peer = self.peer()?;
        let shape = self.optional_offsets()?;
        let region = self.region(at, dst_offsets, src_offsets, shape)?;
        if self.is_word("add") {
            return Err(self.unexpected("the end of the line", "only put and remote_store can add"));
        }
        let staging = self.staging()?;
        self.locate(at);
        self.builder.get(dst, peer, src, region, staging);
        Ok(())
    }

    fn get_reduce(&mut self, at: Position, op: Combine) -> Parsed<()> {
        self.advance();
        let ((dst, dst_offsets), (src, src_offsets)) = self.sides()?;
        let first = self.peer()?;
        self.expect("..")?;
        let peers = PeerRange { first, end: self.primary()? };
        let shape = self.optional_offsets()?;
        let region = self.region(at, dst_offsets, src_offsets, shape)?;
        self.locate(at);
        self.builder.get_reduce(op, dst, peers, src, region);
        Ok(())
    }

    /// `dst[i] <- src[j]`, the offsets if there are any.
    fn sides(&mut self) -> Parsed<(Side, Side)> {
        let dst = (self.tensor()?, self.optional_offsets()?);
        self.expect("<-")?;
        Ok((dst, (self.tensor()?, self.optional_offsets()?)))
    }

    fn optional_offsets(&mut self) -> Parsed<Option<Dims>> {
        if self.is("[") { self.offsets().map(Some) } else { Ok(None) }
    }

    fn region(
        &mut self,
        at: Position,
        dst: Option<Dims>,
        src: Option<Dims>,
        shape: Option<Dims>,
    ) -> Parsed<Option<Region>> {
        match (dst, src, shape) {
            (Some(dst), Some(src), Some(shape)) => Ok(Some(Region { dst, src, shape })),
            (None, None, None) => Ok(None),
            _ => {
                let message = "a transfer of a part needs offsets on both sides and a shape";
                let hint = "give all three to move a part, or none to move the whole";
                Err(self.report(at, PARTIAL_REGION, message, hint))
            }
        }
    }

    fn staging(&mut self) -> Parsed<Staging> {
        let mut staging = Staging::default();
        if self.eat_word("chunk") {
            let at = self.at;
            let shape = self.shape()?;
            let numbers: Option<Vec<i64>> = shape.iter().map(|e| self.builder.program().extents.constant(*e)).collect();
            let Some(&[rows, cols]) = numbers.as_deref() else {
                return Err(self.report(
                    at,
                    UNEXPECTED,
                    "chunk takes the numbers of rows and columns",
                    "chunk [1, 64]",
                ));
            };
            (staging.chunk_rows, staging.chunk_cols) = (rows, cols);
        }
        staging.pipeline = self.eat_word("pipeline");
        Ok(staging)
    }

    fn remote_store(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let src = self.tile()?;
        self.expect("->")?;
        let (dst, offsets) = self.place()?;
        let peer = self.peer()?;
        let atomic = if self.eat_word("add") { Atomic::Add } else { Atomic::None };
        self.locate(at);
        self.builder.remote_store(src, dst, peer, &offsets, atomic);
        Ok(())
    }

    fn notify(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let (window, offsets) = self.place()?;
        let peer = self.peer()?;
        let op = match self.token {
            Token::Symbol("+=") => NotifyOp::Add,
            Token::Symbol("=") => NotifyOp::Set,
            _ => return Err(self.unexpected("\"+=\" or \"=\"", "+= adds to the cell, = replaces it")),
        };
        self.advance();
        let value = self.expression()?;
        self.locate(at);
        self.builder.notify(window, peer, &offsets, value, op);
        Ok(())
    }

    fn wait(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let (window, offsets) = self.place()?;
        let cmp = match self.token {
            Token::Symbol(">=") => WaitCmp::Ge,
            Token::Symbol("==") => WaitCmp::Eq,
            _ => return Err(self.unexpected("\">=\" or \"==\"", "a wait compares its cell with >= or ==")),
        };
        self.advance();
        let expected = self.expression()?;
        self.locate(at);
        self.builder.wait(window, &offsets, expected, cmp);
        Ok(())
    }

    // Host driver.

    /// `x[r]` in the host driver: one rank's part.
    fn rank_slice(&mut self, at: Position, name: &str, tensor: Tensor) -> Parsed<Tensor> {
        let list_at = self.at;
        match self.offsets()?.as_slice() {
            &[rank] => {
                self.locate(at);
                Ok(self.builder.slice_rank(tensor, rank))
            }
            more => {
                let message = format!("a rank's part of {:?} has one index, not {}", clip(name), more.len());
                Err(self.report(list_at, UNEXPECTED, message, "elements are read inside tasks"))
            }
        }
    }

    fn dispatch(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let name_at = self.at;
        let name = self.label("an entry")?;
        let entry = self.entries.get(name).copied();
        if entry.is_none() {
            let hint = nearest(name, self.entries.keys().copied()).map(|n| format!("{n:?} is an entry"));
            let message = format!("no entry is named {:?}", clip(name));
            self.report(name_at, UNKNOWN_NAME, message, hint.unwrap_or_default());
        }
        let mut args = Vec::new();
        self.list("(", ")", |p| {
            args.push(p.operand()?);
            Ok(())
        })?;
        self.expect_word("device")?;
        let device = self.expression()?;
        self.locate(at);
        self.builder.dispatch(entry.ok_or(Reported)?, device, args);
        Ok(())
    }

    fn operand(&mut self) -> Parsed<Operand> {
        let at = self.at;
        if let Token::Name(name) = self.token
            && let Some(&Meaning::Tensor(tensor)) = self.names.get(name)
        {
            self.advance();
            let tensor = if self.is("[") { self.rank_slice(at, name, tensor)? } else { tensor };
            return Ok(Operand::Tensor(tensor));
        }
        self.expression().map(Operand::Scalar)
    }
}
