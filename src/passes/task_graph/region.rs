//! Which part of a tensor a task touches, in terms of what is known when the task is submitted.
//!
//! An offset is a linear form over values from outside the task, or lies between two: a loop inside the task, or the
//! index of a block, gives the hull of all its turns. What is neither covers the whole dimension.

use std::collections::HashSet;

use smallvec::{SmallVec, smallvec};

use crate::ir::effects::Span;
use crate::ir::extent::{ExtentData, Known};
use crate::ir::op::Dims;
use crate::ir::program::{ScalarDef, TensorDef};
use crate::ir::{BinaryOp, Expr, Extent, OpKind, Program, Scalar, Tensor, UnaryOp};
use crate::verify::range::{Interval, Ranges};

/// Longest linear form; longer ones are of no use to anybody.
const MOST_TERMS: usize = 6;

/// Something that a form is linear in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atom {
    /// A size.
    Extent(Extent),
    /// An integer value.
    Scalar(Scalar),
}

/// `constant + Σ factor * atom`, with the atoms in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    /// The constant.
    pub constant: i64,
    /// Atoms and their factors, none of them 0.
    pub terms: SmallVec<[(Atom, i64); 2]>,
}

/// The indices from `first` to `last`, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hull {
    /// The first.
    pub first: Linear,
    /// The last.
    pub last: Linear,
}

/// A hull a dimension; none for the whole dimension.
pub type Hulls = SmallVec<[Option<Hull>; 2]>;

impl Linear {
    /// A number.
    pub fn number(constant: i64) -> Self {
        Self { constant, terms: SmallVec::new() }
    }

    fn atom(atom: Atom) -> Self {
        Self { constant: 0, terms: smallvec![(atom, 1)] }
    }

    /// `self + factor * other`; none if a number grows too large, or the form too long.
    fn plus(&self, factor: i64, other: &Linear) -> Option<Self> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(factor.checked_mul(other.constant)?)?;
        for &(atom, count) in &other.terms {
            let count = count.checked_mul(factor)?;
            match sum.terms.binary_search_by_key(&atom, |t| t.0) {
                Ok(at) => sum.terms[at].1 = sum.terms[at].1.checked_add(count)?,
                Err(at) => sum.terms.insert(at, (atom, count)),
            }
        }
        sum.terms.retain(|t| t.1 != 0);
        (sum.terms.len() <= MOST_TERMS).then_some(sum)
    }

    fn times(&self, factor: i64) -> Option<Self> {
        Self::default().plus(factor, self)
    }

    /// The values that the form can have.
    pub fn range(&self, ranges: &Ranges) -> Interval {
        let mut bounds = (i128::from(self.constant), i128::from(self.constant));
        for &(atom, factor) in &self.terms {
            let of = match atom {
                Atom::Extent(extent) => ranges.of_extent(extent),
                Atom::Scalar(scalar) => ranges.of(scalar),
            };
            let ends = [of.min, of.max].map(|end| i128::from(end) * i128::from(factor));
            bounds = (bounds.0 + ends[0].min(ends[1]), bounds.1 + ends[0].max(ends[1]));
        }
        let clamp = |v: i128| v.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Interval { min: clamp(bounds.0), max: clamp(bounds.1) }
    }
}

/// Answers for one task.
pub(super) struct Regions<'p> {
    pub program: &'p Program,
    pub known: Known<'static>,
    /// Values that ops of the task define.
    pub inside: HashSet<Scalar>,
}

