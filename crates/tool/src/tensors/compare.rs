//! What a launch has left, compared with what is expected.

use pld::check::value::Value;
use pld::ir::DType;

use super::{Array, elements};

/// How far an element may be from what is expected: `atol + rtol * |expected|`.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Part of the expected value.
    pub rtol: f64,
    /// In any case.
    pub atol: f64,
}

/// An element that is too far from what is expected.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Its indices.
    pub index: Vec<i64>,
    /// What is expected.
    pub expected: Value,
    /// What is there.
    pub actual: Value,
    /// How far it is off; infinite if only one is a number.
    pub off: f64,
}

/// The elements of a `dtype` tensor that are too far off, the worst first. Both have the same shape.
pub fn mismatches(actual: &Array, expected: &Array, dtype: DType, tolerance: Tolerance) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for place in 0..elements(&actual.shape) {
        let (is, wanted) = (actual.element(place, dtype), expected.element(place, dtype));
        let off = distance(is, wanted);
        let allowed = tolerance.atol + tolerance.rtol * float(wanted).abs();
        // Infinities are equal or off by infinity, whatever is allowed.
        if off > 0.0 && (off.is_infinite() || off > allowed) {
            found.push(Mismatch { index: indices(place, &actual.shape), expected: wanted, actual: is, off });
        }
    }
    found.sort_by(|a, b| b.off.total_cmp(&a.off));
    found
}

fn distance(a: Value, b: Value) -> f64 {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => (a - b).unsigned_abs() as f64,
        _ => {
            let (a, b) = (float(a), float(b));
            if a == b || a.is_nan() && b.is_nan() {
                0.0
            } else {
                let off = (a - b).abs();
                if off.is_nan() { f64::INFINITY } else { off }
            }
        }
    }
}

fn float(value: Value) -> f64 {
    match value {
        Value::Int(value) => value as f64,
        Value::Float(value) => value.into(),
    }
}

fn indices(mut place: usize, shape: &[i64]) -> Vec<i64> {
    let mut index = vec![0; shape.len()];
    for (i, &extent) in index.iter_mut().zip(shape).rev() {
        *i = (place % extent as usize) as i64;
        place /= extent as usize;
    }
    index
}

/// A value as a report shows it.
pub fn text(value: Value) -> String {
    match value {
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn floats(values: &[f32]) -> Array {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        Array::of(Kind { letter: 'f', size: 4 }, vec![2, values.len() as i64 / 2], &bytes)
    }

    #[test]
    fn the_worst_comes_first() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let actual = floats(&[1.0, 2.0, nan, inf, 5.0, nan, 7.5, -inf]);
        let expected = floats(&[1.0, 2.1, nan, inf, 5.05, 6.0, 7.0, inf]);
        let tolerance = Tolerance { rtol: 0.0, atol: 0.06 };
        let found = mismatches(&actual, &expected, DType::F32, tolerance);
        let places: Vec<_> = found.iter().map(|m| m.index.clone()).collect();
        assert_eq!(places, [vec![1, 1], vec![1, 3], vec![1, 2], vec![0, 1]]);
        let relative = Tolerance { rtol: 0.1, atol: 0.0 };
        assert_eq!(mismatches(&actual, &expected, DType::F32, relative).len(), 2, "only what is no number");
    }

    #[test]
    fn integers_are_exact() {
        let array = |value: i64| Array::of(Kind { letter: 'i', size: 8 }, vec![1], &value.to_ne_bytes());
        let exact = Tolerance { rtol: 0.0, atol: 0.0 };
        let found = mismatches(&array(i64::MAX), &array(i64::MAX - 1), DType::I64, exact);
        assert_eq!((found.len(), found[0].off), (1, 1.0));
    }
}
