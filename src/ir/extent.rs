//! Sizes: expressions over numbers, the world size and named dimensions.
//!
//! An extent has no place in a block: it is constant during a launch, so shapes are made of extents, and a literal in
//! program code is one too.

use std::collections::HashMap;

use cranelift_entity::{PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

use super::entity::{Dim, Extent};
use super::types::BinaryOp;

/// Most parts of one extent, those of its constants included: what is done with an extent visits them all.
pub const MAX_NODES: u32 = 128;

/// Extents, one a dimension.
pub type Shape = SmallVec<[Extent; 4]>;

/// An extent's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtentData {
    /// A number.
    Int(i64),
    /// Number of ranks of the world.
    World,
    /// A named dimension.
    Dim(Dim),
    /// Arithmetic; division truncates.
    Binary(BinaryOp, Extent, Extent),
}

/// A named dimension's definition.
#[derive(Clone, Debug, PartialEq)]
pub struct DimData {
    /// Its name, unique in the program.
    pub name: String,
    /// Its value, for a constant; without one it is bound at launch from the shapes of the arguments.
    pub value: Option<Extent>,
}

/// What is known when an extent is evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The world size, once bound.
    pub world: Option<i64>,
    /// The dynamic dimensions, by index, once bound.
    pub dims: &'a [i64],
}

/// The extents of a program, each expression once.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    data: PrimaryMap<Extent, ExtentData>,
    nodes: SecondaryMap<Extent, u32>,
    ids: HashMap<ExtentData, Extent>,
    /// The named dimensions.
    pub dims: PrimaryMap<Dim, DimData>,
}

impl Extents {
    /// The extent with this definition.
    pub fn intern(&mut self, data: ExtentData) -> Extent {
        if let Some(&known) = self.ids.get(&data) {
            return known;
        }
        let nodes = match data {
            ExtentData::Int(_) | ExtentData::World => 1,
            ExtentData::Dim(dim) => self.dims[dim].value.map_or(1, |value| 1 + self.nodes[value]),
            ExtentData::Binary(_, a, b) => 1 + self.nodes[a] + self.nodes[b],
        };
        let e = self.data.push(data);
        self.ids.insert(data, e);
        self.nodes[e] = nodes;
        e
    }

    /// Number of parts of an extent, those of its constants included.
    pub fn nodes(&self, e: Extent) -> u32 {
        self.nodes[e]
    }

    /// The extent of a number.
    pub fn int(&mut self, value: i64) -> Extent {
        self.intern(ExtentData::Int(value))
    }

    /// An extent's definition.
    pub fn get(&self, e: Extent) -> ExtentData {
        self.data[e]
    }

    /// Number of distinct extents.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// There is no extent.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Its value with what is known; none if something is missing, overflows, or divides by zero.
    pub fn eval(&self, e: Extent, known: Known) -> Option<i64> {
        match self.data[e] {
            ExtentData::Int(value) => Some(value),
            ExtentData::World => known.world,
            ExtentData::Dim(dim) => match self.dims[dim].value {
                Some(value) => self.eval(value, known),
                None => known.dims.get(dim.as_u32() as usize).copied(),
            },
            ExtentData::Binary(op, a, b) => {
                let (a, b) = (self.eval(a, known)?, self.eval(b, known)?);
                match op {
                    BinaryOp::Add => a.checked_add(b),
                    BinaryOp::Sub => a.checked_sub(b),
                    BinaryOp::Mul => a.checked_mul(b),
                    BinaryOp::Div => a.checked_div(b),
                    BinaryOp::Rem => a.checked_rem(b),
                    BinaryOp::Min => Some(a.min(b)),
                    BinaryOp::Max => Some(a.max(b)),
                    _ => None,
                }
            }
        }
    }

    /// Its value as a number of the program text, without world and launch.
    pub fn constant(&self, e: Extent) -> Option<i64> {
        self.eval(e, Known::default())
    }

    /// The extent depends on a dimension that is bound at launch.
    pub fn is_dynamic(&self, e: Extent) -> bool {
        match self.data[e] {
            ExtentData::Int(_) | ExtentData::World => false,
            ExtentData::Dim(dim) => self.dims[dim].value.is_none_or(|v| self.is_dynamic(v)),
            ExtentData::Binary(_, a, b) => self.is_dynamic(a) || self.is_dynamic(b),
        }
    }

