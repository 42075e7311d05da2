//! Kernels as C++ text.

use std::fmt::Write;

use crate::ir::{DType, FaultKind, NotifyOp, Program, WaitCmp};

use super::kernel::{Block, Body, Element, Expr, Fence, Operand, Pipe, Stmt, TileName, Type};
use super::scalar::cpp_type;
use super::task::Param;
use super::{HEADERS, Options};

/// Widest line of parameters.
const LINE_WIDTH: usize = 120;

/// The file in the making.
pub struct Writer {
    text: String,
    /// The functions that a simulated device calls.
    simulated: String,
    checked: bool,
}

impl Writer {
    pub fn new(program: &Program, options: &Options) -> Self {
        let Options { target, nranks, checked } = options;
        let text = format!(
            "// Kernels of program {}, for {nranks} ranks on {}{}.\n\n#include \"{}\"\n\nusing namespace pto;\n\
             using namespace pto::comm;\n",
            program.name,
            target.name(),
            if *checked { "" } else { ", unchecked" },
            HEADERS[0].0
        );
        Self { text, simulated: String::new(), checked: *checked }
    }

    pub fn finish(self) -> String {
        let simulated = self.simulated;
        self.text + &format!("\n#ifdef __CPU_SIM\n// What a simulated device calls.\n{simulated}\n#endif\n")
    }

    /// Adds a kernel.
    pub fn kernel(&mut self, name: &str, what: &str, params: &[Param], body: &Body) {
        let ty = |param: &Param| match param.points_to {
            Some(ty) => format!("__gm__ {ty} *"),
            None => "int64_t ".to_owned(),
        };
        let list: Vec<String> = params.iter().map(|param| format!("{}{}", ty(param), param.name)).collect();
        let head = format!("extern \"C\" __global__ AICORE void {name}(");
        let one_line = list.join(", ");
        let list = match head.len() + one_line.len() < LINE_WIDTH {
            true => one_line,
            false => format!("\n    {}", list.join(",\n    ")),
        };
        let _ = writeln!(self.text, "\n// Task {what}.\n{head}{list})\n{{");
        let mut statements = Statements { text: &mut self.text, body, checked: self.checked, indent: 1 };
        statements.block(&body.code);
        self.text.push_str("}\n");
        let args = params.iter().enumerate().map(|(index, param)| match param.points_to {
            Some(ty) => format!("(__gm__ {ty} *)args[{index}]"),
            None => format!("int64_t(args[{index}])"),
        });
        let args: Vec<String> = args.collect();
        let _ = writeln!(
            self.simulated,
            "\nextern \"C\" void {name}_sim(const uint64_t *args, uint32_t block)\n{{\n    \
             pto::cpu_sim::set_execution_context(block, 0, 1);\n    {name}(\n        {});\n}}",
            args.join(",\n        ")
        );
    }
}

/// Statements of a kernel, one a line.
struct Statements<'a> {
    text: &'a mut String,
    body: &'a Body,
    checked: bool,
    indent: usize,
}

