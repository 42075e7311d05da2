//! Tensors at the edge of a program: files, arguments of launches, comparison.

pub mod arguments;
pub mod compare;
pub mod npz;

use std::fmt;

use pld::check::value::{Value, decode};
use pld::ir::DType;

/// Alignment of tensors: as windows have it.
const ALIGN: usize = 64;

/// A tensor in row-major order, without gaps.
pub struct Array {
    /// Type of the elements.
    pub kind: Kind,
    /// Extents, outermost first.
    pub shape: Vec<i64>,
    memory: Vec<u8>,
    begin: usize,
    size: usize,
}

/// A type as numpy names it, without byte order: a letter and the size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// `f` float, `i` integer, `u` unsigned, `b` bool, `V` anything.
    pub letter: char,
    /// Bytes of an element.
    pub size: usize,
}

impl Kind {
    /// The type in which elements of `dtype` are kept: numpy's own, or for those that it does not have an unsigned
    /// integer with the same bits.
    pub fn of(dtype: DType) -> Self {
        let letter = match dtype {
            DType::F32 | DType::F16 => 'f',
            DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => 'u',
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => 'i',
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => 'u',
            DType::Bool => 'b',
        };
        Self { letter, size: dtype.size() as usize }
    }

    /// Elements of this type can be those of a `dtype` tensor. Packages that add types to numpy keep them as `V`.
    pub fn fits(self, dtype: DType) -> bool {
        let is_foreign = matches!(dtype, DType::BF16 | DType::F8E4M3 | DType::F8E5M2);
        self == Self::of(dtype) || is_foreign && self.letter == 'V' && self.size == dtype.size() as usize
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 8 * self.size;
        match self.letter {
            'f' => write!(f, "float{bits}"),
            'i' => write!(f, "int{bits}"),
            'u' => write!(f, "uint{bits}"),
            'b' => f.write_str("bool"),
            _ => write!(f, "void{bits}"),
        }
    }
}

impl Array {
    /// One of zeros.
    pub fn zeros(kind: Kind, shape: Vec<i64>) -> Self {
        let size = elements(&shape) * kind.size;
        let memory = vec![0; size + ALIGN];
        let begin = memory.as_ptr().addr().wrapping_neg() % ALIGN;
        Self { kind, shape, memory, begin, size }
    }

    /// One with these elements.
    pub fn of(kind: Kind, shape: Vec<i64>, bytes: &[u8]) -> Self {
        let mut array = Self::zeros(kind, shape);
        array.bytes_mut().copy_from_slice(bytes);
        array
    }

    /// The elements.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..][..self.size]
    }

    /// The elements, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..][..self.size]
    }

    /// The element at a place, as one of a `dtype` tensor if it can be that.
    pub fn element(&self, index: usize, dtype: DType) -> Value {
        let bytes = &self.bytes()[index * self.kind.size..][..self.kind.size];
        if self.kind.fits(dtype) {
            return decode(bytes, dtype);
        }
        let float = |value: f64| Value::Float(value as f32);
        match (self.kind.letter, self.kind.size) {
            ('f', 8) => float(f64::from_ne_bytes(bytes.try_into().expect("8 bytes"))),
            ('f', 4) => decode(bytes, DType::F32),
            ('f', _) => decode(bytes, DType::F16),
            ('i', 1) => decode(bytes, DType::I8),
            ('i', 2) => decode(bytes, DType::I16),
            ('i', 4) => decode(bytes, DType::I32),
            ('i', _) => decode(bytes, DType::I64),
            (_, 1) => decode(bytes, DType::U8),
            (_, 2) => decode(bytes, DType::U16),
            (_, 4) => decode(bytes, DType::U32),
            _ => decode(bytes, DType::U64),
        }
    }
}

/// Number of elements of a shape.
pub fn elements(shape: &[i64]) -> usize {
    shape.iter().map(|&extent| extent as usize).product()
}

/// `float32[2, 64]`, `f32[2, 64]`.
pub fn type_text(ty: impl fmt::Display, shape: &[i64]) -> String {
    let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("{ty}[{}]", extents.join(", "))
}
