//! Comm domains: which ranks share each window buffer, and how they number each other.
//!
//! The domain of a buffer is what its allocation names, or else the devices of all dispatches that receive one of its
//! views. Ranks are numbered densely: in the order of the declaration, or else by ascending device.
//!
//! Devices are found by following the host driver for all turns of a rank loop at once: a value that depends on ranks
//! and the size of the world only is known for every turn, and so are the conditions that are made of such values.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;

use crate::ir::extent::Known;
use crate::ir::program::{DomainRanks, ScalarDef, TensorDef};
use crate::ir::{BinaryOp, Block, Buffer, Domain, Expr, Extent, Op, OpKind, Operand, Program, Scalar, Tensor, UnaryOp};

use super::range::Interval;

/// Most turns of a rank loop that are followed while the world is not known.
const MOST_TURNS: i64 = 1 << 16;

/// A set of ranks that share windows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainId(u32);
entity_impl!(DomainId, "domain");

/// The domains of a program.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    /// The ranks of each domain; domain rank `i` is the rank at `i`. In the order in which buffers are allocated.
    pub ranks: PrimaryMap<DomainId, Vec<u32>>,
    of: SecondaryMap<Buffer, PackedOption<DomainId>>,
    devices: SecondaryMap<Op, Option<Devices>>,
    world: Option<u32>,
}

/// The ranks that run a dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// In the order of the loop; none if they are not known, or not known yet.
    pub ranks: Option<Vec<u32>>,
    /// The innermost loop or if around the dispatch, and its block, that each launch enters or not: then all of the
    /// ranks run the dispatch, or none does.
    pub together: Option<(Op, usize)>,
    /// A loop or if around the dispatch which each launch may enter on some of the ranks, and not on others.
    pub apart: Option<Op>,
}

impl Domains {
    /// Finds the domains of a program, for a world if it is known.
    pub fn new(program: &Program, world: Option<u32>) -> Self {
        let known = Known { world: world.map(i64::from), dims: &[] };
        let mut domains = Self { devices: devices(program, known), world, ..Self::default() };
        let mut reached: SecondaryMap<Buffer, Option<Vec<u32>>> = SecondaryMap::new();
        let mut unknown: SecondaryMap<Buffer, bool> = SecondaryMap::new();
        for (op, buffer) in program.ops.keys().flat_map(|op| passed(program, op).map(move |buffer| (op, buffer))) {
            match &domains.devices[op] {
                Some(Devices { ranks: Some(ranks), .. }) => reached[buffer].get_or_insert_default().extend(ranks),
                Some(_) => unknown[buffer] = true,
                None => {}
            }
        }
        for buffers in program.ops.keys().map(|op| exchanged(program, op)) {
            // What no dispatch receives is with the rest, or with everybody.
            let known_by = |buffer: &Buffer| match program.buffers[*buffer].domain {
                Some(domain) => declared(program, domain, known),
                None => reached[*buffer].clone(),
            };
            let ranks = buffers.iter().find_map(known_by).or_else(|| world.map(|world| (0..world).collect()));
            for buffer in buffers {
                if reached[buffer].is_none() && !unknown[buffer] {
                    reached[buffer].clone_from(&ranks);
                }
            }
        }
        for (buffer, data) in &program.buffers {
            let ranks = match data.domain {
                Some(domain) => declared(program, domain, known),
                None => reached[buffer].take().filter(|_| !unknown[buffer]).map(|mut ranks| {
                    ranks.sort_unstable();
                    ranks.dedup();
                    ranks
                }),
            };
            let Some(ranks) = ranks.filter(|ranks| !ranks.is_empty()) else { continue };
            let same = domains.ranks.iter().find(|(_, other)| **other == ranks).map(|(id, _)| id);
            domains.of[buffer] = same.unwrap_or_else(|| domains.ranks.push(ranks)).into();
        }
        domains
    }

    /// The domain of a buffer; none if nobody uses it, or the world has to be known first.
    pub fn of(&self, buffer: Buffer) -> Option<DomainId> {
        self.of[buffer].expand()
    }