    /// Known to be equal: the same polynomial over the world size, the dynamic dimensions and opaque quotients.
    pub fn same(&self, a: Extent, b: Extent) -> bool {
        a == b || self.sum(&[(a, 1), (b, -1)], Known::default()) == Some(0)
    }

    /// Known to differ, whatever the world and the dynamic dimensions.
    pub fn differ(&self, a: Extent, b: Extent) -> bool {
        a != b && self.sum(&[(a, 1), (b, -1)], Known::default()).is_some_and(|difference| difference != 0)
    }

    /// The sum of extents, each times a factor, if what is not known cancels out.
    pub fn sum(&self, terms: &[(Extent, i64)], known: Known) -> Option<i64> {
        let mut total = HashMap::new();
        for &(extent, factor) in terms {
            total = add(total, self.polynomial(extent, known)?, factor)?;
        }
        total.retain(|_, factor| *factor != 0);
        match total.len() {
            0 => Some(0),
            1 => total.get(&Term::new()).copied(),
            _ => None,
        }
    }

    fn polynomial(&self, e: Extent, known: Known) -> Option<HashMap<Term, i64>> {
        let number = |value| HashMap::from([(Term::new(), value)]);
        let atom = |data| HashMap::from([(Term::from_slice(&[data]), 1)]);
        if let Some(value) = self.eval(e, known) {
            return Some(number(value));
        }
        let mut sum = match self.data[e] {
            ExtentData::Int(value) => number(value),
            ExtentData::World => atom(Atom::World),
            ExtentData::Dim(dim) => match self.dims[dim].value {
                Some(value) => self.polynomial(value, known)?,
                None => atom(Atom::Dim(dim)),
            },
            ExtentData::Binary(op, a, b) => {
                let (p, q) = (self.polynomial(a, known)?, self.polynomial(b, known)?);
                match op {
                    BinaryOp::Add => add(p, q, 1)?,
                    BinaryOp::Sub => add(p, q, -1)?,
                    BinaryOp::Mul => multiply(&p, &q)?,
                    _ => atom(Atom::Opaque(e)),
                }
            }
        };
        sum.retain(|_, factor| *factor != 0);
        Some(sum)
    }
}

/// A factor of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Atom {
    World,
    Dim(Dim),
    Opaque(Extent),
}

/// A product of atoms, sorted; empty for 1.
type Term = SmallVec<[Atom; 2]>;

fn add(mut p: HashMap<Term, i64>, q: HashMap<Term, i64>, times: i64) -> Option<HashMap<Term, i64>> {
    for (term, factor) in q {
        let sum = p.entry(term).or_insert(0);
        *sum = sum.checked_add(factor.checked_mul(times)?)?;
    }
    Some(p)
}

fn multiply(p: &HashMap<Term, i64>, q: &HashMap<Term, i64>) -> Option<HashMap<Term, i64>> {
    // Shapes are short; refuse what would grow without bound.
    const MOST_TERMS: usize = 64;
    if p.len() * q.len() > MOST_TERMS {
        return None;
    }
    let mut product = HashMap::new();
    for (a, m) in p {
        for (b, n) in q {
            let mut term: Term = a.iter().chain(b).copied().collect();
            term.sort_unstable();
            let sum = product.entry(term).or_insert(0i64);
            *sum = sum.checked_add(m.checked_mul(*n)?)?;
        }
    }
    Some(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_algebraic() {
        let mut x = Extents::default();
        let n = x.dims.push(DimData { name: "n".into(), value: None });
        let (world, n, two, one) = (x.intern(ExtentData::World), x.intern(ExtentData::Dim(n)), x.int(2), x.int(1));
        let less = x.intern(ExtentData::Binary(BinaryOp::Sub, world, one));
        let twice = x.intern(ExtentData::Binary(BinaryOp::Mul, two, less));
        let double = x.intern(ExtentData::Binary(BinaryOp::Mul, world, two));
        let double_less = x.intern(ExtentData::Binary(BinaryOp::Sub, double, two));
        assert!(x.same(twice, double_less));
        assert!(!x.same(twice, double));
        assert!(x.differ(twice, double), "they differ by the constant 2");
        assert!(!x.differ(world, n), "they may be equal");
        assert_eq!(x.sum(&[(world, 1), (n, 1), (n, -1)], Known { world: Some(4), dims: &[] }), Some(4));
        assert_eq!(x.eval(twice, Known { world: Some(4), dims: &[] }), Some(6));
        assert_eq!(x.constant(twice), None);
    }
}
