//! `pld run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value as Json, json};

use pld::check::value::Value;
use pld::ir::{DType, Direction, ParameterKind, Program};

use crate::console::{self, ERROR, STRONG};
use crate::exit::{Exit, Failure, Result};
use crate::launch::{Finished, LaunchOptions, Prepared};
use crate::source::count;
use crate::tensors::arguments::SlotValue;
use crate::tensors::compare::{Mismatch, Tolerance, mismatches, text};
use crate::tensors::{Array, elements, npz, type_text};

/// Most mismatches of a tensor that are shown.
const SHOWN: usize = 5;

const EXAMPLES: &str = "\
Examples:
  pld run exchange.pld -n 4
  pld run exchange.pld -d 0,1 --processes --launches 3 --persistent
  pld run exchange.pld --inputs in.npz --expect golden.npz --rtol 1e-3
  pld run exchange.pld --set TOKENS=128 --inputs random --seed 7 --output out.npz
  pld spawn -n 2 -- pld run exchange.pld --join

Prints a line for each tensor that the program writes, and each rank: name, rank, type and
shape, and the CRC-32 of its elements, row by row. Python has the same number as
zlib.crc32(x.tobytes()).

Tensors are kept from launch to launch, as an engine would. Those that are only written begin
with zeros. A file has bf16 as uint16 and floats of 8 bits as uint8, bit by bit.

Exits with 1 if results are not as expected, with 3 if the launch fails.";

/// Runs a program between threads or processes, prints checksums, and compares with what is expected
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    options: LaunchOptions,
    /// Launches in a row
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    launches: u32,
    /// Write the tensors that the program writes, whole, with their rank axis; with --join, this rank's part of them
    #[arg(long, value_name = "FILE.npz")]
    output: Option<PathBuf>,
    /// Compare with these tensors
    #[arg(long, value_name = "FILE.npz")]
    expect: Option<PathBuf>,
    /// An element may be off by this part of what is expected
    #[arg(long, value_name = "X", default_value_t = 1e-5)]
    rtol: f64,
    /// An element may be off by this in any case
    #[arg(long, value_name = "X", default_value_t = 1e-8)]
    atol: f64,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// A tensor that the program has written.
struct Output {
    name: String,
    dtype: DType,
    sliced: bool,
    parts: Vec<Part>,
}

/// What one rank has of it.
struct Part {
    /// The rank; none for a tensor that all ranks have in common.
    rank: Option<u32>,
    array: Array,
}

/// What is wrong with a part.
struct Wrong<'a> {
    output: &'a Output,
    part: &'a Part,
    mismatches: Vec<Mismatch>,
}

impl Run {
    /// Launches, and tells what comes of it.
    pub fn run(self) -> Result<Exit> {
        let (name, nranks, outputs) = if self.options.processes { self.processes()? } else { self.launch()? };
        if let Some(folder) = &self.options.results {
            if let [output, ..] = outputs.as_slice() {
                let rank = output.parts[0].rank.expect("a process with a folder for its results is a rank");
                self.write(&part_file(folder, rank), &outputs)?;
            }
            return Ok(Exit::Ok);
        }
        if let Some(path) = &self.output {
            self.write(path, &outputs)?;
        }
        let wrong = match &self.expect {
            Some(path) => self.compare(path, nranks, &outputs)?,
            None => Vec::new(),
        };
        if self.json {
            let tensors: Vec<Json> = outputs.iter().flat_map(Output::json).collect();
            let wrong: Vec<Json> = wrong.iter().map(Wrong::json).collect();
            let all = json!({
                "program": name,
                "ranks": nranks,
                "launches": self.launches,
                "tensors": tensors,
                "mismatches": wrong,
            });
            console::print(format!("{all:#}\n"))?;
        } else {
            console::print(outputs.iter().flat_map(Output::lines).collect::<String>())?;
            console::print(wrong.iter().map(Wrong::text).collect::<String>())?;
        }
        Ok(if wrong.is_empty() { Exit::Ok } else { Exit::Findings })
    }

    /// In this process: all ranks, or the one that it is.
    fn launch(&self) -> Result<(String, u32, Vec<Output>)> {
        let Prepared { program, world, executable, mut arguments } = self.options.prepare(false)?;
        for launch in 1..=self.launches {
            executable.launch(&arguments.of_launch(launch))?;
        }
        let mut outputs = Vec::new();
        for slot in arguments.slots {
            let SlotValue::Tensor { dtype, direction, sliced, array } = slot.value else { continue };
            if direction == Direction::In {
                continue;
            }
            let parts = match world.rank() {
                Some(rank) => vec![Part { rank: Some(rank), array }],
                None if sliced => {
                    let of = |rank| Part { rank: Some(rank), array: rank_part(&array, rank) };
                    (0..world.nranks()).map(of).collect()
                }
                None => vec![Part { rank: None, array }],
            };
            outputs.push(Output { name: slot.name, dtype, sliced, parts });
        }
        Ok((program.name, world.nranks(), outputs))
    }

    /// In a process for each rank.
    fn processes(&self) -> Result<(String, u32, Vec<Output>)> {
        let more = ["--launches".into(), self.launches.to_string().into()];
        let Finished { program, nranks, folder } = self.options.run_processes("run", &more)?;
        let mut outputs = written(&program);
        if outputs.is_empty() {
            return Ok((program.name, nranks, outputs));
        }
        for rank in 0..nranks {
            let mut arrays = npz::read(&part_file(&folder.path, rank))?;
            for output in &mut outputs {
                let array = arrays.remove(&output.name).expect("every rank writes every tensor");
                output.parts.push(Part { rank: Some(rank), array });
            }
        }
        Ok((program.name, nranks, outputs))
    }