impl Regions<'_> {
    /// The part of a tensor's root that the region at `at` covers.
    pub fn of(&self, tensor: Tensor, at: &Dims, span: &Span) -> Hulls {
        let program = self.program;
        let shape = &program.tensors[tensor].shape;
        let mut hulls: Hulls = match span {
            Span::Whole => self.whole(shape),
            Span::Element => at.iter().map(|&s| self.reach(self.bounds(s), Some(Linear::number(1)))).collect(),
            Span::Shape(extents) => {
                at.iter().zip(extents).map(|(&s, &e)| self.reach(self.bounds(s), self.extent(e))).collect()
            }
            Span::Dims(extents) => at
                .iter()
                .zip(extents)
                .map(|(&s, &e)| self.reach(self.bounds(s), self.bounds(e).map(|bounds| bounds.1)))
                .collect(),
        };
        let mut tensor = tensor;
        loop {
            match &program.tensors[tensor].def {
                TensorDef::Slice(src, offsets) => {
                    for (hull, &offset) in hulls.iter_mut().zip(offsets) {
                        *hull = hull.take().and_then(|hull| self.shifted(hull, offset));
                    }
                    tensor = *src;
                }
                TensorDef::Flat(src) => {
                    let shape = &program.tensors[*src].shape;
                    if shape.len() != 1 {
                        hulls = self.whole(shape);
                    }
                    tensor = *src;
                }
                _ => return hulls,
            }
        }
    }

    fn whole(&self, shape: &[Extent]) -> Hulls {
        let begin = || Some((Linear::default(), Linear::default()));
        shape.iter().map(|&extent| self.reach(begin(), self.extent(extent))).collect()
    }

    fn reach(&self, offset: Option<(Linear, Linear)>, extent: Option<Linear>) -> Option<Hull> {
        let (first, last) = offset?;
        Some(Hull { first, last: last.plus(1, &extent?)?.plus(-1, &Linear::number(1))? })
    }

    fn shifted(&self, hull: Hull, offset: Scalar) -> Option<Hull> {
        let (first, last) = self.bounds(offset)?;
        Some(Hull { first: hull.first.plus(1, &first)?, last: hull.last.plus(1, &last)? })
    }

    fn extent(&self, extent: Extent) -> Option<Linear> {
        let extents = &self.program.extents;
        if let Some(value) = extents.eval(extent, self.known) {
            return Some(Linear::number(value));
        }
        match extents.get(extent) {
            ExtentData::Binary(BinaryOp::Add, a, b) => self.extent(a)?.plus(1, &self.extent(b)?),
            ExtentData::Binary(BinaryOp::Sub, a, b) => self.extent(a)?.plus(-1, &self.extent(b)?),
            _ => Some(Linear::atom(Atom::Extent(extent))),
        }
    }

    /// The least and the largest value of an integer scalar while the task runs.
    fn bounds(&self, scalar: Scalar) -> Option<(Linear, Linear)> {
        let both = |form: Linear| (form.clone(), form);
        let data = &self.program.scalars[scalar];
        if let ScalarDef::Extent(extent) = data.def {
            return self.extent(extent).map(both);
        }
        if !data.ty.is_int() {
            return None;
        }
        let op = match data.def {
            ScalarDef::Result(op) | ScalarDef::Index(op) => &self.program.ops[op].kind,
            _ => return Some(both(Linear::atom(Atom::Scalar(scalar)))),
        };
        match op {
            // A value that no op of the task computes has one value all the while; what it is a sum of may be compared.
            OpKind::Scalar { expr: Expr::Copy(a) | Expr::Cast(a), .. } if self.program.scalars[*a].ty.is_int() => {
                self.bounds(*a)
            }
            OpKind::Scalar { expr: Expr::Unary(UnaryOp::Neg, a), .. } => {
                let (least, most) = self.bounds(*a)?;
                Some((most.times(-1)?, least.times(-1)?))
            }
            OpKind::Scalar { expr: Expr::Binary(BinaryOp::Add, a, b), .. } => {
                let (a, b) = (self.bounds(*a)?, self.bounds(*b)?);
                Some((a.0.plus(1, &b.0)?, a.1.plus(1, &b.1)?))
            }
            OpKind::Scalar { expr: Expr::Binary(BinaryOp::Sub, a, b), .. } => {
                let (a, b) = (self.bounds(*a)?, self.bounds(*b)?);
                Some((a.0.plus(-1, &b.1)?, a.1.plus(-1, &b.0)?))
            }
            OpKind::Scalar { expr: Expr::Binary(BinaryOp::Mul, a, b), .. } => {
                let (a, b) = (self.bounds(*a)?, self.bounds(*b)?);
                let (form, factor) = match (constant(&a), constant(&b)) {
                    (_, Some(factor)) => (a, factor),
                    (Some(factor), _) => (b, factor),
                    _ => return self.opaque(scalar),
                };
                let ends = (form.0.times(factor)?, form.1.times(factor)?);
                Some(if factor < 0 { (ends.1, ends.0) } else { ends })
            }
            OpKind::For { first, end, .. } if self.inside.contains(&scalar) => {
                Some((self.bounds(*first)?.0, self.bounds(*end)?.1.plus(-1, &Linear::number(1))?))
            }
            OpKind::Task { grid: Some(grid), .. } if self.inside.contains(&scalar) => {
                Some((Linear::default(), self.bounds(grid.blocks)?.1.plus(-1, &Linear::number(1))?))
            }
            _ => self.opaque(scalar),
        }
    }

    fn opaque(&self, scalar: Scalar) -> Option<(Linear, Linear)> {
        let outside = !self.inside.contains(&scalar);
        outside.then(|| (Linear::atom(Atom::Scalar(scalar)), Linear::atom(Atom::Scalar(scalar))))
    }
}

