//! Programs as text.
//!
//! What is printed parses back to a program that prints the same. Ops have a line each; a result that is used once is
//! written where it is used; loops and ifs around one statement share its line while it is short.

mod expr;
mod inline;
mod layout;
mod names;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use super::collective::{Collective, CollectiveKind};
use super::entity::{Array, Block, Domain, Extent, Op, Scalar, Task, Tensor, Tile, Var};
use super::extent::ExtentData;
use super::op::{CallbackArg, Expr, OpKind, Operand, Region, Staging, TaskOptions, TileOrScalar};
use super::program::{BufferSize, DomainRanks, Param, Program, TensorDef};
use super::syntax::{LINE_WIDTH, Precedence};
use super::types::{Atomic, BinaryOp, Mode, ReduceAxis};
use inline::Inline;
use layout::{Layout, Line};
use names::Names;

/// The whole program.
pub fn print(program: &Program) -> String {
    Text::new(program).program()
}

/// One op on one line, without the blocks that it owns: `for k in 0..n`, `wait sig[src, 0] >= epoch`.
pub fn op_text(program: &Program, op: Op) -> String {
    Text::new(program).op(op)
}

/// A value: its name, or how it is computed where it has none.
pub fn scalar_text(program: &Program, scalar: Scalar) -> String {
    Text::new(program).scalar(scalar)
}

/// A tensor's name in the text.
pub fn tensor_text(program: &Program, tensor: Tensor) -> String {
    Text::new(program).tensor(tensor)
}

/// A tensor's type: `window[world, 1] i32`.
pub fn tensor_type_text(program: &Program, tensor: Tensor) -> String {
    Text::new(program).tensor_type(tensor)
}

/// A size.
pub fn extent_text(program: &Program, extent: Extent) -> String {
    Text::new(program).extent(extent)
}

/// How a program reads; for many questions about the same program.
pub struct Text<'p> {
    program: &'p Program,
    inline: Inline,
    names: Names,
}

impl<'p> Text<'p> {
    /// Decides what stands where and what it is called.
    pub fn new(program: &'p Program) -> Self {
        let inline = Inline::new(program);
        let names = Names::new(program, &inline);
        Self { program, inline, names }
    }

    /// The whole program.
    pub fn program(&self) -> String {
        let program = self.program;
        let mut layout = Layout::default();
        layout.line(0, format!("program {}", program.name));
        for dim in program.extents.dims.values() {
            match dim.value {
                Some(value) => layout.line(0, format!("const {} = {}", dim.name, self.extent(value))),
                None => layout.line(0, format!("dim {}", dim.name)),
            }
        }
        for entry in program.entries.values() {
            layout.line(0, String::new());
            self.function(&mut layout, &format!("entry {}(", entry.name), &entry.params, entry.body);
        }
        if let Some(host) = &program.host {
            layout.line(0, String::new());
            self.function(&mut layout, "host (", &host.params, host.body);
        }
        layout.finish()
    }

    /// One op on one line, without the blocks that it owns.
    pub fn op(&self, op: Op) -> String {
        let kind = &self.program.ops[op].kind;
        match *kind {
            OpKind::SliceRank { dst, src, rank } if self.inline.tensor(dst) => self.place(src, &[rank]),
            _ if self.inline.op(kind) => {
                let mut out = String::new();
                self.put_result(&mut out, kind);
                out
            }
            _ => self.statement(kind),
        }
    }

    /// The op has no line of its own: it is written inside the statement that uses its result.
    pub fn is_inline(&self, op: Op) -> bool {
        self.inline.op(&self.program.ops[op].kind)
    }

    /// Some op uses the value.
    pub fn is_used(&self, scalar: Scalar) -> bool {
        self.inline.is_used(scalar)
    }

    /// A tensor's name, or the rank slice that stands in its place.
    pub fn tensor(&self, tensor: Tensor) -> String {
        match self.program.tensors[tensor].def {
            TensorDef::HostSlice(src, rank) if self.inline.tensor(tensor) => self.place(src, &[rank]),
            _ => self.names.tensors[tensor].clone(),
        }
    }

