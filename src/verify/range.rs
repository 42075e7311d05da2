//! Which values an integer scalar can have: an interval for every scalar of a program, found in one pass.
//!
//! Intervals are sound: whatever ranks, arguments and iterations, a scalar never leaves its interval. An operation
//! that may wrap gives the full range of its type. So a check that an interval satisfies may be left out of the code.
//!
//! For messages the opposite question matters: is a value really *taken*, so that a mistake is certain? Numbers are.
//! Bounds of the index of a loop or block are, if its bounds are numbers, in some iteration; those of the rank on some rank; and so are
//! bounds of sums, differences and products of such independent values. See [`Ranges::takes_bounds`].

use cranelift_entity::packed_option::ReservedValue;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

use crate::ir::extent::{ExtentData, Extents};
use crate::ir::program::{Param, ScalarDef};
use crate::ir::{
    BinaryOp, Block, DType, Expr, Extent, Op, OpKind, Operand, Program, Scalar, ScalarType, Tensor, UnaryOp,
};

use super::domains::Domains;

/// The integers from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The smallest.
    pub min: i64,
    /// The largest.
    pub max: i64,
}

impl Interval {
    /// Every 64-bit integer.
    pub const ALL: Interval = Interval { min: i64::MIN, max: i64::MAX };
    /// False or true, as 0 or 1.
    pub const BOOL: Interval = Interval { min: 0, max: 1 };

    /// One value.
    pub fn point(value: i64) -> Self {
        Self { min: value, max: value }
    }

    /// The value, if there is only one.
    pub fn value(self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
    }

    /// Every value of a type; floats have no interval and give [`Interval::ALL`].
    pub fn of_type(ty: ScalarType) -> Self {
        match ty {
            ScalarType::I32 => Self { min: i32::MIN.into(), max: i32::MAX.into() },
            ScalarType::Bool => Self::BOOL,
            ScalarType::I64 | ScalarType::F32 => Self::ALL,
        }
    }

    /// Every value that an element can have once it is read.
    pub fn of_element(dtype: DType) -> Self {
        let of = |min: i64, max: i64| Self { min, max };
        match dtype {
            DType::I8 => of(i8::MIN.into(), i8::MAX.into()),
            DType::U8 => of(0, u8::MAX.into()),
            DType::I16 => of(i16::MIN.into(), i16::MAX.into()),
            DType::U16 => of(0, u16::MAX.into()),
            DType::U32 => of(0, u32::MAX.into()),
            other => other.scalar().map_or(Self::ALL, Self::of_type),
        }
    }

    /// All values of `other` are in it.
    pub fn contains(self, other: Interval) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    /// No value is in both.
    pub fn disjoint(self, other: Interval) -> bool {
        self.max < other.min || other.max < self.min
    }

    /// The smallest interval with all values of both.
    pub fn hull(self, other: Interval) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// From the smallest to the largest of some exact results; `full` if one of them wraps.
    fn of_results(results: impl IntoIterator<Item = i128>, full: Interval) -> Self {
        let ends = results.into_iter().fold(None, |ends: Option<(i128, i128)>, r| {
            Some(ends.map_or((r, r), |(min, max)| (min.min(r), max.max(r))))
        });
        match ends {
            Some((min, max)) if min >= full.min.into() && max <= full.max.into() => {
                Self { min: min as i64, max: max as i64 }
            }
            _ => full,
        }
    }

