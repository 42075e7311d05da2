//! Programs of several calls, one behind the other, on slices of windows: what surrounds a slice must stay.

use std::fmt::Write;

use pld::ir::{Combine, DType};

use crate::case::{Case, Tensor};
use crate::numbers::{given, reduced};

/// Elements or rows around what a call may touch.
const GUARD: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Allreduce(Combine),
    ReduceScatter(Combine),
    Broadcast { root: usize },
    Allgather,
    AllToAll,
}

impl Kind {
    /// The modes that it has.
    pub fn modes(self) -> &'static [&'static str] {
        match self {
            Kind::Allreduce(_) => &["auto", "mesh", "two_phase", "ring", "hierarchical"],
            Kind::AllToAll => &["auto", "mesh", "direct"],
            _ => &["auto", "mesh", "direct", "hierarchical"],
        }
    }

    fn has_source(self) -> bool {
        matches!(self, Kind::Allgather | Kind::AllToAll)
    }

    /// Its data has a row for each rank.
    fn has_rows(self) -> bool {
        !matches!(self, Kind::Allreduce(_) | Kind::Broadcast { .. })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub kind: Kind,
    pub mode: &'static str,
    pub dtype: DType,
    /// Elements of a row, or of all.
    pub count: usize,
}

/// Where the calls stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// In one task, on packed slices.
    Task,
    /// In the host driver, on this many cores, on views of the first part of buffers.
    Host { cores: u32 },
}

/// What stands in guards and in what is to be written.
fn sentinel(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (0x51 + i * 7 % 101) as u8).collect()
}

/// A tensor with a part that a call uses.
struct Layout {
    /// Of all.
    shape: Vec<usize>,
    /// Where the part begins.
    at: Vec<usize>,
    part: Vec<usize>,
    dtype: DType,
}

impl Layout {
    fn new(rows: Option<usize>, count: usize, dtype: DType, form: Form) -> Self {
        let front = if form == Form::Task { GUARD } else { 0 };
        match rows {
            Some(rows) => {
                let front = front.min(1);
                Self { shape: vec![front + rows + 1, count], at: vec![front, 0], part: vec![rows, count], dtype }
            }
            None => Self { shape: vec![front + count + GUARD], at: vec![front], part: vec![count], dtype },
        }
    }

    /// The whole with these bytes as its part.
    fn around(&self, part: &[u8]) -> Vec<u8> {
        let mut all = sentinel(self.shape.iter().product::<usize>() * self.dtype.size() as usize);
        let row: usize = self.shape[1..].iter().product();
        let begin = self.at[0] * row * self.dtype.size() as usize;
        all[begin..begin + part.len()].copy_from_slice(part);
        all
    }

    fn tensor(&self, name: String, before: Vec<Vec<u8>>, after: Vec<Vec<u8>>, tolerance: f32) -> Tensor {
        let around = |parts: Vec<Vec<u8>>| parts.iter().map(|part| self.around(part)).collect();
        let shape = self.shape.iter().map(|&extent| extent as i64).collect();
        Tensor { name, dtype: self.dtype, shape, before: around(before), after: around(after), tolerance }
    }
}

fn list(numbers: &[usize]) -> String {
    format!("{numbers:?}")
}

/// One call, with its data.
struct Parts {
    call: Call,
    number: usize,
    dst: Layout,
    src: Option<Layout>,
}

impl Parts {
    fn new(call: Call, number: usize, nranks: usize, form: Form) -> Self {
        let Call { kind, dtype, count, .. } = call;
        let dst = Layout::new(kind.has_rows().then_some(nranks), count, dtype, form);
        let rows = (kind == Kind::AllToAll).then_some(nranks);
        let src = kind.has_source().then(|| Layout::new(rows, count, dtype, form));
        Self { call, number, dst, src }
    }

    fn text(&self, options: &str) -> String {
        let n = self.number;
        let call = match self.call.kind {
            Kind::Allreduce(op) => format!("allreduce {op} d{n}"),
            Kind::ReduceScatter(op) => format!("reduce_scatter {op} d{n}"),
            Kind::Broadcast { root } => format!("broadcast d{n} root {root}"),
            Kind::Allgather => format!("allgather d{n} <- s{n}"),
            Kind::AllToAll => format!("all_to_all d{n} <- s{n}"),
        };
        format!("{call} mode {}{options}", self.call.mode)
    }