    /// A tile's name.
    pub fn tile(&self, tile: Tile) -> &str {
        &self.names.tiles[tile]
    }

    /// A variable's name.
    pub fn var(&self, var: Var) -> &str {
        &self.names.vars[var]
    }

    /// A local array's name.
    pub fn array(&self, array: Array) -> &str {
        &self.names.arrays[array]
    }

    /// A tensor's type: `window[world, 1] i32`.
    pub fn tensor_type(&self, tensor: Tensor) -> String {
        let data = &self.program.tensors[tensor];
        let word = if self.program.is_window(tensor) { "window" } else { "tensor" };
        format!("{word}{} {}", self.shape(&data.shape), data.dtype)
    }

    /// A parameter with its type.
    pub fn param(&self, param: Param) -> String {
        match param {
            Param::Tensor(t) => {
                let mut text = format!("{}: {}", self.names.tensors[t], self.tensor_type(t));
                let data = &self.program.tensors[t];
                if let TensorDef::Param(.., direction) | TensorDef::HostParam(_, direction) = data.def {
                    _ = write!(text, " {direction}");
                }
                text.push_str(if data.manual { " manual" } else { "" });
                text
            }
            Param::Scalar(s) => format!("{}: {}", self.names.scalars[s], self.program.scalars[s].ty),
        }
    }

    /// Parameters on one line if they fit; otherwise filled, with windows on lines of their own.
    fn function(&self, layout: &mut Layout, head: &str, params: &[Param], body: Block) {
        let is_window = |p: &Param| match *p {
            Param::Tensor(t) => Some(self.program.is_window(t)),
            Param::Scalar(_) => None,
        };
        let texts: Vec<String> = params.iter().map(|p| self.param(*p)).collect();
        let one_line = format!("{head}{}) {{", texts.join(", "));
        if one_line.len() <= LINE_WIDTH {
            return self.braced(layout, 0, one_line, body);
        }
        let mut line = head.to_string();
        let mut kind = None;
        for (i, (param, text)) in params.iter().zip(&texts).enumerate() {
            let end = if i + 1 == texts.len() { ") {" } else { "," };
            let turns = matches!((kind, is_window(param)), (Some(a), Some(b)) if a != b);
            kind = is_window(param).or(kind);
            if i > 0 && (turns || line.len() + 1 + text.len() + end.len() > LINE_WIDTH) {
                layout.line(0, std::mem::replace(&mut line, " ".repeat(head.len())));
            } else if i > 0 {
                line.push(' ');
            }
            line.push_str(text);
            line.push_str(end);
        }
        self.braced(layout, 0, line, body);
    }

    /// A header that ends in `{`, its block, and `}`.
    fn braced(&self, layout: &mut Layout, indent: usize, header: String, body: Block) {
        if self.statements(body).next().is_none() {
            return layout.line(indent, header + "}");
        }
        layout.line(indent, header);
        self.block(layout, indent + 1, body);
        layout.line(indent, "}".into());
    }

    /// The ops of a block that have a statement.
    fn statements(&self, block: Block) -> impl Iterator<Item = &OpKind> {
        let kinds = self.program.blocks[block].iter().map(|op| &self.program.ops[*op].kind);
        kinds.filter(|kind| !self.inline.op(kind))
    }

    fn only_statement(&self, block: Block) -> Option<&OpKind> {
        let mut statements = self.statements(block);
        statements.next().filter(|_| statements.next().is_none())
    }

    fn block(&self, layout: &mut Layout, indent: usize, block: Block) {
        for kind in self.statements(block) {
            if let Some(line) = self.chain(kind).filter(|line| 2 * indent + line.width() <= LINE_WIDTH) {
                layout.push(indent, line);
                continue;
            }
            match *kind {
                OpKind::If { then, other, .. } => self.if_(layout, indent, self.statement(kind), then, other),
                OpKind::For { body, .. }
                | OpKind::Task { body, .. }
                | OpKind::Manual { body }
                | OpKind::Ranks { body, .. } => self.braced(layout, indent, self.statement(kind) + " {", body),
                OpKind::Domain { .. } | OpKind::AllocWindow { .. } | OpKind::Window { .. } => {
                    let text = self.statement(kind);
                    let (name, rest) = text.split_once(' ').unwrap_or_default();
                    layout.push(indent, Line::new(kind.name()).column(name).rest(rest));
                }
                _ => layout.line(indent, self.statement(kind)),
            }
        }
    }

