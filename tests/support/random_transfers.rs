//! Random tile and transfer programs on several ranks.
//!
//! A program has phases with barriers between them. In a phase a rank reads the window that the phase before has
//! filled, anywhere, and writes its own slot of the other window, anywhere; so ranks do not race.

use std::fmt::Write;

use half::{bf16, f16};
use pld::ir::{DType, Program};

use crate::choices::Choices;
use crate::ranks::{Arg, Bytes};
use crate::text::program;

const ARITHMETIC: [DType; 11] = [
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
];

/// Slots of tensor `x`, and of tensor `y` a phase.
const SLOTS: i64 = 4;
const PHASES: i64 = 3;

#[derive(Clone)]
struct TileInfo {
    name: String,
    dtype: DType,
    shape: Vec<i64>,
    /// Its elements are small integers, so that sums are exact.
    small: bool,
}

struct Maker {
    choices: Choices,
    text: String,
    dtype: DType,
    nranks: i64,
    /// Extents of a slot: the part of a tensor that one rank or one op uses.
    slot: Vec<i64>,
    /// Extent of `acc`, in slots, or none if the type has no atomic add that is exact here.
    adds: bool,
    tiles: Vec<TileInfo>,
    names: usize,
    indent: usize,
    phase: i64,
}

impl Maker {
    fn line(&mut self, line: &str) {
        writeln!(self.text, "{:1$}{line}", "", 4 + 2 * self.indent).unwrap();
    }

    /// A number: as such, or read from memory so that it is known only when the program runs.
    fn number(&mut self, value: i64) -> String {
        if (0..8).contains(&value) && self.choices.below(3) > 0 { format!("i{value}") } else { value.to_string() }
    }

    fn list(&mut self, values: &[i64]) -> String {
        let all: Vec<String> = values.iter().map(|&v| self.number(v)).collect();
        all.join(", ")
    }

    fn peer(&mut self) -> (String, i64) {
        let shift = self.choices.below(self.nranks as usize) as i64;
        (if shift == 0 { "me".into() } else { format!("((me + {shift}) % world)") }, shift)
    }

    /// A region within a slot: offsets and extents.
    fn region(&mut self) -> (Vec<i64>, Vec<i64>) {
        let pairs: Vec<(i64, i64)> = self
            .slot
            .clone()
            .into_iter()
            .map(|extent| {
                // Whole dimensions are likely, so that regions are contiguous in some dimensions.
                if self.choices.below(2) == 0 {
                    return (0, extent);
                }
                let at = self.choices.between(0, extent - 1);
                (at, self.choices.between(1, extent - at))
            })
            .collect();
        pairs.into_iter().unzip()
    }

    /// `at` within a slot of a tensor.
    fn place(&mut self, tensor: &str, slot: String, at: &[i64]) -> String {
        let lead = self.number(at[0]);
        let mut place = format!("{tensor}[({slot}) * {} + {lead}", self.slot[0]);
        for &at in &at[1..] {
            let at = self.number(at);
            write!(place, ", {at}").unwrap();
        }
        place + "]"
    }

    /// Something to read: `x`, or the window of this rank or a peer.
    fn source(&mut self, at: &[i64]) -> (String, Option<String>, bool) {
        match self.choices.below(3) {
            0 => {
                let slot = self.choices.below(SLOTS as usize) as i64;
                let slot = self.number(slot);
                (self.place("x", slot, at), None, true)
            }
            kind => {
                let slot = self.choices.below(self.nranks as usize) as i64;
                let slot = self.number(slot);
                let peer = (kind == 2).then(|| self.peer().0);
                (self.place("from", slot, at), peer, false)
            }
        }
    }

