//! The published vectors: C1 to C15 in a task, D1 to D16 in the host driver, with their data and shapes.

use pld::ir::{Combine, DType};

use crate::calls::{self, Call, Form, Kind};
use crate::case::{Case, Tensor, world};
use crate::numbers::{Number, encode, is_float};

/// What is sent in a round, a call, and what is received; all in rows of `cols` elements.
#[derive(Clone)]
pub struct Vector {
    /// The name in the list of vectors, which the program has too.
    name: &'static str,
    dtype: DType,
    /// Window, number of its rows: the first one takes the input, the last one has the output.
    windows: &'static [(&'static str, usize)],
    cols: usize,
    calls: &'static str,
    rounds: usize,
    /// Whose window is read.
    reads: &'static str,
    tolerance: f32,
    nranks: usize,
    input: fn(&Vector, Place) -> f64,
    output: fn(&Vector, Place) -> f64,
}

/// A row and column of a rank, in a round.
#[derive(Clone, Copy)]
struct Place {
    rank: usize,
    round: usize,
    row: usize,
    col: usize,
}

impl Place {
    fn of(self, rank: usize) -> Self {
        Self { rank, ..self }
    }

    fn row(self, row: usize) -> Self {
        Self { row, ..self }
    }
}

/// iota(100 r), with 10000 more in each round.
fn iota(v: &Vector, at: Place) -> f64 {
    (100 * at.rank + 10_000 * at.round + at.row * v.cols + at.col) as f64
}

/// 1 + 0.125 r + 0.0625 (j mod 5).
fn small(_: &Vector, at: Place) -> f64 {
    1.0 + 0.125 * at.rank as f64 + 0.0625 * (at.col % 5) as f64
}

/// 1000 r + 100 d + j for destination d.
fn addressed(_: &Vector, at: Place) -> f64 {
    (1000 * at.rank + 100 * at.row + at.col + 10_000 * at.round) as f64
}

fn all(v: &Vector, at: Place) -> impl Iterator<Item = f64> {
    (0..v.nranks).map(move |rank| (v.input)(v, at.of(rank)))
}

fn sum(v: &Vector, at: Place) -> f64 {
    all(v, at).sum()
}

fn max(v: &Vector, at: Place) -> f64 {
    all(v, at).fold(f64::MIN, f64::max)
}

fn min(v: &Vector, at: Place) -> f64 {
    all(v, at).fold(f64::MAX, f64::min)
}

fn prod(v: &Vector, at: Place) -> f64 {
    all(v, at).product()
}

/// The row that is this rank's is summed up.
fn scattered(v: &Vector, at: Place) -> f64 {
    if at.row == at.rank { sum(v, at) } else { (v.input)(v, at) }
}

fn of_root(v: &Vector, at: Place) -> f64 {
    (v.input)(v, at.of(0))
}

fn of_next(v: &Vector, at: Place) -> f64 {
    (v.input)(v, at.of((at.rank + 1) % v.nranks))
}

fn gathered(v: &Vector, at: Place) -> f64 {
    (v.input)(v, at.of(at.row).row(0))
}

fn exchanged(v: &Vector, at: Place) -> f64 {
    (v.input)(v, at.of(at.row).row(at.rank))
}

const ONE: &[(&str, usize)] = &[("data", 1)];

impl Vector {
    fn new(name: &'static str, calls: &'static str, output: fn(&Vector, Place) -> f64) -> Self {
        Self {
            name,
            dtype: DType::F32,
            windows: ONE,
            cols: 64,
            calls,
            rounds: 1,
            reads: "me",
            tolerance: 0.0,
            nranks: 0,
            input: iota,
            output,
        }
    }

    /// Rows of windows: 0 stands for one a rank.
    fn rows(&self, rows: usize) -> usize {
        if rows == 0 { self.nranks } else { rows }
    }

