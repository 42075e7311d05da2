//! Programs around one collective: fill its operands, call it, take its results, some times.

use std::collections::BTreeMap;

use pld::check::Arg;
use pld::ir::Program;
use pld::ir::parse::parse;

/// The turn in which it is called twice in a row.
const TWICE: usize = 1;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Barrier,
    Allreduce,
    ReduceScatter,
    /// From rank 1.
    Broadcast,
    /// From another rank each time.
    BroadcastOfAny,
    Allgather,
    AllToAll,
    AllToAllV,
    /// With offsets: the rows stand in the other order of ranks.
    AllToAllVAt,
}

/// Where it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// In the task that fills and takes.
    Task,
    /// In a task of its own.
    Tasks,
    /// In the host driver, on this many cores.
    Host(i64),
}

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub kind: Kind,
    pub mode: &'static str,
    pub site: Site,
    /// Elements, elements of a row, or rows for each rank.
    pub count: usize,
    pub nranks: usize,
    /// Side by side.
    pub ranks_per_host: usize,
    pub dtype: &'static str,
    /// Turns of the loop around the calls.
    pub turns: usize,
}

/// Every collective in every mode.
pub const CALLS: &[(Kind, &str, &str)] = &[
    (Kind::Barrier, "auto", "i32"),
    (Kind::Allreduce, "mesh", "i32"),
    (Kind::Allreduce, "ring", "i32"),
    (Kind::Allreduce, "ring", "f16"),
    (Kind::Allreduce, "two_phase", "i32"),
    (Kind::ReduceScatter, "mesh", "i32"),
    (Kind::ReduceScatter, "direct", "i32"),
    (Kind::Broadcast, "mesh", "i32"),
    (Kind::Broadcast, "direct", "i32"),
    (Kind::BroadcastOfAny, "mesh", "i32"),
    (Kind::BroadcastOfAny, "direct", "i32"),
    (Kind::Allgather, "mesh", "i32"),
    (Kind::Allgather, "direct", "i32"),
    (Kind::AllToAll, "mesh", "i32"),
    (Kind::AllToAll, "direct", "i32"),
    (Kind::AllToAllV, "mesh", "i32"),
    (Kind::AllToAllV, "direct", "i32"),
    (Kind::AllToAllVAt, "mesh", "i32"),
    (Kind::AllToAllVAt, "direct", "i32"),
];

/// Those that hosts change: with a flat one of each kind of meeting.
pub const CALLS_OF_HOSTS: &[(Kind, &str, &str)] = &[
    (Kind::Barrier, "auto", "i32"),
    (Kind::Allreduce, "hierarchical", "i32"),
    (Kind::Allreduce, "hierarchical", "f16"),
    (Kind::ReduceScatter, "hierarchical", "i32"),
    (Kind::ReduceScatter, "hierarchical", "f16"),
    (Kind::Broadcast, "hierarchical", "i32"),
    (Kind::BroadcastOfAny, "hierarchical", "i32"),
    (Kind::Allgather, "hierarchical", "i32"),
    (Kind::Allreduce, "mesh", "i32"),
    (Kind::Allreduce, "ring", "f16"),
    (Kind::AllToAll, "mesh", "i32"),
    (Kind::AllToAllV, "direct", "i32"),
];

/// Elements of a row of an all_to_all_v.
const WIDTH: usize = 2;