    fn if_(&self, layout: &mut Layout, indent: usize, mut header: String, mut then: Block, mut other: Option<Block>) {
        while let Some(block) = other {
            if self.statements(then).next().is_none() {
                header.push_str(" {");
            } else {
                layout.line(indent, header + " {");
                self.block(layout, indent + 1, then);
                header = String::new();
            }
            header.push_str("} else");
            (then, other) = match self.only_statement(block) {
                Some(kind @ &OpKind::If { then, other, .. }) => {
                    _ = write!(header, " {}", self.statement(kind));
                    (then, other)
                }
                _ => (block, None),
            };
        }
        self.braced(layout, indent, header + " {", then);
    }

    /// A loop or if around one statement, as one line. Such lines are alike if they differ in names and verbs only.
    fn chain(&self, kind: &OpKind) -> Option<Line> {
        let mut line = Line::new("");
        let (mut kind, mut depth) = (kind, 0);
        loop {
            let body = match *kind {
                OpKind::For { body, .. } => {
                    let (name, range) = self.loop_header(kind);
                    line = line.fixed("for").column(&name).fixed(&format!("{range} {{"));
                    body
                }
                OpKind::If { cond, then, other: None } => {
                    line = line.fixed("if");
                    line = match self.inline_op(cond) {
                        Some(&OpKind::Scalar { expr: Expr::Binary(op, a, b), .. }) if op.is_comparison() => {
                            let (mut left, mut right) = (String::new(), String::new());
                            self.put_scalar(&mut left, a, Precedence::Sum);
                            self.put_scalar(&mut right, b, Precedence::Sum);
                            line.column(&left).fixed(&format!("{op} {right} {{"))
                        }
                        _ => line.fixed(&format!("{} {{", self.scalar(cond))),
                    };
                    then
                }
                _ if depth == 0 || !kind.blocks().is_empty() => return None,
                _ => break,
            };
            depth += 1;
            kind = self.only_statement(body)?;
        }
        let (text, close) = (self.statement(kind), " }".repeat(depth));
        Some(match text.split_once(' ') {
            Some((verb, rest)) if verb == kind.name() => line.column(verb).rest(&format!("{rest}{close}")),
            _ => line.rest(&format!("{text}{close}")),
        })
    }

    fn loop_header(&self, kind: &OpKind) -> (String, String) {
        match *kind {
            OpKind::For { index, first, end, step, .. } => {
                let mut range = format!("in {}..{}", self.scalar(first), self.scalar(end));
                let one = self.program.extent_of(step).map(|e| self.program.extents.get(e)) == Some(ExtentData::Int(1));
                if !one {
                    _ = write!(range, " step {}", self.scalar(step));
                }
                (self.names.scalars[index].clone(), range)
            }
            OpKind::Ranks { index, first, end, .. } => {
                (self.names.scalars[index].clone(), format!("in {}..{}", self.scalar(first), self.scalar(end)))
            }
            _ => Default::default(),
        }
    }

