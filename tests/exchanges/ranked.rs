//! Tensors with one part for each rank that this process drives.

use half::bf16;
use pld::ir::DType;
use pld::runtime::{Arg, Resident, TensorArg, World};

/// Types of elements.
pub trait Element: Copy {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty = $dtype:ident)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements!(f32 = F32 bf16 = BF16 i8 = I8 i32 = I32);

/// The bytes of numbers.
fn bytes<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: elements are numbers, for which all bytes are valid, and have no padding.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// The ranks that this process drives.
pub fn local(world: &World) -> Vec<usize> {
    match world.rank() {
        Some(rank) => vec![rank as usize],
        None => (0..world.nranks() as usize).collect(),
    }
}

/// One part a rank of this process, behind each other.
pub struct Ranked<T> {
    values: Vec<T>,
    shape: Vec<i64>,
    part: usize,
    /// The same on the cards of these ranks, if ranks are cards.
    cards: Option<(Resident, Vec<usize>)>,
}

impl<T: Element> Ranked<T> {
    /// Parts of this shape; `value` gives each element by rank and place in the part.
    pub fn new(world: &World, part: &[usize], value: impl Fn(usize, usize) -> T) -> Self {
        let (ranks, size) = (local(world), part.iter().product());
        let mut shape: Vec<i64> = part.iter().map(|&extent| extent as i64).collect();
        if world.rank().is_none() {
            shape.insert(0, ranks.len() as i64);
        }
        let mut values = Vec::with_capacity(ranks.len() * size);
        ranks.iter().for_each(|&rank| values.extend((0..size).map(|i| value(rank, i))));
        let cards = (world.transport() == "hccl").then(|| {
            let part: Vec<i64> = part.iter().map(|&extent| extent as i64).collect();
            let resident = Resident::create_stacked(world, T::DTYPE, &part).unwrap();
            for (&rank, part) in ranks.iter().zip(values.chunks_mut(size)) {
                resident.copy_in(rank as u32, bytes(part)).unwrap();
            }
            (resident, ranks)
        });
        Self { values, shape, part: size, cards }
    }

    pub fn arg(&mut self) -> Arg<'_> {
        if let Some((resident, _)) = &self.cards {
            return Arg::Resident(resident);
        }
        let data = self.values.as_mut_ptr().cast();
        Arg::Tensor(TensorArg { data, dtype: T::DTYPE, shape: &self.shape, strides: None })
    }

    /// The part of each rank of this process.
    pub fn parts(&mut self) -> impl Iterator<Item = &[T]> {
        if let Some((resident, ranks)) = &self.cards {
            for (&rank, part) in ranks.iter().zip(self.values.chunks_mut(self.part)) {
                resident.copy_out(rank as u32, bytes(part)).unwrap();
            }
        }
        self.values.chunks_exact(self.part)
    }
}