fn constant(bounds: &(Linear, Linear)) -> Option<i64> {
    (bounds.0 == bounds.1 && bounds.0.terms.is_empty()).then_some(bounds.0.constant)
}

/// The parts have no element in common. `within` says which atoms have the same value for both; of the others only the
/// range counts.
pub(super) fn disjoint(a: &Hulls, b: &Hulls, ranges: &Ranges, same: impl Fn(Atom) -> bool) -> bool {
    // A scalar and a whole tensor of no dimensions never are.
    a.iter().zip(b).any(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => before(&a.last, &b.first, ranges, &same) || before(&b.last, &a.first, ranges, &same),
        _ => false,
    })
}

/// The parts have no element in common in two different turns of the only loop around both: `index` moves each by more
/// than the other reaches.
pub(super) fn disjoint_in_turns(a: &Hulls, b: &Hulls, index: Scalar) -> bool {
    let apart = |a: &Hull, b: &Hull| {
        let factor = |form: &Linear| form.terms.iter().find(|t| t.0 == Atom::Scalar(index)).map_or(0, |t| t.1);
        let moved = factor(&a.first);
        if moved == 0 || [&a.last, &b.first, &b.last].into_iter().any(|form| factor(form) != moved) {
            return false;
        }
        let distance = |x: &Linear, y: &Linear| x.plus(-1, y).filter(|d| d.terms.is_empty()).map(|d| d.constant);
        let (Some(from), Some(to)) = (distance(&b.first, &a.last), distance(&b.last, &a.first)) else { return false };
        // A multiple of the move between the two, other than 0, is a turn in which they meet.
        let step = moved.unsigned_abs() as i128;
        let (from, to) = (i128::from(from), i128::from(to));
        let multiples = to.div_euclid(step) - (from - 1).div_euclid(step);
        multiples == i128::from(from <= 0 && 0 <= to)
    };
    a.iter().zip(b).any(|(a, b)| matches!((a, b), (Some(a), Some(b)) if apart(a, b)))
}

/// `a < b`, whatever the atoms are.
fn before(a: &Linear, b: &Linear, ranges: &Ranges, same: &impl Fn(Atom) -> bool) -> bool {
    let split = |form: &Linear| {
        let (shared, own): (SmallVec<[_; 2]>, SmallVec<[_; 2]>) = form.terms.iter().copied().partition(|t| same(t.0));
        (Linear { constant: form.constant, terms: shared }, Linear { constant: 0, terms: own })
    };
    let ((a, a_own), (b, b_own)) = (split(a), split(b));
    let Some(difference) = b.plus(-1, &a) else { return false };
    let least = i128::from(difference.range(ranges).min) + i128::from(b_own.range(ranges).min)
        - i128::from(a_own.range(ranges).max);
    least > 0
}
