//! Programs survive printing and parsing: the text stays the same, and so does what it means.

#[path = "support/programs.rs"]
mod programs;

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pld::ir::effects::{Access, Place, effects};
use pld::ir::extent::{ExtentData, Shape};
use pld::ir::parse::parse;
use pld::ir::print::{Text, print};
use pld::ir::program::{Param, ScalarDef, TensorDef};
use pld::ir::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_survive_text(choices in proptest::collection::vec(any::<u8>(), 0..400)) {
        let program = programs::program(&choices);
        let text = print(&program);
        let again = match parse(&text, "random.pld") {
            Ok(again) => again,
            Err(mistakes) => return Err(TestCaseError::fail(format!("{text}\n{}", mistakes[0]))),
        };
        prop_assert_eq!(&print(&again), &text, "the text changes");
        let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let ops = Text::new(&program);
        for op in program.ops.keys().map(|op| ops.op(op)) {
            // A max inside of a min prints as clamp.
            prop_assert!(squeezed.contains(&op) || op.starts_with("max("), "{} is not in\n{}", op, text);
        }
        prop_assert_eq!(Meaning::of(&again), Meaning::of(&program), "the meaning changes:\n{}", text);
    }
}

/// What a program does, without its names and without the order of what has no effect: every op with an effect, in
/// order, and for its operands how they are computed. A value that is read carries how many effects came before that
/// could have changed it.
#[derive(Default, Debug, PartialEq)]
struct Meaning {
    lines: Vec<String>,
    /// How many ops there are of each kind: those whose result nobody uses count too.
    ops: std::collections::BTreeMap<&'static str, usize>,
}

struct Reader<'p> {
    program: &'p Program,
    meaning: Meaning,
    /// What stands for an entity, by its printed id.
    known: HashMap<String, String>,
    /// Entities numbered so far.
    numbered: usize,
    memory: usize,
    blocks: usize,
    changes: HashMap<String, usize>,
}

impl Meaning {
    fn of(program: &Program) -> Self {
        let mut reader = Reader {
            program,
            meaning: Meaning::default(),
            known: HashMap::new(),
            numbered: 0,
            memory: 0,
            blocks: 0,
            changes: HashMap::new(),
        };
        for entry in program.entries.values() {
            reader.function(&entry.name, &entry.params, entry.body);
        }
        let host = program.host.as_ref().expect("a host driver");
        reader.function("host", &host.params, host.body);
        reader.meaning
    }
}