    fn shape(shape: &[i64]) -> String {
        format!("[{}]", shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
    }

    fn tile(&mut self, fits: impl Fn(&TileInfo) -> bool) -> Option<TileInfo> {
        let all: Vec<TileInfo> = self.tiles.iter().filter(|t| fits(t)).cloned().collect();
        (!all.is_empty()).then(|| all[self.choices.below(all.len())].clone())
    }

    /// Defines a tile, or changes one like it.
    fn define(&mut self, dtype: DType, shape: Vec<i64>, small: bool, made: &str) {
        let alike = self.tiles.iter().position(|t| t.dtype == dtype && t.shape == shape);
        if let Some(at) = alike
            && self.choices.below(3) == 0
        {
            let name = self.tiles[at].name.clone();
            // In a loop it may be read before it is changed, in the next iteration.
            self.tiles[at].small &= small;
            return self.line(&format!("{name} = {made}"));
        }
        self.names += 1;
        let name = format!("t{}", self.names);
        self.line(&format!("{name} = {made}"));
        self.tiles.push(TileInfo { name, dtype, shape, small });
    }

    fn load(&mut self) {
        let (at, shape) = self.region();
        let (place, peer, small) = self.source(&at);
        let text = Self::shape(&shape);
        let made = match peer {
            None => format!("load {place} {text}"),
            Some(peer) => format!("remote_load {place} @{peer} {text}"),
        };
        self.define(self.dtype, shape, small, &made);
    }

    fn compute(&mut self) {
        let Some(a) = self.tile(|_| true) else { return self.load() };
        let arithmetic = ARITHMETIC.contains(&a.dtype);
        let name = &a.name;
        match self.choices.below(6) {
            0 => self.define(a.dtype, a.shape.clone(), a.small, &format!("copy {name}")),
            1 => {
                let to = self.choices.of(&ARITHMETIC);
                if arithmetic && to != a.dtype {
                    self.define(to, a.shape.clone(), false, &format!("cast {name} {to}"));
                }
            }
            2 if arithmetic && a.shape.len() == 2 && a.small => {
                let (row, op) = (self.choices.below(2) == 0, self.choices.of(&["sum", "max"]));
                let (axis, shape) = if row { ("row", vec![a.shape[0], 1]) } else { ("col", vec![1, a.shape[1]]) };
                self.define(a.dtype, shape, false, &format!("{axis}_{op} {name}"));
            }
            3 if arithmetic => {
                let op = self.choices.of(&["add", "sub", "mul", "div", "max", "min"]);
                let by = self.choices.of(&["2", "3", "1", "i5"]);
                let by = if by == "i5" && a.dtype.is_float() { "0.25" } else { by };
                self.define(a.dtype, a.shape.clone(), false, &format!("{op} {name}, {by}"));
            }
            _ if arithmetic => {
                let op = self.choices.of(&["add", "sub", "mul", "max", "min"]);
                let b = self.tile(|t| t.dtype == a.dtype && t.shape == a.shape).expect("at least the first operand");
                self.define(a.dtype, a.shape.clone(), false, &format!("{op} {name}, {}", b.name));
            }
            _ => {
                let value = if a.dtype == DType::Bool { "true" } else { "1" };
                let shape = Self::shape(&a.shape);
                if !a.dtype.is_storage_only() {
                    self.define(a.dtype, a.shape.clone(), false, &format!("full {} {shape} {value}", a.dtype));
                }
            }
        }
    }

    fn fits_slot(&self, shape: &[i64]) -> bool {
        shape.iter().zip(&self.slot).all(|(a, b)| a <= b)
    }

    fn store(&mut self) {
        let (dtype, slot) = (self.dtype, self.slot.clone());
        let Some(tile) = self.tile(|t| t.dtype == dtype && t.shape.iter().zip(&slot).all(|(a, b)| a <= b)) else {
            return self.load();
        };
        debug_assert!(self.fits_slot(&tile.shape));
        let at: Vec<i64> =
            tile.shape.iter().zip(&slot).map(|(&extent, &slot)| self.choices.between(0, slot - extent)).collect();
        let name = &tile.name;
        match self.choices.below(4) {
            0 => {
                let place = self.output(&at);
                self.line(&format!("store {name} -> {place}"));
            }
            1 if self.adds && tile.small => {
                let (place, (peer, _)) = (self.place("acc", "0".into(), &at), self.peer());
                self.line(&format!("remote_store {name} -> {place} @{peer} add"));
            }
            2 => {
                let place = self.place("to", "me".into(), &at);
                self.line(&format!("store {name} -> {place}"));
            }
            _ => {
                let (place, (peer, _)) = (self.place("to", "me".into(), &at), self.peer());
                self.line(&format!("remote_store {name} -> {place} @{peer}"));
            }
        }
    }

    /// A place of `y`.
    fn output(&mut self, at: &[i64]) -> String {
        let slot = self.phase * SLOTS + self.choices.below(SLOTS as usize) as i64;
        let slot = self.number(slot);
        self.place("y", slot, at)
    }

    fn options(&mut self) -> &'static str {
        match self.slot.len() {
            2 => self.choices.of(&["", "", " chunk [1, 4]", " chunk [2, 3] pipeline"]),
            _ => "",
        }
    }