impl Statements<'_> {
    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "{}{}", "    ".repeat(self.indent), line.as_ref());
    }

    fn block(&mut self, block: &Block) {
        for (index, stmt) in block.iter().enumerate() {
            if index > 0 && matches!(stmt, Stmt::Op { .. }) {
                self.text.push('\n');
            }
            self.stmt(stmt);
        }
    }

    fn inner(&mut self, block: &Block) {
        self.indent += 1;
        self.block(block);
        self.indent -= 1;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Op { text, place } if place.is_empty() => self.line(format!("// {text}")),
            Stmt::Op { text, place } => self.line(format!("// {text}  ({place})")),
            Stmt::Scalar { name, ty, value, is_const } => {
                let word = if *is_const { "const " } else { "" };
                self.line(format!("{word}{} {name} = {};", ty.name(), value.text));
            }
            Stmt::Assign { place, value } => self.line(format!("{} = {};", place.text, value.text)),
            Stmt::Array { name, ty, len, fill } => self.array(name, *ty, *len, fill),
            Stmt::If { cond, then, other } => {
                self.line(format!("if ({}) {{", cond.text));
                self.inner(then);
                if !other.is_empty() {
                    self.line("} else {");
                    self.inner(other);
                }
                self.line("}");
            }
            Stmt::For { index, first, end, advance, body } => {
                let (first, end, advance) = (&first.text, &end.text, &advance.text);
                self.line(format!("for (int64_t {index} = {first}; {index} < {end}; {advance}) {{"));
                self.inner(body);
                self.line("}");
            }
            Stmt::Return => self.line("return;"),
            Stmt::ReturnIfStopped => {
                self.line("if (pld::is_stopped(stop)) {");
                self.line("    return;");
                self.line("}");
            }
            Stmt::Fault { kind, site, dim, operand, offsets, extents } => {
                let (kind, offsets, extents) = (fault_name(*kind), list(offsets), list(extents));
                let fault = format!("{{pld::{kind}, {site}, {dim}, {operand}, {{{offsets}}}, {{{extents}}}}}");
                self.call("pld::fail(", &["stop", "reports", &fault], ");");
                self.line("return;");
            }
            Stmt::View { view, dtype, address, shape, strides } => {
                self.view(&view.name, *dtype, &address.text, shape, strides);
            }
            Stmt::Tile { tile, dtype, rows, cols, offset, resized } => {
                self.tile(tile, *dtype, [rows, cols], offset, *resized);
            }
            Stmt::Read { name, ty, from } => {
                self.line(format!("const {} {name} = {};", ty.name(), element(from)));
            }
            Stmt::Load { tile, from } => self.line(format!("TLOAD({}, {});", tile.name, from.name)),
            Stmt::Store { to, tile, add } => {
                let instruction = if *add { "pld::store_add" } else { "TSTORE" };
                self.line(format!("{instruction}({}, {});", to.name, tile.name));
            }
            Stmt::Compute { instruction, dst, operands, flag, .. } => {
                let mut args = vec![dst.name.as_str()];
                args.extend(operands.iter().map(|operand| match operand {
                    Operand::Tile(tile) | Operand::Scratch(tile) => tile.name.as_str(),
                    Operand::Value(value) => value.text.as_str(),
                }));
                let result = flag.as_ref().map_or(String::new(), |flag| format!("const bool {flag} = "));
                self.line(format!("{result}{instruction}({});", args.join(", ")));
            }
            Stmt::Put { to, from, staging, add } => {
                let staging = names(staging);
                self.line(format!("TPUT{}({}, {}, {staging});", atomic(*add), to.name, from.name));
            }
            Stmt::Get { to, from, staging } => {
                let staging = names(staging);
                self.line(format!("TGET({}, {}, {staging});", to.name, from.name));
            }
            Stmt::Notify { cell, value, op } => {
                let op = if *op == NotifyOp::Add { "AtomicAdd" } else { "Set" };
                self.on_cell(cell, &format!("TNOTIFY(cell, {}, NotifyOp::{op});", value.text));
            }
            Stmt::Wait { cell, expected, cmp, site } => {
                let cmp = if *cmp == WaitCmp::Eq { "EQ" } else { "GE" };
                let (expected, cmp) = (&expected.text, format!("WaitCmp::{cmp}"));
                if self.checked {
                    let (site, address) = (site.to_string(), cell.address().text);
                    let args = ["stop", "reports", &site, &address, expected, &cmp];
                    self.call("if (!pld::wait(", &args, ")) {");
                    self.line("    return;");
                    self.line("}");
                } else {
                    self.on_cell(cell, &format!("TWAIT(cell, {expected}, {cmp});"));
                }
            }
            Stmt::Fence(fence) => self.fence(fence),
        }
    }

    fn array(&mut self, name: &str, ty: Type, len: i64, fill: &Expr) {
        let (ty, fill) = (ty.name(), &fill.text);
        // An initializer without values fills with zeros.
        if matches!(fill.as_str(), "0" | "0.0f" | "false") {
            return self.line(format!("{ty} {name}[{len}] = {{}};"));
        }
        self.line(format!("{ty} {name}[{len}];"));
        self.line(format!("for ({ty} &element : {name}) {{"));
        self.line(format!("    element = {fill};"));
        self.line("}");
    }

    fn tile(&mut self, tile: &TileName, dtype: DType, valid: [&Expr; 2], offset: &Expr, resized: bool) {
        let slot = &self.body.slots[tile.slot];
        let (ty, name) = (cpp_type(dtype), &tile.name);
        let declaration = match valid.map(Expr::as_number) {
            [Some(rows), Some(cols)] if !resized => format!("pld::Tile<{ty}, {rows}, {cols}> {name};"),
            _ => {
                let [rows, cols] = valid.map(|expr| &expr.text);
                format!("pld::Chunk<{ty}, {}, {}> {name}({rows}, {cols});", slot.rows, slot.cols)
            }
        };
        self.line(declaration);
        let address = match offset.as_number() {
            Some(offset) => format!("{:#x}", slot.offset + offset),
            None => format!("{:#x} + {}", slot.offset, offset.text),
        };
        self.line(format!("TASSIGN({name}, {address});"));
    }

    /// A region: as a row, as rows, or with all its dimensions.
    fn view(&mut self, name: &str, dtype: DType, address: &str, shape: &[Expr; 5], strides: &[Expr; 5]) {
        let [.., rows, cols] = shape.each_ref().map(|expr| expr.text.as_str());
        let dims = shape.iter().position(|extent| extent.text != "1").map_or(1, |outermost| shape.len() - outermost);
        match dims {
            _ if strides[4].text != "1" || dims > 2 => {
                let (shape, strides) = (format!("{{{}}}", list(shape)), format!("{{{}}}", list(strides)));
                self.call(&format!("pld::Region<{}> {name}(", cpp_type(dtype)), &[address, &shape, &strides], ");");
            }
            1 => self.call(&format!("auto {name} = pld::row("), &[address, cols], ");"),
            _ => {
                let args = [address, rows, cols, &strides[3].text];
                self.call(&format!("auto {name} = pld::rows("), &args, ");");
            }
        }
    }

    /// A call, on more lines than one if it is long.
    fn call(&mut self, begin: &str, args: &[&str], end: &str) {
        let all = args.join(", ");
        let room = LINE_WIDTH - 4 * self.indent;
        if begin.len() + all.len() + end.len() <= room {
            return self.line(format!("{begin}{all}{end}"));
        }
        self.line(begin);
        // Further in than the block that it may begin.
        let indent = if end.ends_with('{') { "        " } else { "    " };
        if indent.len() + all.len() + end.len() <= room {
            return self.line(format!("{indent}{all}{end}"));
        }
        for (index, arg) in args.iter().enumerate() {
            self.line(format!("{indent}{arg}{}", if index + 1 < args.len() { "," } else { end }));
        }
    }

    /// A statement on a signal cell.
    fn on_cell(&mut self, cell: &Element, statement: &str) {
        self.line("{");
        self.line(format!("    Signal cell({});", cell.address().text));
        self.line(format!("    {statement}"));
        self.line("}");
    }

    fn fence(&mut self, fence: &Fence) {
        match fence {
            Fence::Barrier(pipe) => self.line(format!("pipe_barrier({});", pipe_name(*pipe))),
            Fence::Order { from, to } => {
                let (from, to) = (pipe_name(*from), pipe_name(*to));
                self.line(format!("set_flag({from}, {to}, EVENT_ID0);"));
                self.line(format!("wait_flag({from}, {to}, EVENT_ID0);"));
            }
            Fence::InvalidateCache => self.line("dcci((__gm__ void *)0, cache_line_t::ENTIRE_DATA_CACHE);"),
            Fence::Drain => self.line("dsb(DSB_DDR);"),
        }
    }
}