    /// An op with a statement of its own, up to the block that it owns.
    fn statement(&self, kind: &OpKind) -> String {
        let (program, names) = (self.program, &self.names);
        let tile = |t| &names.tiles[t];
        match kind {
            OpKind::Scalar { dst, .. }
            | OpKind::VarGet { dst, .. }
            | OpKind::ArrayGet { dst, .. }
            | OpKind::Read { dst, .. } => {
                let mut out = format!("{} = ", names.scalars[*dst]);
                self.put_result(&mut out, kind);
                out
            }
            OpKind::VarDef { var, init } => {
                format!("{} = var {} = {}", names.vars[*var], program.vars[*var].ty, self.scalar(*init))
            }
            OpKind::VarSet { var, value } => format!("{} = {}", names.vars[*var], self.scalar(*value)),
            OpKind::ArrayDef { array, fill } => {
                let data = &program.arrays[*array];
                let len = self.shape(&[data.len]);
                format!("{} = array {} {len} = {}", names.arrays[*array], data.ty, self.scalar(*fill))
            }
            OpKind::ArraySet { array, index, value } => {
                format!("{}{} = {}", names.arrays[*array], self.list(&[*index]), self.scalar(*value))
            }
            OpKind::For { .. } => {
                let (name, range) = self.loop_header(kind);
                format!("for {name} {range}")
            }
            OpKind::Ranks { .. } => {
                let (name, range) = self.loop_header(kind);
                format!("ranks {name} {range}")
            }
            OpKind::If { cond, .. } => format!("if {}", self.scalar(*cond)),
            OpKind::Task { task, grid, options, .. } => {
                let mut out = self.task_head(*task, kind.name());
                if let Some(grid) = grid {
                    _ = write!(out, " {}", self.list(&[grid.blocks]));
                }
                self.put_options(&mut out, options);
                if let Some(grid) = grid {
                    _ = write!(out, " as {}", names.scalars[grid.index]);
                }
                out
            }
            OpKind::Extern { task, blocks, args, options } => {
                let mut out = self.task_head(*task, kind.name());
                _ = write!(out, "({})", self.callback_args(args));
                if let Some(blocks) = blocks {
                    _ = write!(out, " {}", self.list(&[*blocks]));
                }
                self.put_options(&mut out, options);
                out
            }
            OpKind::Manual { .. } => "manual".into(),
            OpKind::Slice { dst, src, at } => {
                let shape = self.shape(&program.tensors[*dst].shape);
                format!("{} = slice {} {shape}", names.tensors[*dst], self.place(*src, at))
            }
            OpKind::Write { dst, at, value } => format!("{} = {}", self.place(*dst, at), self.scalar(*value)),
            OpKind::Load { dst, src, at } => {
                format!("{} = load {} {}", tile(*dst), self.place(*src, at), self.shape(&program.tiles[*dst].shape))
            }
            OpKind::Store { src, dst, at } => format!("store {} -> {}", tile(*src), self.place(*dst, at)),
            OpKind::Full { dst, value } => {
                let data = &program.tiles[*dst];
                format!("{} = full {} {} {}", tile(*dst), data.dtype, self.shape(&data.shape), self.scalar(*value))
            }
            OpKind::Copy { dst, src } => format!("{} = copy {}", tile(*dst), tile(*src)),
            OpKind::Cast { dst, src } => {
                format!("{} = cast {} {}", tile(*dst), tile(*src), program.tiles[*dst].dtype)
            }
            OpKind::Tile { op, dst, a, b } => {
                let second = match *b {
                    TileOrScalar::Tile(b) => tile(b).clone(),
                    TileOrScalar::Scalar(b) => self.scalar(b),
                };
                format!("{} = {op} {}, {second}", tile(*dst), tile(*a))
            }
            OpKind::Reduce { op, axis, dst, src } => {
                let axis = if *axis == ReduceAxis::Row { "row" } else { "col" };
                format!("{} = {axis}_{op} {}", tile(*dst), tile(*src))
            }
            OpKind::Put { dst, peer, src, region, atomic, staging } => {
                let (to, from, shape) = self.region(*dst, *src, region.as_ref());
                let add = if *atomic == Atomic::Add { " add" } else { "" };
                format!("put {to} {} <- {from}{shape}{add}{}", self.peer(*peer), staging_text(*staging))
            }
            OpKind::Get { dst, src, peer, region, staging } => {
                let (to, from, shape) = self.region(*dst, *src, region.as_ref());
                format!("get {to} <- {from} {}{shape}{}", self.peer(*peer), staging_text(*staging))
            }
            OpKind::GetReduce { dst, src, peers, region, .. } => {
                let (to, from, shape) = self.region(*dst, *src, region.as_ref());
                format!("{} {to} <- {from} {}{shape}", kind.name(), self.peers(*peers))
            }
            OpKind::Flatten { dst, src } => format!("{} = flatten {}", names.tensors[*dst], self.tensor(*src)),
            OpKind::Require { cmp, a, b, peer } => {
                let peer = peer.map_or_else(String::new, |peer| format!(" {}", self.peer(peer)));
                format!("require {}{peer}", self.comparison(*cmp, *a, *b))
            }
            OpKind::Agree { label, theirs, mine, peer } => {
                format!("agree {label} {} {}", self.comparison(BinaryOp::Eq, *theirs, *mine), self.peer(*peer))
            }
            OpKind::Collective(collective) => self.collective(collective),
            OpKind::RemoteLoad { dst, src, peer, at } => {
                let (from, shape) = (self.place(*src, at), self.shape(&program.tiles[*dst].shape));
                format!("{} = remote_load {from} {} {shape}", tile(*dst), self.peer(*peer))
            }
            OpKind::RemoteStore { src, dst, peer, at, atomic } => {
                let add = if *atomic == Atomic::Add { " add" } else { "" };
                format!("remote_store {} -> {} {}{add}", tile(*src), self.place(*dst, at), self.peer(*peer))
            }
            OpKind::Notify { window, peer, at, value, op } => {
                format!("notify {} {} {op} {}", self.place(*window, at), self.peer(*peer), self.scalar(*value))
            }
            OpKind::Wait { window, at, expected, cmp } => {
                format!("wait {} {cmp} {}", self.place(*window, at), self.scalar(*expected))
            }
            OpKind::Domain { domain } => {
                format!("{} = domain {}", names.domains[*domain], self.domain_ranks(*domain))
            }
            OpKind::DeferWait { window, at, expected } => {
                format!("defer_wait {} >= {}", self.place(*window, at), self.scalar(*expected))
            }
            OpKind::HostTask { name, args } => format!("host_task {name}({})", self.callback_args(args)),
            OpKind::AllocWindow { buffer } => {
                let size = match &program.buffers[*buffer].size {
                    BufferSize::Shape(dtype, shape) => format!("{} {dtype}", self.shape(shape)),
                    BufferSize::Bytes(bytes) => format!("bytes {}", self.extent(*bytes)),
                };
                let domain =
                    program.buffers[*buffer].domain.map_or_else(String::new, |d| format!(" in {}", names.domains[d]));
                format!("{} = alloc_window {size}{domain}", names.buffers[*buffer])
            }
            OpKind::Window { dst, buffer } => {
                let data = &program.tensors[*dst];
                let (name, buffer) = (&names.tensors[*dst], &names.buffers[*buffer]);
                format!("{name} = window {buffer} {} {}", self.shape(&data.shape), data.dtype)
            }
            OpKind::SliceRank { dst, src, rank } => {
                format!("{} = {}", names.tensors[*dst], self.place(*src, &[*rank]))
            }
            OpKind::Dispatch { entry, args, device } => {
                let args: Vec<String> = args
                    .iter()
                    .map(|arg| match *arg {
                        Operand::Tensor(t) => self.tensor(t),
                        Operand::Scalar(s) => self.scalar(s),
                    })
                    .collect();
                let name = &program.entries[*entry].name;
                format!("dispatch {name}({}) device {}", args.join(", "), self.scalar(*device))
            }
        }
    }