    /// How many ranks share a buffer.
    pub fn size(&self, buffer: Buffer) -> Interval {
        match self.of(buffer) {
            Some(domain) => Interval::point(self.ranks[domain].len() as i64),
            None => Interval { min: 1, max: self.world.map_or(i32::MAX.into(), i64::from) },
        }
    }

    /// The ranks that run a dispatch.
    pub fn devices(&self, dispatch: Op) -> Option<&Devices> {
        self.devices[dispatch].as_ref()
    }
}

/// The buffers whose views a dispatch passes.
pub fn passed(program: &Program, op: Op) -> impl Iterator<Item = Buffer> {
    let args: &[Operand] = match &program.ops[op].kind {
        OpKind::Dispatch { args, .. } => args,
        _ => &[],
    };
    args.iter().filter_map(|arg| match *arg {
        Operand::Tensor(tensor) => match program.tensors[tensor].def {
            TensorDef::View(buffer) => Some(buffer),
            _ => None,
        },
        Operand::Scalar(_) => None,
    })
}

/// The buffers whose views a collective of the host driver names; the one whose ranks take part comes first.
pub fn exchanged(program: &Program, op: Op) -> SmallVec<[Buffer; 2]> {
    let OpKind::Collective(collective) = &program.ops[op].kind else { return SmallVec::new() };
    let buffer = |tensor: Tensor| match program.tensors[tensor].def {
        TensorDef::View(buffer) => Some(buffer),
        _ => None,
    };
    collective.tensors().filter_map(buffer).collect()
}

/// The ranks that a declaration names, in its order; none while one of them is not known, and if it breaks a rule.
pub fn declared(program: &Program, domain: Domain, known: Known) -> Option<Vec<u32>> {
    let value = |extent: &Extent| program.extents.eval(*extent, known);
    let values: Vec<i64> = match &program.domains[domain].ranks {
        DomainRanks::Range(first, end) => {
            let (first, end) = (value(first)?, value(end)?);
            (first >= 0 && end <= known.world.unwrap_or(MOST_TURNS)).then(|| (first..end).collect())?
        }
        DomainRanks::List(ranks) => ranks.iter().map(value).collect::<Option<_>>()?,
    };
    let mut seen = HashSet::new();
    let exists = |rank: &u32| known.world.is_none_or(|world| i64::from(*rank) < world);
    let rank = |value: i64| u32::try_from(value).ok().filter(exists).filter(|&rank| seen.insert(rank));
    values.into_iter().map(rank).collect()
}

/// `rank 2`, `ranks 0 and 2`, `ranks 0 to 3`.
pub fn list(ranks: &[u32]) -> String {
    const MOST: usize = 16;
    let consecutive = ranks.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    let names: Vec<String> = ranks.iter().take(MOST).map(u32::to_string).collect();
    match names.as_slice() {
        [] => "no rank".into(),
        [one] => format!("rank {one}"),
        [first, .., _] if consecutive && ranks.len() > 2 => format!("ranks {first} to {}", ranks[ranks.len() - 1]),
        some if ranks.len() > MOST => format!("ranks {} and {} more", some.join(", "), ranks.len() - MOST),
        [some @ .., last] => format!("ranks {} and {last}", some.join(", ")),
    }
}

/// What is known of a value of the host driver.
#[derive(Clone, Debug)]
enum Value {
    /// The number, or for a bool 0 or 1.
    Number(i64),
    /// One for every turn of a rank loop.
    Turns(Op, Rc<[i64]>),
    /// Each launch has one, the same for all ranks.
    Launch,
    /// It will be known with the size of the world.
    World,
    /// It may be different from rank to rank.
    Unknown,
}

impl Value {
    fn map(&self, f: impl Fn(i64) -> Option<i64>) -> Value {
        match self {
            Value::Number(x) => f(*x).map_or(Value::Unknown, Value::Number),
            Value::Turns(rank_loop, values) => match values.iter().map(|&x| f(x)).collect() {
                Some(values) => Value::Turns(*rank_loop, values),
                None => Value::Unknown,
            },
            other => other.clone(),
        }
    }