    /// What ranks give and get: the source if there is one, and the data.
    fn tensors(&self, nranks: usize) -> Vec<Tensor> {
        let Call { kind, dtype, count, mode } = self.call;
        let row = count * dtype.size() as usize;
        let rows = |of: usize| given(dtype, self.number, of, 0..count * nranks);
        let flat = |of: usize| given(dtype, self.number, of, 0..count);
        let all = |one: &dyn Fn(usize) -> Vec<u8>| (0..nranks).map(one).collect::<Vec<_>>();
        // Added up in another order, but also with one rounding to the type.
        let tolerance = match dtype {
            _ if !matches!(mode, "auto" | "ring" | "hierarchical") => 0.0,
            DType::F32 => 4e-6,
            DType::F16 => 1e-3,
            DType::BF16 => 8e-3,
            _ => 0.0,
        };
        let (before, after, tolerance) = match kind {
            Kind::Allreduce(op) => {
                let before = all(&flat);
                let result = reduced(dtype, op, &before.iter().map(Vec::as_slice).collect::<Vec<_>>());
                (before, vec![result; nranks], tolerance)
            }
            Kind::ReduceScatter(op) => {
                let before = all(&rows);
                let mut after = before.clone();
                for (rank, after) in after.iter_mut().enumerate() {
                    let own = rank * row..(rank + 1) * row;
                    let parts: Vec<&[u8]> = before.iter().map(|part| &part[own.clone()]).collect();
                    after[own.clone()].copy_from_slice(&reduced(dtype, op, &parts));
                }
                (before, after, tolerance)
            }
            Kind::Broadcast { root } => (all(&flat), vec![flat(root); nranks], 0.0),
            Kind::Allgather => {
                let gathered = all(&flat).concat();
                (vec![sentinel(gathered.len()); nranks], vec![gathered; nranks], 0.0)
            }
            Kind::AllToAll => {
                let from = all(&rows);
                let after = all(&|me| from.iter().flat_map(|part| part[me * row..(me + 1) * row].to_vec()).collect());
                (vec![sentinel(row * nranks); nranks], after, 0.0)
            }
        };
        let (n, mut tensors) = (self.number, Vec::new());
        if let Some(src) = &self.src {
            let from = if kind == Kind::AllToAll { all(&rows) } else { all(&flat) };
            tensors.push(src.tensor(format!("x{n}"), from.clone(), from, 0.0));
        }
        tensors.push(self.dst.tensor(format!("y{n}"), before, after, tolerance));
        tensors
    }
}

/// A program of some calls. With `signal` all are on the channel of one window, whose cells must stay.
pub fn case(calls: &[Call], nranks: u32, form: Form, signal: bool) -> Case {
    let p = nranks as usize;
    let parts: Vec<Parts> = calls.iter().enumerate().map(|(n, &call)| Parts::new(call, n, p, form)).collect();
    let mut tensors: Vec<Tensor> = parts.iter().flat_map(|part| part.tensors(p)).collect();
    if signal {
        let before: Vec<Vec<u8>> = (0..p).map(|rank| given(DType::I32, 5, rank, 0..p * 3)).collect();
        let (shape, after) = (vec![p as i64, 3], before.clone());
        tensors.push(Tensor { name: "cells".into(), dtype: DType::I32, shape, before, after, tolerance: 0.0 });
    }
    let text = match form {
        Form::Task => in_task(&parts, signal),
        Form::Host { cores } => in_host(&parts, signal, cores),
    };
    Case { text, nranks, tensors }
}

/// Parameters that are tensors of the launch: sources are read, data is copied into windows and back.
fn tensor_params(parts: &[Parts], signal: bool, rank_axis: &str, y: &str) -> Vec<String> {
    let mut params = Vec::new();
    for Parts { number: n, dst, src, .. } in parts {
        let tensor = |name: &str, layout: &Layout, direction: &str| {
            let shape = list(&layout.shape);
            format!("{name}{n}: tensor[{rank_axis}{} {} {direction}", &shape[1..], layout.dtype)
        };
        params.extend(src.as_ref().map(|src| tensor("x", src, "in")));
        params.push(tensor("y", dst, y));
    }
    if signal {
        params.push(format!("cells: tensor[{rank_axis}world, 3] i32 {y}"));
    }
    params
}

fn window_params(parts: &[Parts], signal: bool, sources: bool) -> Vec<String> {
    let mut params = Vec::new();
    for Parts { number: n, dst, src, .. } in parts {
        params.push(format!("w{n}: window{} {}", list(&dst.shape), dst.dtype));
        let src = src.as_ref().filter(|_| sources);
        params.extend(src.map(|src| format!("v{n}: window{} {}", list(&src.shape), src.dtype)));
    }
    if signal {
        params.push("signal: window[world, 3] i32".into());
    }
    params
}

