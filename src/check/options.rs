//! What is explored: the world, its inputs, the memory model, and the budget.

use std::fmt;
use std::str::FromStr;

/// Most steps that a written schedule can have.
const MOST_STEPS: usize = 1 << 24;

/// How a program is run and explored.
#[derive(Clone)]
pub struct Options<'a> {
    /// Number of ranks.
    pub nranks: u32,
    /// Launches in a row.
    pub launches: u32,
    /// Windows keep their contents between launches, and nothing makes a rank wait for others between two of them.
    pub persistent: bool,
    /// When remote writes land.
    pub memory: Memory,
    /// How schedules are chosen.
    pub explore: Explore,
    /// Most schedules that are run.
    pub schedules: u64,
    /// The first seed; others count up from it.
    pub seed: u64,
    /// The only schedule to run, instead of exploring.
    pub replay: Option<Schedule>,
    /// Values of the dynamic dimensions, by index.
    pub dims: &'a [i64],
    /// Arguments of the host driver: one set for all launches, or a set for each of them, one behind the other.
    pub args: &'a [Arg],
    /// The engine's own functions. A function that is not there touches memory as it declares, but changes nothing.
    pub functions: Option<&'a dyn Functions>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            nranks: 2,
            launches: 1,
            persistent: false,
            memory: Memory::Host,
            explore: Explore::Auto,
            schedules: 1000,
            seed: 0,
            replay: None,
            dims: &[],
            args: &[],
            functions: None,
        }
    }
}

/// An argument of the host driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A tensor: each rank's part, without the leading axis, or each rank's own copy of a whole one.
    Ranked(Vec<Vec<u8>>),
    /// A tensor that all ranks have in common.
    Shared(Vec<u8>),
    /// The bits of a scalar.
    Bits(u64),
}

/// When remote writes land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The end of a task drains what the task wrote at other ranks.
    Host,
    /// The end of a task does not drain its remote stores; only a notify of the same task does.
    Npu,
}

/// How schedules are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explore {
    /// Every schedule while that is few; otherwise half of them as in `Random`, half as in `Pct`.
    Auto,
    /// Each step is one of those that are possible, with equal chances.
    Random,
    /// Tasks have random priorities, which change at few random points.
    Pct,
    /// Every schedule, leaving out those that differ only in the order of independent steps.
    Exhaustive,
}

/// One schedule, to run it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Chosen with this seed, uniformly.
    Random(u64),
    /// Chosen with this seed, by priorities.
    Pct(u64),
    /// These choices among the possible steps, and then always the first: the block that went on last, if it can, else
    /// the oldest one of the lowest rank. Written as `first`, or `first:7=2` where step 7 takes number 2.
    Choices(Vec<u16>),
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::Random(seed) => write!(f, "random:{seed}"),
            Schedule::Pct(seed) => write!(f, "pct:{seed}"),
            Schedule::Choices(choices) => {
                f.write_str("first")?;
                let others = choices.iter().enumerate().filter(|(_, choice)| **choice != 0);
                for (index, (step, choice)) in others.enumerate() {
                    write!(f, "{}{step}={choice}", if index == 0 { ":" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("'{text}' is no schedule: random:SEED, pct:SEED, first, or first:STEP=CHOICE,...");
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "random" => rest.parse().map(Schedule::Random).map_err(|_| unknown()),
            "pct" => rest.parse().map(Schedule::Pct).map_err(|_| unknown()),
            "first" if text == "first" => Ok(Schedule::Choices(Vec::new())),
            "first" => {
                let mut choices = Vec::new();
                for other in rest.split(',') {
                    let (step, choice) = other.split_once('=').ok_or_else(unknown)?;
                    let step: usize = step.parse().map_err(|_| unknown())?;
                    if step < choices.len() || step > MOST_STEPS {
                        return Err(unknown());
                    }
                    choices.resize(step, 0);
                    choices.push(choice.parse().map_err(|_| unknown())?);
                }
                Ok(Schedule::Choices(choices))
            }
            _ => Err(unknown()),
        }
    }
}

/// A tensor as one of the engine's functions sees it: a private copy of one rank's memory.
pub struct View<'a> {
    /// The elements, packed.
    pub bytes: &'a mut [u8],
    /// A [`crate::ir::DType`].
    pub dtype: crate::ir::DType,
    /// Extents, outermost first.
    pub shape: Vec<i64>,
    /// Elements between neighbours in each dimension.
    pub strides: Vec<i64>,
}

/// A scalar as one of the engine's functions sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Of type `i32`, `i64` or `bool`.
    Int(i64),
    /// Of type `f32`.
    Float(f32),
}

/// What a call of one of the engine's functions is about.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Name of the function.
    pub name: &'a str,
    /// The rank; for a host task 0.
    pub rank: u32,
    /// The launch, from 1.
    pub launch: u32,
    /// The block, from 0.
    pub block: i64,
    /// Number of blocks.
    pub blocks: i64,
}

/// The engine's own functions, by name.
pub trait Functions {
    /// Calls one for one block; none if there is no function of that name, an error if it returned other than 0.
    fn call(&self, call: Call, tensors: &mut [View], scalars: &[Scalar]) -> Option<Result<(), i32>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_read_as_they_print() {
        let schedules = [
            Schedule::Random(7),
            Schedule::Pct(u64::MAX),
            Schedule::Choices(vec![]),
            Schedule::Choices(vec![3, 0, 12]),
        ];
        for schedule in schedules {
            assert_eq!(schedule.to_string().parse(), Ok(schedule));
        }
        for text in
            ["", "7", "random:", "random:-1", "first:", "first:1=2,1=3", "first:99999999999=1", "pct:x", "dfs:1"]
        {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }
}