    fn ends(&self) -> [(&'static str, usize); 2] {
        [self.windows[0], self.windows[self.windows.len() - 1]].map(|(name, rows)| (name, self.rows(rows)))
    }

    fn tensor(&self, name: &str, rows: usize, value: fn(&Vector, Place) -> f64) -> Tensor {
        let part = |rank| {
            let mut bytes = Vec::new();
            for (round, row, col) in
                (0..self.rounds).flat_map(|n| (0..rows).flat_map(move |r| (0..self.cols).map(move |c| (n, r, c))))
            {
                let value = value(self, Place { rank, round, row, col });
                let number = if is_float(self.dtype) { Number::Float(value as f32) } else { Number::Int(value as i64) };
                encode(self.dtype, number, &mut bytes);
            }
            bytes
        };
        let parts: Vec<_> = (0..self.nranks).map(part).collect();
        let shape = vec![(self.rounds * rows) as i64, self.cols as i64];
        let (name, tolerance) = (name.into(), self.tolerance);
        Tensor { name, dtype: self.dtype, shape, before: parts.clone(), after: parts, tolerance }
    }

    fn case(&self, host: bool) -> Case {
        let (cols, dtype, rounds) = (self.cols, self.dtype, self.rounds);
        let [(first, x_rows), (last, y_rows)] = self.ends();
        let x = self.tensor("x", x_rows, self.input);
        let mut y = self.tensor("y", y_rows, self.output);
        y.before.iter_mut().for_each(|part| part.fill(0x55));
        let windows: Vec<(&str, String)> = self
            .windows
            .iter()
            .map(|&(name, rows)| {
                let rows = if rows == 0 { "world".into() } else { rows.to_string() };
                (name, format!("[{rows}, {cols}] {dtype}"))
            })
            .chain([("signal", "[world, 2] i32".into())])
            .collect();
        let list = |one: &dyn Fn(&(&str, String)) -> String, between: &str| {
            windows.iter().map(one).collect::<Vec<_>>().join(between)
        };
        let params = list(&|(name, ty)| format!("{name}: window{ty}"), ", ");
        let names = list(&|(name, _)| name.to_string(), ", ");
        let tensors = |axis: &str, y: &str| {
            format!(
                "x: tensor[{axis}{rounds} * {x_rows}, {cols}] {dtype} in, y: tensor[{axis}{rounds} * {y_rows}, {cols}] {dtype} {y}"
            )
        };
        let publish = format!("put {first}[0, 0] @me <- x[n * {x_rows}, 0] [{x_rows}, {cols}]");
        let consume = format!("get y[n * {y_rows}, 0] <- {last}[0, 0] @({}) [{y_rows}, {cols}]", self.reads);
        let buffers = list(&|(name, ty)| format!("  {name}_buf = alloc_window {ty}\n"), "");
        let views = list(&|(name, ty)| format!("  {name} = window {name}_buf {ty}\n"), "");
        let text = if host {
            let dispatch = |name: &str, n: usize| {
                format!("  ranks r in 0..world {{ dispatch {name}(x[r], y[r], {names}, r, {n}) device r }}\n")
            };
            let round = |n: usize| dispatch("publish", n) + &format!("  {}\n", self.calls) + &dispatch("consume", n);
            // Before others overwrite what a rank still reads.
            let between = if self.reads == "me" { "" } else { "  barrier of data signal signal\n" };
            format!(
                "program {}
entry publish({}, {params}, me: i32, n: i32) {{ at publish {{ {publish} }} }}
entry consume({}, {params}, me: i32, n: i32) {{ at consume {{ {consume} }} }}
host ({}) {{
{buffers}{views}{}}}
",
                self.name,
                tensors("", "inout"),
                tensors("", "inout"),
                tensors("world, ", "inout"),
                (0..rounds).map(round).collect::<Vec<_>>().join(between),
            )
        } else {
            format!(
                "program {}
entry e({}, {params}, me: i32) {{
  at vector {{
    for n in 0..{rounds} {{
      {publish}
      {}
      {consume}
      if {rounds} > 1 {{ barrier of data signal signal }}
    }}
  }}
}}
host ({}) {{
{buffers}{views}  ranks r in 0..world {{ dispatch e(x[r], y[r], {names}, r) device r }}
}}
",
                self.name,
                tensors("", "inout"),
                self.calls,
                tensors("world, ", "inout"),
            )
        };
        Case { text, nranks: self.nranks as u32, tensors: vec![x, y] }
    }

    /// The vector in a task, for so many ranks.
    pub fn in_task(&self, nranks: u32) -> Case {
        Self { nranks: nranks as usize, ..self.clone() }.case(false)
    }

    fn test(&self, nranks: u32, host: bool) {
        let case = Self { nranks: nranks as usize, ..self.clone() }.case(host);
        if self.cols <= 64 && nranks <= 3 {
            case.interpret(5);
        }
        case.launch(&world(nranks));
    }
}

const RANKS: [u32; 4] = [2, 3, 4, 8];

fn in_task(vectors: &[Vector]) {
    vectors.iter().for_each(|vector| RANKS.iter().for_each(|&nranks| vector.test(nranks, false)));
}

fn in_host(vectors: &[Vector]) {
    vectors.iter().for_each(|vector| RANKS.iter().for_each(|&nranks| vector.test(nranks, true)));
}

/// Vectors of some sizes.
fn sizes(vector: &Vector, sizes: &[usize]) -> Vec<Vector> {
    sizes.iter().map(|&cols| Vector { cols, ..vector.clone() }).collect()
}

type Output = fn(&Vector, Place) -> f64;
const OPS: [(&str, &str, Output); 4] = [
    ("allreduce sum data mode mesh", "allreduce sum data mode ring", sum),
    ("allreduce max data mode mesh", "allreduce max data mode ring", max),
    ("allreduce min data mode mesh", "allreduce min data mode ring", min),
    ("allreduce prod data mode mesh", "allreduce prod data mode ring", prod),
];

/// What is sent through a mesh.
pub fn c1_to_c3() -> Vec<Vector> {
    let (mesh, _, _) = OPS[0];
    let mut vectors = sizes(&Vector::new("C1", mesh, sum), &[1, 17, 4097, 65537]);
    for (mesh, _, output) in OPS {
        for dtype in [DType::F32, DType::F16] {
            let tolerance = if dtype == DType::F16 { 2e-2 } else { 1e-5 };
            let product = mesh.contains("prod") || dtype == DType::F16;
            let input = if product { small } else { iota };
            vectors.push(Vector { dtype, cols: 17, input, tolerance, ..Vector::new("C2", mesh, output) });
        }
    }
    let halves = Vector { dtype: DType::F16, input: small, tolerance: 2e-2, ..Vector::new("C3", mesh, sum) };
    vectors.extend(sizes(&halves, &[1, 17, 8193]));
    vectors
}

/// What goes round a ring.
pub fn c4_to_c6() -> Vec<Vector> {
    let (_, ring, _) = OPS[0];
    let mut vectors = sizes(&Vector::new("C4", ring, sum), &[1, 17, 4097, 65537]);
    for (_, ring, output) in OPS {
        let input = if ring.contains("prod") { small } else { iota };
        vectors.push(Vector { cols: 17, input, tolerance: 1e-5, ..Vector::new("C5", ring, output) });
    }
    let halves = Vector { dtype: DType::F16, input: small, tolerance: 2e-2, ..Vector::new("C6", ring, sum) };
    vectors.extend(sizes(&halves, &[1, 17, 8193, 32769]));
    vectors
}

/// A window with a row for each rank.
const ROWS: &[(&str, usize)] = &[("data", 0)];
const GATHER: &[(&str, usize)] = &[("stage", 1), ("data", 0)];
const EXCHANGE: &[(&str, usize)] = &[("stage", 0), ("data", 0)];

fn swap(calls: &'static str) -> Vector {
    Vector { reads: "(me + 1) % world", ..Vector::new("C7_D11", calls, of_next) }
}

fn scatter(calls: &'static str) -> Vector {
    Vector { windows: ROWS, ..Vector::new("C10_D13", calls, scattered) }
}

fn gather(calls: &'static str) -> Vector {
    Vector { windows: GATHER, ..Vector::new("C9_D14", calls, gathered) }
}

fn exchange(calls: &'static str) -> Vector {
    Vector { windows: EXCHANGE, input: addressed, ..Vector::new("C11_D15", calls, exchanged) }
}

/// What moves data.
pub fn c7_to_c11() -> Vec<Vector> {
    vec![
        swap("barrier of data"),
        swap("barrier"),
        // A barrier that all ranks take, in one branch.
        swap("if nranks(data) > 1 { barrier of data }"),
        Vector::new("C8", "broadcast data root 0", of_root),
        gather("allgather data <- stage"),
        scatter("reduce_scatter sum data"),
        exchange("all_to_all data <- stage"),
    ]
}

/// One signal for all: only the second result counts, and the first one too.
pub fn c13_to_c15() -> Vec<Vector> {
    let twice = |vector: Vector| Vector { rounds: 2, ..vector };
    vec![
        twice(exchange(
            "barrier of data signal signal\nall_to_all data <- stage signal signal\nbarrier of data signal signal",
        )),
        twice(gather("allgather data <- stage signal signal")),
        twice(scatter("reduce_scatter sum data signal signal")),
    ]
}

#[test]
fn through_a_mesh() {
    in_task(&c1_to_c3());
    c1_to_c3().iter().filter(|vector| vector.name == "C3").for_each(|vector| vector.test(1, false));
}

#[test]
fn round_a_ring() {
    in_task(&c4_to_c6());
}

#[test]
fn that_move_data() {
    in_task(&c7_to_c11());
}

#[test]
fn one_signal_for_all() {
    in_task(&c13_to_c15());
}

/// With consumption between the calls.
#[test]
fn in_a_loop_of_many() {
    let many = |vector: Vector| Vector { rounds: 20, ..vector };
    in_task(&[
        many(exchange("all_to_all data <- stage mode direct")),
        many(gather("allgather data <- stage mode mesh")),
        many(scatter("reduce_scatter sum data mode direct")),
        many(Vector::new("many", "allreduce sum data mode two_phase", sum)),
        many(Vector::new("many", "broadcast data root 0 mode mesh", of_root)),
        many(swap("barrier of data")),
    ]);
}

#[test]
fn d1_to_d6() {
    let plain = Vector { cols: 256, ..Vector::new("D1", "allreduce sum data", sum) };
    let halves = Vector { dtype: DType::F16, tolerance: 2e-2, ..plain.clone() };
    in_host(&[
        plain.clone(),
        Vector { name: "D2", calls: "allreduce sum data signal signal", rounds: 3, ..plain.clone() },
        Vector { name: "D3", calls: "allreduce max data", output: max, ..plain.clone() },
    ]);
    in_host(&sizes(&Vector { name: "D4", ..halves.clone() }, &[1, 17, 257, 8193]));
    for (calls, output) in
        [("allreduce max data", max as Output), ("allreduce min data", min), ("allreduce prod data", prod)]
    {
        in_host(&[Vector { name: "D5", calls, output, cols: 17, input: small, ..halves.clone() }]);
    }
    in_host(&sizes(&Vector { name: "D6", ..plain }, &[17, 257]));
}

/// Several cores, once and twice; the cells of the signal stay.
#[test]
fn d7_and_d8() {
    for (nranks, cores, count) in [(2, 2, 1), (2, 4, 4127), (4, 2, 1041), (3, 5, 4127), (8, 3, 1041)] {
        for mode in ["auto", "mesh", "two_phase", "ring"] {
            let call = Call { kind: Kind::Allreduce(Combine::Sum), mode, dtype: DType::F32, count };
            calls::case(&[call], nranks, Form::Host { cores }, true).launch(&world(nranks));
            calls::case(&[call, call], nranks, Form::Host { cores }, true).launch(&world(nranks));
        }
    }
}

#[test]
fn d9_to_d15() {
    let ring = Vector { cols: 256, ..Vector::new("D9", "allreduce sum data mode ring", sum) };
    let twice = |calls: &'static str, vector: Vector| Vector { calls, rounds: 2, ..vector };
    let root = Vector::new("D12", "broadcast data root 0", of_root);
    let (scatter, gather) = (scatter("reduce_scatter sum data"), gather("allgather data <- stage"));
    let exchange = exchange("all_to_all data <- stage");
    in_host(&[
        ring.clone(),
        Vector { name: "D10", calls: "allreduce sum data mode ring signal signal", rounds: 3, ..ring },
        swap("barrier"),
        twice("barrier of data signal signal", swap("")),
        root.clone(),
        twice("broadcast data root 0 signal signal", root),
        scatter.clone(),
        twice("reduce_scatter sum data signal signal", scatter),
        gather.clone(),
        twice("allgather data <- stage signal signal", gather),
        exchange.clone(),
        twice("all_to_all data <- stage signal signal", exchange),
    ]);
}