    fn zip(&self, other: &Value, f: impl Fn(i64, i64) -> Option<i64>) -> Value {
        match (self, other) {
            (Value::World, _) | (_, Value::World) => Value::World,
            (a, &Value::Number(y)) => a.map(|x| f(x, y)),
            (&Value::Number(x), b) => b.map(|y| f(x, y)),
            (Value::Turns(a, xs), Value::Turns(b, ys)) if a == b => {
                match xs.iter().zip(ys.iter()).map(|(&x, &y)| f(x, y)).collect() {
                    Some(values) => Value::Turns(*a, values),
                    None => Value::Unknown,
                }
            }
            (Value::Launch, Value::Launch) => Value::Launch,
            _ => Value::Unknown,
        }
    }
}

/// The devices of every dispatch.
fn devices(program: &Program, known: Known<'static>) -> SecondaryMap<Op, Option<Devices>> {
    let mut walk =
        Walk { program, known, values: SecondaryMap::new(), guards: Vec::new(), devices: SecondaryMap::new() };
    if let Some(host) = &program.host {
        walk.block(host.body);
    }
    walk.devices
}

/// A block that the walk is in, and what is known of whether it is entered.
struct Guard {
    op: Op,
    block: usize,
    entered: Value,
}

struct Walk<'p> {
    program: &'p Program,
    known: Known<'static>,
    /// What ops have computed.
    values: SecondaryMap<Scalar, Option<Value>>,
    guards: Vec<Guard>,
    devices: SecondaryMap<Op, Option<Devices>>,
}