fn list(exprs: &[Expr]) -> String {
    let texts: Vec<&str> = exprs.iter().map(|expr| expr.text.as_str()).collect();
    texts.join(", ")
}

fn names(tiles: &[TileName]) -> String {
    let names: Vec<&str> = tiles.iter().map(|tile| tile.name.as_str()).collect();
    names.join(", ")
}

fn atomic(add: bool) -> &'static str {
    if add { "<AtomicType::AtomicAdd>" } else { "" }
}

/// An element as the scalar that it is once it is read.
fn element(element: &Element) -> String {
    let value = format!("{}[{}]", element.base.text, element.index.text);
    match element.dtype {
        DType::F16 => format!("float({value})"),
        DType::BF16 => format!("pld::float_of({value})"),
        DType::Bool => format!("{value} != 0"),
        _ => value,
    }
}

fn fault_name(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Bounds => "BOUNDS",
        FaultKind::Peer => "PEER",
        FaultKind::Array => "ARRAY",
        FaultKind::Division => "DIVISION",
        FaultKind::Step => "STEP",
        FaultKind::Require => "REQUIRE",
        FaultKind::Agree => "AGREE",
    }
}

fn pipe_name(pipe: Pipe) -> &'static str {
    match pipe {
        Pipe::S => "PIPE_S",
        Pipe::V => "PIPE_V",
        Pipe::Mte2 => "PIPE_MTE2",
        Pipe::Mte3 => "PIPE_MTE3",
        Pipe::All => "PIPE_ALL",
    }
}