    fn write(&self, path: &Path, outputs: &[Output]) -> Result<()> {
        let whole = |output: &Output| {
            let first = &output.parts[0].array;
            if self.options.join || !output.sliced {
                return Array::of(first.kind, first.shape.clone(), first.bytes());
            }
            let shape = [&[output.parts.len() as i64], first.shape.as_slice()].concat();
            let bytes: Vec<u8> = output.parts.iter().flat_map(|part| part.array.bytes()).copied().collect();
            Array::of(first.kind, shape, &bytes)
        };
        let arrays: Vec<Array> = outputs.iter().map(whole).collect();
        npz::write(path, outputs.iter().zip(&arrays).map(|(output, array)| (output.name.as_str(), array)))
    }

    fn compare<'a>(&self, path: &Path, nranks: u32, outputs: &'a [Output]) -> Result<Vec<Wrong<'a>>> {
        let expected: BTreeMap<String, Array> = npz::read(path)?;
        let mistake = |message: String| Failure::usage(format!("{}: {message}", path.display()));
        if expected.is_empty() {
            return Err(mistake("there is nothing in it to compare with".into()));
        }
        let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        if let Some(name) = expected.keys().find(|name| !names.contains(&name.as_str())) {
            return Err(mistake(format!("the program writes no tensor {name}; it writes {}", names.join(", "))));
        }
        let tolerance = Tolerance { rtol: self.rtol, atol: self.atol };
        let mut wrong = Vec::new();
        for output in outputs {
            let Some(expected) = expected.get(&output.name) else { continue };
            let part = &output.parts[0].array.shape;
            let whole = if output.sliced { [&[nranks.into()], part.as_slice()].concat() } else { part.clone() };
            if expected.shape != whole {
                let (is, wanted) = (type_text("", &expected.shape), type_text("", &whole));
                return Err(mistake(format!("{}: a shape of {wanted} is needed, not {is}", output.name)));
            }
            for part in &output.parts {
                let expected = match part.rank {
                    Some(rank) if output.sliced => &rank_part(expected, rank),
                    _ => expected,
                };
                let mismatches = mismatches(&part.array, expected, output.dtype, tolerance);
                if !mismatches.is_empty() {
                    wrong.push(Wrong { output, part, mismatches });
                }
            }
        }
        Ok(wrong)
    }
}

/// The tensors that a program writes, without their parts.
fn written(program: &Program) -> Vec<Output> {
    let output = |param: pld::ir::Parameter| match param.kind {
        ParameterKind::Tensor { dtype, direction, sliced, .. } if direction != Direction::In => {
            Some(Output { name: param.name, dtype, sliced, parts: Vec::new() })
        }
        _ => None,
    };
    program.parameters().into_iter().filter_map(output).collect()
}

fn part_file(folder: &Path, rank: u32) -> PathBuf {
    folder.join(format!("rank-{rank}.npz"))
}

/// One rank's part of a whole tensor.
fn rank_part(whole: &Array, rank: u32) -> Array {
    let shape = whole.shape[1..].to_vec();
    let size = whole.bytes().len() / whole.shape[0] as usize;
    Array::of(whole.kind, shape, &whole.bytes()[rank as usize * size..][..size])
}

impl Part {
    fn checksum(&self) -> String {
        format!("{:08x}", crc32fast::hash(self.array.bytes()))
    }

    fn who(&self) -> String {
        self.rank.map_or("all ranks".into(), |rank| format!("rank {rank}"))
    }
}

impl Output {
    fn lines(&self) -> impl Iterator<Item = String> {
        self.parts.iter().map(|part| {
            let ty = type_text(self.dtype, &part.array.shape);
            format!("{} {} {ty} crc32 {}\n", self.name, part.who(), part.checksum())
        })
    }

    fn json(&self) -> impl Iterator<Item = Json> {
        self.parts.iter().map(|part| {
            json!({
                "name": self.name,
                "rank": part.rank,
                "dtype": self.dtype.name(),
                "shape": part.array.shape,
                "crc32": part.checksum(),
            })
        })
    }
}

impl Wrong<'_> {
    fn text(&self) -> String {
        let (name, who) = (&self.output.name, self.part.who());
        let of = count(elements(&self.part.array.shape), "element");
        let mut out = format!(
            "{ERROR}mismatch{ERROR:#}: {STRONG}{name}{STRONG:#} of {who}: {} of {of} not as expected\n",
            self.mismatches.len()
        );
        for Mismatch { index, expected, actual, off } in self.mismatches.iter().take(SHOWN) {
            out += &format!("    {index:?}: expected {}, is {}, off by {off}\n", text(*expected), text(*actual));
        }
        if self.mismatches.len() > SHOWN {
            out += &format!("    and {} more\n", self.mismatches.len() - SHOWN);
        }
        out
    }

    fn json(&self) -> Json {
        let worst = |m: &Mismatch| json!({ "index": m.index, "expected": number(m.expected), "actual": number(m.actual), "off": float(m.off) });
        json!({
            "name": self.output.name,
            "rank": self.part.rank,
            "count": self.mismatches.len(),
            "elements": elements(&self.part.array.shape),
            "worst": self.mismatches.iter().take(SHOWN).map(worst).collect::<Vec<_>>(),
        })
    }
}

fn number(value: Value) -> Json {
    match value {
        Value::Int(value) => i64::try_from(value).map_or_else(|_| json!(value as u64), |value| json!(value)),
        Value::Float(value) => float(value.into()),
    }
}

/// JSON has no infinities and no NaN: they are texts.
fn float(value: f64) -> Json {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}