impl Walk<'_> {
    fn block(&mut self, block: Block) {
        let program = self.program;
        for &op in &program.blocks[block] {
            let kind = &program.ops[op].kind;
            match *kind {
                OpKind::Scalar { dst, ref expr } => {
                    let ty = program.scalars[dst].ty;
                    let fits = |x: &i64| Interval::of_type(ty).contains(Interval::point(*x));
                    self.values[dst] = Some(self.expr(expr).map(|x| Some(x).filter(fits)));
                }
                OpKind::Ranks { index, first, end, .. } => self.values[index] = Some(self.turns(op, first, end)),
                OpKind::For { index, first, end, .. } => {
                    let same_for_all = self.value(first).zip(&self.value(end), |_, _| Some(0));
                    self.values[index] = Some(match same_for_all {
                        Value::Number(_) => Value::Launch,
                        Value::Turns(..) => Value::Unknown,
                        other => other,
                    });
                }
                OpKind::Dispatch { device, .. } => self.devices[op] = Some(self.dispatch(device)),
                _ => {}
            }
            for (index, inner) in kind.blocks().into_iter().enumerate() {
                self.guards.push(Guard { op, block: index, entered: self.entered(kind, index) });
                self.block(inner);
                self.guards.pop();
            }
        }
    }

    fn value(&self, scalar: Scalar) -> Value {
        match self.program.scalars[scalar].def {
            ScalarDef::Extent(extent) => match self.program.extents.eval(extent, self.known) {
                Some(value) => Value::Number(value),
                None if self.program.extents.is_dynamic(extent) => Value::Launch,
                None if self.known.world.is_none() => Value::World,
                None => Value::Unknown,
            },
            ScalarDef::Bool(value) => Value::Number(value.into()),
            ScalarDef::Float(_) | ScalarDef::HostParam(_) => Value::Launch,
            ScalarDef::Index(_) | ScalarDef::Result(_) => self.values[scalar].clone().unwrap_or(Value::Unknown),
            ScalarDef::Param(..) => Value::Unknown,
        }
    }

    /// The index of a loop over ranks.
    fn turns(&self, op: Op, first: Scalar, end: Scalar) -> Value {
        match (self.value(first), self.value(end)) {
            (Value::Number(first), Value::Number(end)) => {
                let most = self.known.world.unwrap_or(MOST_TURNS);
                let few = end.checked_sub(first).is_some_and(|turns| turns <= most);
                if few { Value::Turns(op, (first..end).collect()) } else { Value::Unknown }
            }
            (Value::World, _) | (_, Value::World) => Value::World,
            _ => Value::Unknown,
        }
    }

    fn expr(&self, expr: &Expr) -> Value {
        match *expr {
            Expr::Copy(a) | Expr::Cast(a) => self.value(a).map(Some),
            Expr::Unary(UnaryOp::Neg, a) => self.value(a).map(i64::checked_neg),
            Expr::Unary(UnaryOp::Not, a) => self.value(a).map(|x| Some((x == 0).into())),
            Expr::Binary(op, a, b) => self.value(a).zip(&self.value(b), |x, y| binary(op, x, y)),
            Expr::Select { cond, then, other } => {
                // The condition takes the place of the value that it does not choose.
                let then = self.value(cond).zip(&self.value(then), |c, x| Some(if c != 0 { x } else { 0 }));
                let other = self.value(cond).zip(&self.value(other), |c, x| Some(if c != 0 { 0 } else { x }));
                then.zip(&other, i64::checked_add)
            }
            Expr::Rank(_) | Expr::NRanks(_) => Value::Unknown,
        }
    }

    /// Whether a block of an op is entered, as a bool.
    fn entered(&self, kind: &OpKind, block: usize) -> Value {
        match *kind {
            OpKind::If { cond, .. } => self.value(cond).map(|cond| Some(((cond != 0) == (block == 0)).into())),
            OpKind::For { first, end, .. } | OpKind::Ranks { first, end, .. } => {
                self.value(first).zip(&self.value(end), |first, end| Some((first < end).into()))
            }
            _ => Value::Number(1),
        }
    }

    fn dispatch(&self, device: Scalar) -> Devices {
        let program = self.program;
        let original = program.original(device);
        let mut devices = Devices::default();
        let own_loop = match program.scalars[original].def {
            ScalarDef::Index(op) if matches!(program.ops[op].kind, OpKind::Ranks { .. }) => Some(op),
            ScalarDef::Extent(_) => None,
            _ => return devices,
        };
        let ranks: Rc<[i64]> = match self.value(original) {
            Value::Number(rank) => [rank].into(),
            Value::Turns(_, ranks) => ranks,
            Value::World => return devices,
            Value::Launch | Value::Unknown => return Devices { apart: own_loop, ..devices },
        };
        let mut ever = true;
        // For each loop, the turns in which the conditions on its index hold.
        let mut turns: HashMap<Option<Op>, Vec<bool>> = HashMap::from([(own_loop, vec![true; ranks.len()])]);
        for guard in self.guards.iter().filter(|guard| Some(guard.op) != own_loop) {
            match &guard.entered {
                Value::Number(entered) => ever &= *entered != 0,
                Value::Turns(rank_loop, entered) => {
                    let turns = turns.entry(Some(*rank_loop)).or_insert_with(|| vec![true; entered.len()]);
                    turns.iter_mut().zip(entered.iter()).for_each(|(turn, &entered)| *turn &= entered != 0);
                }
                Value::Launch => devices.together = Some((guard.op, guard.block)),
                Value::World => return Devices::default(),
                Value::Unknown => devices.apart = Some(guard.op),
            }
        }
        ever &= turns.values().all(|turns| turns.contains(&true));
        let own = ranks.iter().zip(&turns[&own_loop]).filter(|(_, own)| ever && **own);
        devices.ranks = own.map(|(&rank, _)| u32::try_from(rank).ok()).collect();
        devices
    }
}

/// `x op y` without wrapping; none where it has no value.
fn binary(op: BinaryOp, x: i64, y: i64) -> Option<i64> {
    match op {
        BinaryOp::Add => x.checked_add(y),
        BinaryOp::Sub => x.checked_sub(y),
        BinaryOp::Mul => x.checked_mul(y),
        BinaryOp::Div => x.checked_div(y),
        BinaryOp::Rem => x.checked_rem(y),
        BinaryOp::Min => Some(x.min(y)),
        BinaryOp::Max => Some(x.max(y)),
        BinaryOp::Eq => Some((x == y).into()),
        BinaryOp::Ne => Some((x != y).into()),
        BinaryOp::Lt => Some((x < y).into()),
        BinaryOp::Le => Some((x <= y).into()),
        BinaryOp::Gt => Some((x > y).into()),
        BinaryOp::Ge => Some((x >= y).into()),
        BinaryOp::And => Some(x & y),
        BinaryOp::Or => Some(x | y),
    }
}