    fn comparison(&self, cmp: BinaryOp, a: Scalar, b: Scalar) -> String {
        let (mut left, mut right) = (String::new(), String::new());
        self.put_scalar(&mut left, a, Precedence::Sum);
        self.put_scalar(&mut right, b, Precedence::Sum);
        format!("{left} {cmp} {right}")
    }

    fn collective(&self, collective: &Collective) -> String {
        let tensor = |t: Tensor| self.tensor(t);
        let mut out = collective.name().to_string();
        _ = match &collective.kind {
            CollectiveKind::Barrier { window: None } => Ok(()),
            CollectiveKind::Barrier { window: Some(window) } => write!(out, " of {}", tensor(*window)),
            CollectiveKind::Allreduce { data, op } | CollectiveKind::ReduceScatter { data, op } => {
                write!(out, " {op} {}", tensor(*data))
            }
            CollectiveKind::Broadcast { data, root } => {
                write!(out, " {} root {}", tensor(*data), self.scalar(*root))
            }
            CollectiveKind::Allgather { dst, src } | CollectiveKind::AllToAll { dst, src } => {
                write!(out, " {} <- {}", tensor(*dst), tensor(*src))
            }
            CollectiveKind::AllToAllV(v) => {
                let (to, from) = (v.offsets.map(|o| o.0), v.offsets.map(|o| o.1));
                let side = |rows, counts, offsets: Option<Tensor>| {
                    let offsets = offsets.map_or_else(String::new, |offsets| format!(", {}", tensor(offsets)));
                    format!("{}, {}{offsets}", tensor(rows), tensor(counts))
                };
                write!(out, " {} <- {}", side(v.dst, v.recv_counts, to), side(v.src, v.send_counts, from))
            }
        };
        if collective.mode != Mode::Auto {
            _ = write!(out, " mode {}", collective.mode);
        }
        if collective.cores != 1 {
            _ = write!(out, " cores {}", collective.cores);
        }
        if let Some(signal) = collective.signal {
            _ = write!(out, " signal {}", tensor(signal));
        }
        out
    }