impl Reader<'_> {
    fn function(&mut self, name: &str, params: &[Param], body: Block) {
        self.meaning.lines.push(name.into());
        for param in params {
            let line = match *param {
                Param::Tensor(t) => self.tensor_data(t),
                Param::Scalar(s) => self.scalar(s),
            };
            self.meaning.lines.push(line);
        }
        self.block(body);
    }

    fn block(&mut self, block: Block) {
        for &op in &self.program.blocks[block] {
            self.op(op);
        }
    }

    fn op(&mut self, op: Op) {
        let kind = &self.program.ops[op].kind;
        *self.meaning.ops.entry(kind.name()).or_default() += 1;
        if let Some(index) = kind.index() {
            self.number(&index.to_string());
        }
        match *kind {
            OpKind::Slice { dst, .. } | OpKind::Window { dst, .. } => {
                let id = format!("{} {}", self.number(&dst.to_string()), self.tensor_data(dst));
                self.known.insert(dst.to_string(), id);
            }
            _ => {}
        }
        let mut text = self.rewrite(&format!("{kind:?}"));
        let changes = |place: &str| self.changes.get(place).copied().unwrap_or_default();
        match *kind {
            OpKind::Read { .. } => text += &format!(" after {} {}", self.memory, self.blocks),
            OpKind::VarGet { var, .. } => text += &format!(" after {} {}", changes(&var.to_string()), self.blocks),
            OpKind::ArrayGet { array, .. } => {
                text += &format!(" after {} {} {}", changes(&array.to_string()), self.memory, self.blocks);
            }
            _ => {}
        }
        if let Some(dst) = kind.result() {
            text = digest(&format!("{text} {:?}", self.program.scalars[dst].ty));
            self.known.insert(dst.to_string(), text);
            return;
        }
        if let OpKind::SliceRank { dst, .. } = *kind {
            self.known.insert(dst.to_string(), digest(&text));
            return;
        }
        self.meaning.lines.push(text);
        for effect in effects(self.program, kind) {
            match effect.place {
                Place::Memory { .. } if effect.access != Access::Read => self.memory += 1,
                Place::Var(var) if effect.access.is_write() => *self.changes.entry(var.to_string()).or_default() += 1,
                Place::Array(a) if effect.access.is_write() => *self.changes.entry(a.to_string()).or_default() += 1,
                _ => {}
            }
        }
        for inner in kind.blocks() {
            self.blocks += 1;
            self.meaning.lines.push("{".into());
            self.block(inner);
            self.meaning.lines.push("}".into());
            self.blocks += 1;
        }
    }

    /// Replaces the ids in a text by what they stand for.
    fn rewrite(&mut self, text: &str) -> String {
        let mut out = String::new();
        for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let digits = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            match (word.strip_suffix(digits).unwrap_or_default(), digits.parse::<u32>()) {
                ("v", Ok(n)) => out += &self.scalar(Scalar::from_u32(n)),
                ("x", Ok(n)) => out += &self.tensor(Tensor::from_u32(n)),
                ("t", Ok(n)) => {
                    let data = &self.program.tiles[Tile::from_u32(n)];
                    out += &format!("{} {:?} {}", self.number(word), data.dtype, self.shape(&data.shape));
                }
                ("var", Ok(n)) => {
                    out += &format!("{} {:?}", self.number(word), self.program.vars[Var::from_u32(n)].ty);
                }
                ("arr", Ok(n)) => {
                    let data = &self.program.arrays[Array::from_u32(n)];
                    out += &format!("{} {:?} {}", self.number(word), data.ty, self.extent(data.len));
                }
                ("buf", Ok(n)) => {
                    let data = &self.program.buffers[Buffer::from_u32(n)];
                    let size = match &data.size {
                        program::BufferSize::Shape(dtype, shape) => format!("{dtype} {}", self.shape(shape)),
                        program::BufferSize::Bytes(bytes) => self.extent(*bytes),
                    };
                    let domain = data.domain.map(|domain| self.number(&domain.to_string()));
                    out += &format!("{} {size} {domain:?}", self.number(word));
                }
                ("domain", Ok(n)) => {
                    let ranks = match &self.program.domains[Domain::from_u32(n)].ranks {
                        program::DomainRanks::Range(first, end) => self.shape(&Shape::from_slice(&[*first, *end])),
                        program::DomainRanks::List(ranks) => self.shape(&Shape::from_slice(ranks)),
                    };
                    out += &format!("{} {ranks}", self.number(word));
                }
                ("task", Ok(n)) => {
                    out += &format!("{} {}", self.number(word), self.program.tasks[Task::from_u32(n)].name);
                }
                ("block", Ok(_)) => {}
                _ => out += word,
            }
            out += &part[word.len()..];
        }
        out
    }

    /// Registers are numbered in the order in which they appear.
    fn number(&mut self, id: &str) -> String {
        if !self.known.contains_key(id) {
            self.numbered += 1;
            self.known.insert(id.into(), format!("#{}", self.numbered));
        }
        self.known[id].clone()
    }

    fn scalar(&mut self, scalar: Scalar) -> String {
        let data = &self.program.scalars[scalar];
        match data.def {
            ScalarDef::Extent(e) => format!("({})", self.extent(e)),
            ScalarDef::Float(value) if value.is_nan() => "nan".into(),
            ScalarDef::Float(value) => format!("{:x}", value.to_bits()),
            ScalarDef::Bool(value) => format!("{value}"),
            ScalarDef::Param(..) | ScalarDef::HostParam(_) => format!("{:?} {:?}", data.def, data.ty),
            // An op's own result has no meaning yet.
            ScalarDef::Index(_) | ScalarDef::Result(_) => {
                self.known.get(&scalar.to_string()).cloned().unwrap_or_default()
            }
        }
    }

    fn tensor(&mut self, tensor: Tensor) -> String {
        match self.known.get(&tensor.to_string()) {
            Some(known) => known.clone(),
            None if matches!(self.program.tensors[tensor].def, TensorDef::HostSlice(..)) => String::new(),
            None => self.tensor_data(tensor),
        }
    }

    fn tensor_data(&mut self, tensor: Tensor) -> String {
        let data = &self.program.tensors[tensor];
        let def = self.rewrite(&format!("{:?}", data.def));
        format!("{} {} {def}", data.dtype, self.shape(&data.shape))
    }

    fn shape(&self, shape: &Shape) -> String {
        shape.iter().map(|e| self.extent(*e) + ",").collect()
    }

    fn extent(&self, extent: Extent) -> String {
        match self.program.extents.get(extent) {
            ExtentData::Int(value) => value.to_string(),
            ExtentData::World => "world".into(),
            ExtentData::Dim(dim) => self.program.extents.dims[dim].name.clone(),
            ExtentData::Binary(op, a, b) => format!("({} {op} {})", self.extent(a), self.extent(b)),
        }
    }
}

fn digest(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("<{:x}>", hasher.finish())
}