    fn transfer(&mut self) {
        let (at, mut shape) = self.region();
        if self.choices.below(12) == 0 {
            let dim = self.choices.below(shape.len());
            shape[dim] = 0;
        }
        let extents = self.list(&shape);
        let options = self.options();
        let (source, peer, _) = self.source(&at);
        // The two regions may begin at different places of their slots.
        let to: Vec<i64> = at.iter().map(|&at| self.choices.between(0, at)).collect();
        let dynamic = extents.contains('i');
        let options = if dynamic && options.is_empty() && self.slot.len() == 2 { " chunk [1, 4]" } else { options };
        match peer {
            Some(peer) => {
                let target =
                    if self.choices.below(2) == 0 { self.output(&to) } else { self.place("to", "me".into(), &to) };
                self.line(&format!("get {target} <- {source} @{peer} [{extents}]{options}"));
            }
            None => {
                let peer = self.peer().0;
                if self.adds && source.starts_with('x') && self.choices.below(3) == 0 {
                    let target = self.place("acc", "0".into(), &to);
                    self.line(&format!("put {target} @{peer} <- {source} [{extents}] add{options}"));
                } else {
                    let target = self.place("to", "me".into(), &to);
                    self.line(&format!("put {target} @{peer} <- {source} [{extents}]{options}"));
                }
            }
        }
    }

    /// Slices, and whole transfers between them.
    fn slices(&mut self) {
        let (at, shape) = self.region();
        self.names += 1;
        let n = self.names;
        let text = Self::shape(&shape);
        let (source, peer, _) = self.source(&at);
        let target = self.place("to", "me".into(), &at);
        self.line(&format!("p{n} = slice {source} {text}"));
        self.line(&format!("q{n} = slice {target} {text}"));
        let inner: Vec<i64> = shape.iter().map(|&extent| self.choices.between(0, extent - 1)).collect();
        let rest: Vec<i64> = shape.iter().zip(&inner).map(|(extent, at)| extent - at).collect();
        let (inner, rest) = (self.list(&inner), Self::shape(&rest));
        match peer {
            Some(peer) => {
                self.line(&format!("r{n} = slice p{n}[{inner}] {rest}"));
                self.line(&format!("s{n} = slice q{n}[{inner}] {rest}"));
                self.line(&format!("get s{n} <- r{n} @{peer}"));
            }
            None => {
                let peer = self.peer().0;
                self.line(&format!("put q{n} @{peer} <- p{n}"));
            }
        }
    }

    fn statements(&mut self) {
        for _ in 0..self.choices.between(1, 8) {
            if self.choices.ended() {
                return;
            }
            match self.choices.below(12) {
                0 if self.indent < 2 => {
                    let tiles = self.tiles.clone();
                    let count = self.choices.between(0, 3);
                    let count = self.number(count);
                    let index = format!("k{}", self.indent);
                    // What a tile becomes in one iteration is what the next one begins with.
                    for tile in &mut self.tiles {
                        tile.small = false;
                    }
                    self.line(&format!("for {index} in 0..{count} {{"));
                    self.indent += 1;
                    self.load();
                    self.statements();
                    self.indent -= 1;
                    self.line("}");
                    self.tiles = tiles;
                    for tile in &mut self.tiles {
                        tile.small = false;
                    }
                }
                1..=3 => self.load(),
                4..=6 => self.compute(),
                7 | 8 => self.store(),
                9 => self.slices(),
                _ => self.transfer(),
            }
        }
    }
}