    fn binary(op: BinaryOp, a: Interval, b: Interval, full: Interval) -> Self {
        let corners = |f: fn(i128, i128) -> i128| {
            let (a, b) = ([a.min, a.max], [b.min, b.max]);
            Self::of_results(a.into_iter().flat_map(|x| b.map(|y| f(x.into(), y.into()))), full)
        };
        let decided = |holds: bool, fails: bool| match (holds, fails) {
            (true, _) => Self::point(1),
            (_, true) => Self::point(0),
            _ => Self::BOOL,
        };
        let same = a.value().is_some() && a == b;
        match op {
            BinaryOp::Add => corners(|x, y| x + y),
            BinaryOp::Sub => corners(|x, y| x - y),
            BinaryOp::Mul => corners(|x, y| x * y),
            BinaryOp::Div => {
                // Truncating division is monotone in the dividend, and in the divisor on either side of zero.
                let divisors = [b.min, b.max, -1, 1].into_iter().filter(|&d| d != 0 && b.contains(Self::point(d)));
                let results = divisors.flat_map(|d| [a.min, a.max].map(|x| i128::from(x) / i128::from(d)));
                Self::of_results(results, full)
            }
            BinaryOp::Rem => {
                let most = b.min.unsigned_abs().max(b.max.unsigned_abs()).saturating_sub(1).min(i64::MAX as u64) as i64;
                Self { min: a.min.clamp(-most, 0), max: a.max.clamp(0, most) }
            }
            BinaryOp::Min => corners(|x, y| x.min(y)),
            BinaryOp::Max => corners(|x, y| x.max(y)),
            BinaryOp::Eq => decided(same, a.disjoint(b)),
            BinaryOp::Ne => decided(a.disjoint(b), same),
            BinaryOp::Lt => decided(a.max < b.min, a.min >= b.max),
            BinaryOp::Le => decided(a.max <= b.min, a.min > b.max),
            BinaryOp::Gt => decided(a.min > b.max, a.max <= b.min),
            BinaryOp::Ge => decided(a.min >= b.max, a.max < b.min),
            BinaryOp::And => corners(|x, y| x & y),
            BinaryOp::Or => corners(|x, y| x | y),
        }
    }
}

/// Why both bounds of an interval are values that occur.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Taken {
    /// What varies: loop indices, and [`rank_source`].
    sources: SmallVec<[Scalar; 2]>,
    /// The least number of conditions around a source.
    conditions: u32,
}

/// Stands for this rank among the sources: whatever the host driver passes varies with it.
fn rank_source() -> Scalar {
    Scalar::reserved_value()
}

impl Taken {
    fn always() -> Self {
        Self { sources: SmallVec::new(), conditions: u32::MAX }
    }

    /// Both at once, if they vary independently.
    fn both(&self, other: &Taken) -> Option<Taken> {
        let independent = other.sources.iter().all(|s| !self.sources.contains(s));
        independent.then(|| Taken {
            sources: self.sources.iter().chain(&other.sources).copied().collect(),
            conditions: self.conditions.min(other.conditions),
        })
    }
}

/// The values of one scalar.
#[derive(Clone, Debug)]
struct Values {
    interval: Interval,
    taken: Option<Taken>,
}

impl Values {
    fn of(interval: Interval) -> Self {
        Self { interval, taken: None }
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::of(Interval::ALL)
    }
}

/// Whether a block runs when its op does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// Whenever the op runs, or never during a whole launch.
    Always,
    /// That depends.
    Maybe,
    /// Never.
    Never,
}

/// The intervals of all scalars of a program.
#[derive(Clone, Debug)]
pub struct Ranges {
    scalars: SecondaryMap<Scalar, Values>,
    /// How many ranks share a window view, or what is passed for a window parameter.
    shared_by: SecondaryMap<Tensor, Option<Interval>>,
    extents: Vec<Interval>,
    world: Interval,
}

impl Ranges {
    /// Analyses a program with its domains, for a world if it is known. Blocks may nest as deep as the verifier allows.
    pub fn new(program: &Program, domains: &Domains, world: Option<u32>) -> Self {
        let world = world.map_or(Interval { min: 1, max: i32::MAX.into() }, |w| Interval::point(w.into()));
        let extents = extents(&program.extents, world);
        let mut analysis = Analysis {
            program,
            domains,
            ranges: Ranges {
                scalars: SecondaryMap::with_capacity(program.scalars.len()),
                shared_by: SecondaryMap::new(),
                extents,
                world,
            },
            passed: SecondaryMap::new(),
        };
        analysis.constants();
        if let Some(host) = &program.host {
            analysis.block(host.body, 0);
        }
        analysis.params();
        for entry in program.entries.values() {
            analysis.block(entry.body, 0);
        }
        analysis.ranges
    }