fn in_task(parts: &[Parts], signal: bool) -> String {
    let mut params = tensor_params(parts, signal, "", "inout");
    params.extend(window_params(parts, signal, false));
    let mut text = format!("program calls\nentry e({}, me: i32) {{\n  at calls {{\n", params.join(", "));
    let mut line = |line: String| writeln!(text, "    {line}").expect("text can be written");
    for Parts { number: n, dst, src, .. } in parts {
        line(format!("put w{n} @me <- y{n}"));
        line(format!("d{n} = slice w{n}{} {}", list(&dst.at), list(&dst.part)));
        if let Some(src) = src {
            line(format!("s{n} = slice x{n}{} {}", list(&src.at), list(&src.part)));
        }
    }
    if signal {
        line("put signal @me <- cells".into());
    }
    let options = if signal { " signal signal" } else { "" };
    parts.iter().for_each(|part| line(part.text(options)));
    for Parts { number: n, .. } in parts {
        line(format!("get y{n} <- w{n} @me"));
    }
    if signal {
        line("get cells <- signal @me".into());
    }
    text + "  }\n}\n" + &host(parts, signal, Form::Task, |args| format!("    dispatch e({args}, r) device r\n"))
}

fn in_host(parts: &[Parts], signal: bool, cores: u32) -> String {
    let (mut publish, mut consume) = (String::new(), String::new());
    for Parts { number: n, src, .. } in parts {
        writeln!(publish, "    put w{n} @me <- y{n}").expect("text can be written");
        if src.is_some() {
            writeln!(publish, "    put v{n} @me <- x{n}").expect("text can be written");
        }
        writeln!(consume, "    get y{n} <- w{n} @me").expect("text can be written");
    }
    if signal {
        publish += "    put signal @me <- cells\n";
        consume += "    get cells <- signal @me\n";
    }
    let windows = window_params(parts, signal, true).join(", ");
    let entry = |name: &str, body: &str, y: &str| {
        let tensors = tensor_params(parts, signal, "", y).join(", ");
        format!("entry {name}({tensors}, {windows}, me: i32) {{\n  at {name} {{\n{body}  }}\n}}\n")
    };
    let mut options = if cores > 1 { format!(" cores {cores}") } else { String::new() };
    if signal {
        options += " signal signal";
    }
    let calls: String = parts.iter().map(|part| format!("  {}\n", part.text(&options))).collect();
    let dispatch =
        |name: &str, args: &str| format!("  ranks r in 0..world {{ dispatch {name}({args}, r) device r }}\n");
    let body = |args: String| dispatch("publish", &args) + &calls + &dispatch("consume", &args);
    "program calls\n".to_owned()
        + &entry("publish", &publish, "in")
        + &entry("consume", &consume, "out")
        + &host(parts, signal, Form::Host { cores }, body)
}

/// The host driver: windows, their views, and what is done with the arguments.
fn host(parts: &[Parts], signal: bool, form: Form, body: impl Fn(String) -> String) -> String {
    let params = tensor_params(parts, signal, "world, ", "inout");
    let sliced = |param: &String| format!("{}[r]", param.split(':').next().expect("a name"));
    let mut args: Vec<String> = params.iter().map(sliced).collect();
    let (mut buffers, mut views) = (String::new(), String::new());
    for param in window_params(parts, signal, form != Form::Task) {
        let (name, ty) = param.split_once(": window").expect("a window");
        writeln!(buffers, "  {name}_buf = alloc_window {ty}").expect("text can be written");
        writeln!(views, "  {name} = window {name}_buf {ty}").expect("text can be written");
        args.push(name.into());
    }
    let body = body(args.join(", "));
    let params = params.join(", ");
    if form == Form::Task {
        return format!("host ({params}) {{\n{buffers}  ranks r in 0..world {{\n{views}{body}  }}\n}}\n");
    }
    for Parts { number: n, dst, src, .. } in parts {
        let view = |name: &str, window: &str, layout: &Layout| {
            format!("  {name}{n} = window {window}{n}_buf {} {}\n", list(&layout.part), layout.dtype)
        };
        views += &view("d", "w", dst);
        views.extend(src.as_ref().map(|src| view("s", "v", src)));
    }
    format!("host ({params}) {{\n{buffers}{views}{body}}}\n")
}