    /// The ranks of a domain: `0..4`, `[0, 2]`.
    pub fn domain_ranks(&self, domain: Domain) -> String {
        match &self.program.domains[domain].ranks {
            DomainRanks::Range(first, end) => format!("{}..{}", self.extent(*first), self.extent(*end)),
            DomainRanks::List(ranks) => self.shape(ranks),
        }
    }

    /// `push = spmd dispatch_push`, without the id where nobody needs it.
    fn task_head(&self, task: Task, verb: &str) -> String {
        let (id, name) = (&self.names.tasks[task], &self.program.tasks[task].name);
        if id.is_empty() { format!("{verb} {name}") } else { format!("{id} = {verb} {name}") }
    }

    fn put_options(&self, out: &mut String, options: &TaskOptions) {
        let TaskOptions { deps, no_dep, predicate, allow_early_resolve } = options;
        if !deps.is_empty() {
            let ids: Vec<&str> = deps.iter().map(|&task| self.names.tasks[task].as_str()).collect();
            _ = write!(out, " deps [{}]", ids.join(", "));
        }
        if !no_dep.is_empty() {
            let tensors: Vec<String> = no_dep.iter().map(|&tensor| self.tensor(tensor)).collect();
            _ = write!(out, " no_dep [{}]", tensors.join(", "));
        }
        if let Some(p) = predicate {
            _ = write!(out, " predicate {} {} {}", self.place(p.tensor, &p.at), p.cmp, p.value);
        }
        out.push_str(if *allow_early_resolve { " allow_early_resolve" } else { "" });
    }

    fn callback_args(&self, args: &[CallbackArg]) -> String {
        let args = args.iter().map(|arg| match *arg {
            CallbackArg::Tensor(tensor, direction) => format!("{} {direction}", self.tensor(tensor)),
            CallbackArg::Scalar(scalar) => self.scalar(scalar),
        });
        args.collect::<Vec<_>>().join(", ")
    }

    fn region(&self, dst: Tensor, src: Tensor, region: Option<&Region>) -> (String, String, String) {
        match region {
            Some(r) => (self.place(dst, &r.dst), self.place(src, &r.src), format!(" {}", self.list(&r.shape))),
            None => (self.names.tensors[dst].clone(), self.names.tensors[src].clone(), String::new()),
        }
    }
}

fn staging_text(staging: Staging) -> String {
    let Staging { chunk_rows, chunk_cols, pipeline } = staging;
    let mut out = String::new();
    if chunk_rows != 0 || chunk_cols != 0 {
        _ = write!(out, " chunk [{chunk_rows}, {chunk_cols}]");
    }
    out.push_str(if pipeline { " pipeline" } else { "" });
    out
}