/// A program, the ranks that it is for, and its arguments.
pub fn transfers(choices: Vec<u32>) -> (Program, u32, Vec<Arg>) {
    let mut choices = Choices::new(choices);
    let dtype = choices.of(&DType::ALL);
    let nranks = choices.between(1, 4);
    // Now and then the ranks are numbered in another order.
    let (order, within) = match choices.below(3) {
        0 => (String::new(), ""),
        _ => (format!("  order = domain {:?}\n", choices.permutation(nranks)), " in order"),
    };
    let rank = choices.of(&[2, 2, 1, 3, 4]);
    let lead = choices.between(1, 3);
    let mut slot = vec![lead];
    slot.extend(
        (1..rank).map(|dim| if dim + 1 == rank { choices.of(&[5, 1, 4, 16, 33]) } else { choices.between(1, 3) }),
    );
    let adds = dtype.has_atomic_add() && dtype != DType::BF16;
    let dims = |slots: &str| {
        let rest: String = slot[1..].iter().map(|d| format!(", {d}")).collect();
        format!("[{slots} * {lead}{rest}] {dtype}")
    };
    let acc = if adds { dims("1") } else { "[1] i32".into() };
    let (x, y, w) = (dims(&SLOTS.to_string()), dims(&(SLOTS * PHASES).to_string()), dims("world"));
    let mut maker = Maker {
        choices,
        text: "program transfers\n".into(),
        dtype,
        nranks,
        slot: slot.clone(),
        adds,
        tiles: Vec::new(),
        names: 0,
        indent: 0,
        phase: 0,
    };
    for phase in 0..PHASES {
        maker.phase = phase;
        maker.text += &format!(
            "entry phase{phase}(x: tensor{x} in, y: tensor{y} out, idx: tensor[8] i64 in,\n\
             from: window{w}, to: window{w}, acc: window{acc}, me: i32) {{\n"
        );
        for task in 0..2 {
            maker.text += &format!("  at task{task} {{\n");
            for i in 0..8 {
                maker.line(&format!("i{i} = idx[{i}]"));
            }
            maker.tiles.clear();
            maker.statements();
            maker.text += "  }\n";
        }
        maker.text += "}\n";
    }
    maker.text += &format!(
        "entry barrier(sig: window[world] i32, me: i32, epoch: i32) {{
  at barrier {{
    for peer in 0..world {{ notify sig[me] @peer += 1 }}
    for peer in 0..world {{ wait sig[peer] >= epoch }}
  }}
}}
host (xs: tensor[world, {}] {dtype} in, ys: tensor[world, {}] {dtype} out, idx: tensor[world, 8] i64 in) {{
{order}  a_buf = alloc_window {w}{within}
  b_buf = alloc_window {w}{within}
  acc_buf = alloc_window {acc}{within}
  sig_buf = alloc_window [world] i32
",
        x.trim_start_matches('[').trim_end_matches(&format!("] {dtype}")),
        y.trim_start_matches('[').trim_end_matches(&format!("] {dtype}")),
    );
    for phase in 0..PHASES {
        let (from, to) = if phase % 2 == 0 { ("a", "b") } else { ("b", "a") };
        maker.text += &format!(
            "  ranks r in 0..world {{
    a = window a_buf {w}
    b = window b_buf {w}
    acc = window acc_buf {acc}
    dispatch phase{phase}(xs[r], ys[r], idx[r], {from}, {to}, acc, r) device r
  }}
  ranks r in 0..world {{
    sig = window sig_buf [world] i32
    dispatch barrier(sig, r, {}) device r
  }}
",
            phase + 1
        );
    }
    maker.text += "}\n";
    let slot_len = slot.iter().product::<i64>() * SLOTS;
    let x = |rank: i64| -> Vec<u8> {
        (0..slot_len)
            .flat_map(|i| {
                let value = (i * 7 + i / 9 + 3 * rank) % 4 + 1;
                match dtype {
                    DType::F32 => (value as f32).to_ne_bytes().to_vec(),
                    DType::F16 => f16::from_f32(value as f32).to_ne_bytes().to_vec(),
                    DType::BF16 => bf16::from_f32(value as f32).to_ne_bytes().to_vec(),
                    DType::Bool => vec![(value % 2) as u8],
                    _ => value.to_ne_bytes()[..dtype.size() as usize].to_vec(),
                }
            })
            .collect()
    };
    let y = vec![0; (slot_len * PHASES * dtype.size()) as usize];
    let idx = i64::bytes(&(0..8).collect::<Vec<_>>());
    let args = vec![
        Arg::Ranked((0..nranks).map(x).collect()),
        Arg::Ranked(vec![y; nranks as usize]),
        Arg::Ranked(vec![idx; nranks as usize]),
    ];
    (program(&maker.text), nranks as u32, args)
}