    /// The interval of a scalar. Bools are 0 or 1; floats give [`Interval::ALL`].
    pub fn of(&self, scalar: Scalar) -> Interval {
        self.scalars[scalar].interval
    }

    /// The interval of an extent.
    pub fn of_extent(&self, extent: Extent) -> Interval {
        self.extents[extent.index()]
    }

    /// The size of the world.
    pub fn world(&self) -> Interval {
        self.world
    }

    /// The sizes of the domains of a window: a view, or a parameter of an entry.
    pub fn nranks(&self, window: Tensor) -> Interval {
        self.shared_by[window].unwrap_or(self.world)
    }

    /// Both bounds of the scalar's interval are taken, on some rank and in some iteration, by an op under that many
    /// conditions, if it runs at all.
    pub fn takes_bounds(&self, scalar: Scalar, conditions: u32) -> bool {
        self.scalars[scalar].taken.as_ref().is_some_and(|t| t.conditions >= conditions)
    }

    /// Bounds of two scalars are taken in every combination, under that many conditions.
    pub fn takes_bounds_together(&self, a: Scalar, b: Scalar, conditions: u32) -> bool {
        let (Some(a), Some(b)) = (&self.scalars[a].taken, &self.scalars[b].taken) else { return false };
        a.both(b).is_some_and(|t| t.conditions >= conditions)
    }

    /// Whether the op's block number `index` is entered.
    pub fn entered(&self, program: &Program, op: Op, index: usize) -> Entered {
        match &program.ops[op].kind {
            OpKind::If { cond, .. } => match self.of(*cond).value() {
                Some(value) if (value != 0) == (index == 0) => Entered::Always,
                Some(_) => Entered::Never,
                None => Entered::Maybe,
            },
            OpKind::For { first, end, .. } | OpKind::Ranks { first, end, .. } => match () {
                _ if self.of(*first).min >= self.of(*end).max => Entered::Never,
                _ if self.fixed(program, *first) && self.fixed(program, *end) => Entered::Always,
                _ => Entered::Maybe,
            },
            OpKind::Task { grid: Some(grid), .. } if self.of(grid.blocks).max < 1 => Entered::Never,
            OpKind::Task { options, .. } if options.predicate.is_some() => Entered::Maybe,
            OpKind::Task { grid: Some(grid), .. } if !self.fixed(program, grid.blocks) => Entered::Maybe,
            _ => Entered::Always,
        }
    }

    /// The same during a whole launch.
    fn fixed(&self, program: &Program, scalar: Scalar) -> bool {
        program.extent_of(scalar).is_some() || self.of(scalar).value().is_some()
    }

    /// How often the body of a loop runs at least.
    pub fn least_trips(&self, first: Scalar, end: Scalar, step: Scalar) -> i64 {
        let (first, end, step) = (self.of(first).max, self.of(end).min, self.of(step).max);
        let span = i128::from(end) - i128::from(first);
        if span <= 0 || step < 1 { 0 } else { ((span - 1) / i128::from(step) + 1).min(i64::MAX.into()) as i64 }
    }
}

fn extents(extents: &Extents, world: Interval) -> Vec<Interval> {
    // Operands come before what is made of them.
    let mut intervals: Vec<Interval> = Vec::with_capacity(extents.len());
    for index in 0..extents.len() {
        let interval = match extents.get(Extent::new(index)) {
            ExtentData::Int(value) => Interval::point(value),
            ExtentData::World => world,
            ExtentData::Dim(dim) => match extents.dims[dim].value {
                Some(value) => intervals[value.index()],
                None => Interval { min: 0, max: i64::MAX },
            },
            ExtentData::Binary(op, a, b) => {
                Interval::binary(op, intervals[a.index()], intervals[b.index()], Interval::ALL)
            }
        };
        intervals.push(interval);
    }
    intervals
}