/// Its name and shape.
type Window = (&'static str, Vec<usize>);
type Operands = Vec<Window>;

impl Case {
    /// The windows that are filled, and those that are taken from.
    fn operands(&self) -> (Operands, Operands) {
        let (n, p) = (self.count, self.nranks);
        match self.kind {
            Kind::Barrier => (vec![("src", vec![n])], vec![("data", vec![n])]),
            Kind::Allreduce | Kind::Broadcast | Kind::BroadcastOfAny => {
                (vec![("data", vec![n])], vec![("data", vec![n])])
            }
            Kind::ReduceScatter => (vec![("data", vec![p, n])], vec![("data", vec![p, n])]),
            Kind::Allgather => (vec![("src", vec![n])], vec![("data", vec![p, n])]),
            Kind::AllToAll => (vec![("src", vec![p, n])], vec![("data", vec![p, n])]),
            Kind::AllToAllV | Kind::AllToAllVAt => {
                let rows = vec![p * n, WIDTH];
                let mut given = vec![("src", rows.clone()), ("sent", vec![p])];
                if self.kind == Kind::AllToAllVAt {
                    given.extend([("from", vec![p]), ("to", vec![p])]);
                }
                (given, vec![("data", rows), ("came", vec![p])])
            }
        }
    }

    fn call(&self) -> String {
        let call = match self.kind {
            Kind::Barrier => return "barrier of data".into(),
            Kind::Allreduce => "allreduce sum data",
            Kind::ReduceScatter => "reduce_scatter sum data",
            Kind::Broadcast => "broadcast data root 1",
            Kind::BroadcastOfAny => "broadcast data root k % world",
            Kind::Allgather => "allgather data <- src",
            Kind::AllToAll => "all_to_all data <- src",
            Kind::AllToAllV => "all_to_all_v data, came <- src, sent",
            Kind::AllToAllVAt => "all_to_all_v data, came, to <- src, sent, from",
        };
        format!("{call} mode {}", self.mode)
    }

    pub fn text(&self) -> String {
        let (given, taken) = self.operands();
        let mut windows = given.clone();
        windows.extend(taken.iter().filter(|window| !given.contains(window)).cloned());
        let elements = |operands: &Operands| operands.iter().map(|(_, shape)| product(shape)).sum::<usize>();
        let (x, y) = (elements(&given), elements(&taken));
        let ty = |(name, shape): &Window| format!("{shape:?} {}", self.dtype_of(name));
        let moved = |operands: &Operands, out: bool| {
            let mut begin = 0;
            let mut text = String::new();
            for (name, shape) in operands {
                let all = product(shape);
                let host = if out { "y" } else { "x" };
                let (own, part) = (format!("{name}_of_{host}"), format!("{host}_of_{name}"));
                text += &format!("{own} = flatten {name}\n{part}_rows = slice {host}[k, {begin}] [1, {all}]\n");
                text += &format!("{part} = flatten {part}_rows\n");
                text += &match out {
                    true => format!("get {part}[0] <- {own}[0] @rank({name}) [{all}]\n"),
                    false => format!("put {own}[0] @rank({name}) <- {part}[0] [{all}]\n"),
                };
                begin += all;
            }
            text
        };
        let mut fill = moved(&given, false);
        if self.kind == Kind::Barrier {
            fill += "put data @((me + 1) % world) <- src\n";
        }
        let take = moved(&taken, true);
        let call = self.call();
        // Whoever puts again needs to know that it has been read.
        let close = if self.kind == Kind::Barrier { call.as_str() } else { "" };
        let name = |w: &Window| w.0.to_string();
        let param = |w: &Window| format!("{}: window{}", w.0, ty(w));
        let (names, params) = (list(&windows, name), list(&windows, param));
        let (dtype, turns) = (self.dtype, self.turns);
        let (x, y) = (format!("{x}] {dtype}"), format!("{y}] {dtype}"));
        let entry = |name: &str, body: &str| {
            format!(
                "entry {name}(x: tensor[{turns}, {x} in, y: tensor[{turns}, {y} out, {params}, me: i32) {{\n{body}}}\n"
            )
        };
        let dispatch =
            "ranks r in 0..world { dispatch e(xs[r], ys[r], WINDOWS, r) device r }\n".replace("WINDOWS", &names);
        let again = |call: &str| if turns > TWICE { format!("if k == {TWICE} {{ {call} }}\n") } else { String::new() };
        let calls = |call: &str| format!("{call}\n{}", again(call));
        let (entries, driver) = match self.site {
            Site::Task => {
                let body = format!("at t {{\nfor k in 0..{turns} {{\n{fill}{}{take}{close}\n}}\n}}\n", calls(&call));
                (entry("e", &body), dispatch)
            }
            Site::Tasks => {
                let task = |name: &str, body: &str| match body {
                    "" => String::new(),
                    body => format!("at {name} {{\n{body}\n}}\n"),
                };
                let body = [("fill", fill), ("call", calls(&call)), ("take", take), ("close", close.into())];
                let body: String = body.iter().map(|(name, body)| task(name, body)).collect();
                (entry("e", &format!("for k in 0..{turns} {{\n{body}}}\n")), dispatch)
            }
            Site::Host(cores) => {
                let on = |call: &str| if call.is_empty() { String::new() } else { format!("{call} cores {cores}\n") };
                let mut filled = given.clone();
                filled.extend(taken.iter().filter(|_| self.kind == Kind::Barrier).cloned());
                let (to, from) = (list(&filled, param), list(&taken, param));
                let entries = format!(
                    "entry fill(x: tensor[{turns}, {x} in, {to}, me: i32, k: i64) {{\nat give {{\n{fill}}}\n}}\n\
                     entry take(y: tensor[{turns}, {y} out, {from}, k: i64) {{\nat get {{\n{take}}}\n}}\n"
                );
                let ranks = |dispatch: String| format!("ranks r in 0..world {{ dispatch {dispatch} device r }}\n");
                let driver = format!(
                    "for k in 0..{turns} {{\n{}{}{}{}}}\n",
                    ranks(format!("fill(xs[r], {}, r, k)", list(&filled, name))),
                    calls(&on(&call)),
                    ranks(format!("take(ys[r], {}, k)", list(&taken, name))),
                    on(close)
                );
                (entries, driver)
            }
        };
        let mut buffers = String::new();
        for window in &windows {
            let (name, ty) = (window.0, ty(window));
            buffers += &format!("{name}_buf = alloc_window {ty}\n{name} = window {name}_buf {ty}\n");
        }
        let params = format!("xs: tensor[world, {turns}, {x} in, ys: tensor[world, {turns}, {y} out");
        format!("program p\n{entries}host ({params}) {{\n{buffers}{driver}}}\n")
    }

    pub fn program(&self) -> Program {
        let text = self.text();
        parse(&text, "test.pld").unwrap_or_else(|mistakes| panic!("{self:?}: {}\n{text}", mistakes[0]))
    }

    fn dtype_of(&self, operand: &str) -> &'static str {
        if ["src", "data"].contains(&operand) { self.dtype } else { "i32" }
    }

    /// Element `i` of what `rank` puts into an operand.
    fn value(&self, launch: usize, turn: usize, rank: usize, operand: &str, i: usize) -> i32 {
        let most = self.count + 1;
        let sent = |from: usize, to: usize| (launch + 2 * turn + from + 3 * to) % most;
        let value = match operand {
            "sent" => sent(rank, i),
            "from" | "to" => (self.nranks - 1 - i) * self.count,
            _ => (launch * 31 + turn * 7 + (rank + 1) * 5 + i * 3) % 23,
        };
        value as i32
    }

    /// The arguments of all launches.
    pub fn args(&self, launches: usize) -> Vec<Arg> {
        let (given, taken) = self.operands();
        let of_rank = |launch: usize, rank: usize| {
            let mut bytes = Vec::new();
            for turn in 0..self.turns {
                for (operand, shape) in &given {
                    let values = (0..product(shape)).map(|i| self.value(launch, turn, rank, operand, i));
                    bytes.extend(values.flat_map(|value| self.bytes(value)));
                }
            }
            bytes
        };
        let out = self.turns * taken.iter().map(|(_, shape)| product(shape)).sum::<usize>() * self.bytes(0).len();
        let all = |launch| {
            let xs = (0..self.nranks).map(|rank| of_rank(launch, rank)).collect();
            [Arg::Ranked(xs), Arg::Ranked(vec![vec![0xee; out]; self.nranks])]
        };
        (0..launches).flat_map(all).collect()
    }

    fn bytes(&self, value: i32) -> Vec<u8> {
        match self.dtype {
            "f16" => half::f16::from_f32(value as f32).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        }
    }

    /// What the last launch gives, by rank.
    pub fn results(&self, launches: usize, persistent: bool) -> Vec<Vec<u8>> {
        let (given, taken) = self.operands();
        let mut results = vec![Vec::new(); self.nranks];
        let mut ranks: Vec<Windows> = vec![Windows::new(); self.nranks];
        for launch in 0..launches {
            if !persistent || launch == 0 {
                let zeros = given.iter().chain(&taken).map(|(name, shape)| (*name, vec![0; product(shape)]));
                ranks = vec![zeros.collect(); self.nranks];
            }
            results.iter_mut().for_each(Vec::clear);
            for turn in 0..self.turns {
                for (rank, windows) in ranks.iter_mut().enumerate() {
                    for (name, shape) in &given {
                        let values = (0..product(shape)).map(|i| self.value(launch, turn, rank, name, i));
                        windows.insert(name, values.collect());
                    }
                }
                for _ in 0..if turn == TWICE { 2 } else { 1 } {
                    self.exchange(turn, &mut ranks);
                }
                for (windows, bytes) in ranks.iter().zip(&mut results) {
                    let all = taken.iter().flat_map(|(name, _)| &windows[name]);
                    bytes.extend(all.flat_map(|&value| self.bytes(value)));
                }
            }
        }
        results
    }

    /// What one call does.
    fn exchange(&self, turn: usize, ranks: &mut [Windows]) {
        let (n, p, before) = (self.count, self.nranks, ranks.to_vec());
        let sum = |i: usize| before.iter().map(|windows| windows["data"][i]).sum::<i32>();
        for (me, windows) in ranks.iter_mut().enumerate() {
            let data = windows.get_mut("data").expect("every call has data");
            match self.kind {
                Kind::Barrier => data.clone_from(&before[(me + p - 1) % p]["src"]),
                Kind::Allreduce => *data = (0..n).map(sum).collect(),
                Kind::ReduceScatter => (me * n..(me + 1) * n).for_each(|i| data[i] = sum(i)),
                Kind::Broadcast => data.clone_from(&before[1]["data"]),
                Kind::BroadcastOfAny => data.clone_from(&before[turn % p]["data"]),
                Kind::Allgather => *data = before.iter().flat_map(|windows| &windows["src"]).copied().collect(),
                Kind::AllToAll => {
                    *data = before.iter().flat_map(|windows| &windows["src"][me * n..(me + 1) * n]).copied().collect();
                }
                Kind::AllToAllV | Kind::AllToAllVAt => {
                    let place = |rank: usize| if self.kind == Kind::AllToAllVAt { p - 1 - rank } else { rank };
                    for (from, theirs) in before.iter().enumerate() {
                        let rows = theirs["sent"][me] as usize;
                        let (to, at) = (place(from) * n * WIDTH, place(me) * n * WIDTH);
                        data[to..][..rows * WIDTH].copy_from_slice(&theirs["src"][at..][..rows * WIDTH]);
                    }
                    let came = before.iter().map(|theirs| theirs["sent"][me]).collect();
                    windows.insert("came", came);
                }
            }
        }
    }
}

/// The elements of a rank's windows.
type Windows = BTreeMap<&'static str, Vec<i32>>;

fn list(windows: &[Window], text: impl Fn(&Window) -> String) -> String {
    windows.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn product(shape: &[usize]) -> usize {
    shape.iter().product()
}