struct Analysis<'a> {
    program: &'a Program,
    domains: &'a Domains,
    ranges: Ranges,
    /// What the dispatches pass for each scalar parameter of an entry.
    passed: SecondaryMap<Scalar, Option<Values>>,
}

impl Analysis<'_> {
    fn set(&mut self, scalar: Scalar, interval: Interval, taken: Option<Taken>) {
        let taken = if interval.value().is_some() { Some(Taken::always()) } else { taken };
        self.ranges.scalars[scalar] = Values { interval, taken };
    }

    /// Scalars that no op defines.
    fn constants(&mut self) {
        for (scalar, data) in &self.program.scalars {
            let interval = match data.def {
                ScalarDef::Extent(extent) => self.ranges.of_extent(extent),
                ScalarDef::Bool(value) => Interval::point(value.into()),
                _ => Interval::of_type(data.ty),
            };
            self.set(scalar, interval, None);
        }
    }

    /// Parameters of entries: the hull of what is passed.
    fn params(&mut self) {
        for entry in self.program.entries.values() {
            for param in &entry.params {
                if let &Param::Scalar(scalar) = param
                    && let Some(values) = self.passed[scalar].take()
                {
                    self.set(scalar, values.interval, values.taken);
                }
            }
        }
    }

    fn block(&mut self, block: Block, conditions: u32) {
        for &op in &self.program.blocks[block] {
            self.op(op, conditions);
            for (index, inner) in self.program.ops[op].kind.blocks().into_iter().enumerate() {
                let conditional = self.ranges.entered(self.program, op, index) != Entered::Always;
                self.block(inner, conditions + u32::from(conditional));
            }
        }
    }

    fn op(&mut self, op: Op, conditions: u32) {
        match &self.program.ops[op].kind {
            OpKind::Scalar { dst, expr } => {
                let (interval, taken) = self.expr(*dst, expr);
                self.set(*dst, interval, taken);
            }
            OpKind::Read { dst, src, .. } => {
                self.set(*dst, Interval::of_element(self.program.tensors[*src].dtype), None);
            }
            OpKind::For { index, first, end, step, .. } => {
                let (from, to) = (self.ranges.of(*first), self.ranges.of(*end));
                self.index(*index, *index, (from, to), self.ranges.of(*step), conditions);
            }
            OpKind::Ranks { index, first, end, .. } => {
                let (from, to) = (self.ranges.of(*first), self.ranges.of(*end));
                self.index(*index, rank_source(), (from, to), Interval::point(1), conditions);
            }
            OpKind::Task { grid: Some(grid), .. } => {
                let (from, to) = (Interval::point(0), self.ranges.of(grid.blocks));
                self.index(grid.index, grid.index, (from, to), Interval::point(1), conditions);
            }
            OpKind::Window { dst, buffer } => self.ranges.shared_by[*dst] = Some(self.domains.size(*buffer)),
            OpKind::Dispatch { entry, args, .. } => {
                for (param, arg) in self.program.entries[*entry].params.iter().zip(args) {
                    match (param, arg) {
                        (&Param::Scalar(param), &Operand::Scalar(arg)) => self.pass(param, arg, conditions),
                        (&Param::Tensor(param), &Operand::Tensor(arg)) => self.share(param, arg),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn index(
        &mut self,
        index: Scalar,
        source: Scalar,
        (from, to): (Interval, Interval),
        by: Interval,
        conditions: u32,
    ) {
        let ty = self.program.scalars[index].ty;
        let last = to.max.saturating_sub(1);
        // Past a step that does not fit, the index may wrap.
        let wraps = by.value() != Some(1) && last.checked_add(by.max).is_none();
        let mut interval = Interval { min: from.min, max: last.max(from.min) };
        if wraps || !Interval::of_type(ty).contains(interval) {
            return self.set(index, Interval::of_type(ty), None);
        }
        let mut taken = None;
        if let (Some(first), Some(_), Some(step @ 1..)) = (from.value(), to.value(), by.value())
            && first <= last
        {
            interval.max = last - (i128::from(last) - i128::from(first)).rem_euclid(step.into()) as i64;
            taken = Some(Taken { sources: SmallVec::from_slice(&[source]), conditions });
        }
        self.set(index, interval, taken);
    }

    fn pass(&mut self, param: Scalar, arg: Scalar, conditions: u32) {
        let full = Interval::of_type(self.program.scalars[param].ty);
        let arg = &self.ranges.scalars[arg];
        let fits = full.contains(arg.interval);
        let interval = if fits { arg.interval } else { full };
        let whole = arg.taken.as_ref().is_some_and(|t| t.conditions >= conditions && fits);
        let before = self.passed[param].take();
        let taken = whole && before.as_ref().is_none_or(|v| v.taken.is_some());
        // All parameters vary with the rank, together.
        let taken = taken.then(|| Taken { sources: SmallVec::from_slice(&[rank_source()]), conditions: 0 });
        let interval = before.map_or(interval, |before| before.interval.hull(interval));
        self.passed[param] = Some(Values { interval, taken });
    }

    fn share(&mut self, param: Tensor, arg: Tensor) {
        if let Some(size) = self.ranges.shared_by[arg] {
            let sizes = &mut self.ranges.shared_by[param];
            *sizes = Some(sizes.map_or(size, |sizes| sizes.hull(size)));
        }
    }

    fn expr(&self, dst: Scalar, expr: &Expr) -> (Interval, Option<Taken>) {
        let full = Interval::of_type(self.program.scalars[dst].ty);
        let is_float = |s: Scalar| self.program.scalars[s].ty == ScalarType::F32;
        let values = |s: Scalar| &self.ranges.scalars[s];
        let of = |s: Scalar| self.ranges.of(s);
        match *expr {
            _ if is_float(dst) => (full, None),
            Expr::Copy(a) => (of(a), values(a).taken.clone()),
            Expr::Cast(a) if is_float(a) || !full.contains(of(a)) => (full, None),
            Expr::Cast(a) => (of(a), values(a).taken.clone()),
            Expr::Unary(UnaryOp::Neg, a) => {
                let interval = Interval::binary(BinaryOp::Sub, Interval::point(0), of(a), full);
                (interval, if interval == full { None } else { values(a).taken.clone() })
            }
            Expr::Unary(UnaryOp::Not, a) => (Interval::binary(BinaryOp::Sub, Interval::point(1), of(a), full), None),
            Expr::Binary(_, a, b) if is_float(a) || is_float(b) => (full, None),
            Expr::Binary(op, a, b) => {
                let ty = self.program.common_type(a, b);
                let (x, y) = (self.used_as(a, ty), self.used_as(b, ty));
                let interval = Interval::binary(op, x, y, full);
                let exact = interval != full && (x, y) == (of(a), of(b));
                (interval, exact.then(|| self.taken(op, a, b)).flatten())
            }
            Expr::Select { cond, then, other } => {
                let ty = self.program.scalars[dst].ty;
                let chosen = |s: Scalar| {
                    let interval = self.used_as(s, ty);
                    (interval, if interval == of(s) { values(s).taken.clone() } else { None })
                };
                match of(cond).value() {
                    Some(0) => chosen(other),
                    Some(_) => chosen(then),
                    None => (chosen(then).0.hull(chosen(other).0), None),
                }
            }
            Expr::Rank(window) => {
                let nranks = self.ranges.nranks(self.program.root(window));
                let taken = Taken { sources: SmallVec::from_slice(&[rank_source()]), conditions: 0 };
                (Interval { min: 0, max: nranks.max - 1 }, nranks.value().map(|_| taken))
            }
            Expr::NRanks(window) => (self.ranges.nranks(self.program.root(window)), None),
        }
    }

    /// The values of a scalar where type `ty` is needed: a literal that does not fit wraps.
    fn used_as(&self, scalar: Scalar, ty: ScalarType) -> Interval {
        let (interval, full) = (self.ranges.of(scalar), Interval::of_type(ty));
        if full.contains(interval) { interval } else { full }
    }

    /// How the bounds of a result that does not wrap are taken.
    fn taken(&self, op: BinaryOp, a: Scalar, b: Scalar) -> Option<Taken> {
        let at_corners = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max => true,
            BinaryOp::Div => self.ranges.of(b).value().is_some_and(|d| d != 0),
            _ => false,
        };
        let (a, b) = (&self.ranges.scalars[a], &self.ranges.scalars[b]);
        at_corners.then_some(())?;
        a.taken.as_ref()?.both(b.taken.as_ref()?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn value(ty: ScalarType) -> impl Strategy<Value = i64> {
        let full = Interval::of_type(ty);
        prop_oneof![-9i64..9, full.min..full.min + 3, full.max - 3..=full.max, full.min..=full.max]
    }

    /// What an op gives when it runs; none where it ends the launch.
    fn run(op: BinaryOp, x: i64, y: i64, ty: ScalarType) -> Option<i64> {
        let narrow = |v: i64| if ty == ScalarType::I32 { i64::from(v as i32) } else { v };
        Some(match op {
            BinaryOp::Add => narrow(x.wrapping_add(y)),
            BinaryOp::Sub => narrow(x.wrapping_sub(y)),
            BinaryOp::Mul => narrow(x.wrapping_mul(y)),
            BinaryOp::Div | BinaryOp::Rem if y == 0 => return None,
            BinaryOp::Div => narrow(x.wrapping_div(y)),
            BinaryOp::Rem => x.wrapping_rem(y),
            BinaryOp::Min => x.min(y),
            BinaryOp::Max => x.max(y),
            BinaryOp::Eq => (x == y).into(),
            BinaryOp::Ne => (x != y).into(),
            BinaryOp::Lt => (x < y).into(),
            BinaryOp::Le => (x <= y).into(),
            BinaryOp::Gt => (x > y).into(),
            BinaryOp::Ge => (x >= y).into(),
            BinaryOp::And => x & y,
            BinaryOp::Or => x | y,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2000,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(5),
            ..ProptestConfig::default()
        })]

        #[test]
        fn results_never_leave_their_interval(
            (ty, ends) in prop_oneof![Just(ScalarType::I32), Just(ScalarType::I64)]
                .prop_flat_map(|ty| (Just(ty), [value(ty), value(ty), value(ty), value(ty), value(ty), value(ty)])),
        ) {
            let sorted = |mut v: [i64; 3]| {
                v.sort_unstable();
                v
            };
            let [a, x, b] = sorted([ends[0], ends[1], ends[2]]);
            let [c, y, d] = sorted([ends[3], ends[4], ends[5]]);
            let full = Interval::of_type(ty);
            for &op in BinaryOp::ALL.iter().filter(|op| !op.is_logic()) {
                let interval = Interval::binary(op, Interval { min: a, max: b }, Interval { min: c, max: d }, full);
                for (x, y) in [(x, y), (a, c), (a, d), (b, c), (b, d), (x, c), (x, d)] {
                    if let Some(result) = run(op, x, y, ty) {
                        let inside = interval.contains(Interval::point(result));
                        prop_assert!(inside, "{x} {op} {y} = {result} is not in {interval:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn quotients_by_an_interval_around_zero_reach_both_ends() {
        let a = Interval { min: -7, max: 5 };
        assert_eq!(
            Interval::binary(BinaryOp::Div, a, Interval { min: -2, max: 3 }, Interval::ALL),
            Interval { min: -7, max: 7 }
        );
        assert_eq!(Interval::binary(BinaryOp::Rem, a, Interval::point(4), Interval::ALL), Interval { min: -3, max: 3 });
    }
}
