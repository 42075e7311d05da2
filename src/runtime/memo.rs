//! The tensors and residents of the launch before. Engines pass the same ones again and again, and what was checked once still holds.

use smallvec::SmallVec;

use super::args::{Arg, TensorArg};
use crate::ir::DType;
use crate::ir::builder::MAX_RANK;

/// The tensors that a table was last bound to, by argument; nothing for scalars. Empty if there is nothing to recall.
#[derive(Clone, Debug)]
pub(super) struct Memo(Vec<Option<Seen>>);

#[derive(Clone, Debug)]
enum Seen {
    Tensor {
        address: usize,
        dtype: DType,
        shape: SmallVec<[i64; MAX_RANK]>,
        strides: Option<SmallVec<[i64; MAX_RANK]>>,
    },
    /// By its number, which no other resident will have.
    Resident(u64),
}

impl Memo {
    /// For `params` arguments; keeping them will not allocate.
    pub(super) fn new(params: usize) -> Self {
        Self(Vec::with_capacity(params))
    }

    /// Each tensor of `args` is the one that was kept.
    pub(super) fn recalls(&self, args: &[Arg]) -> bool {
        self.0.len() == args.len()
            && self.0.iter().zip(args).all(|(seen, arg)| match (seen, arg) {
                (Some(seen), Arg::Tensor(tensor)) => seen.is(tensor),
                (Some(Seen::Resident(id)), Arg::Resident(resident)) => *id == resident.shards().id,
                (None, Arg::Int(_) | Arg::Float(_) | Arg::Bool(_)) => true,
                _ => false,
            })
    }

    /// Keeps `args`, which have been checked; lists of parts are not kept.
    pub(super) fn keep(&mut self, args: &[Arg]) {
        self.forget();
        if !args.iter().any(|arg| matches!(arg, Arg::Ranks(_))) {
            self.0.extend(args.iter().map(|arg| match arg {
                Arg::Tensor(tensor) => Some(Seen::new(tensor)),
                Arg::Resident(resident) => Some(Seen::Resident(resident.shards().id)),
                _ => None,
            }));
        }
    }

    /// The table is no longer bound to what was kept.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

impl Seen {
    fn new(tensor: &TensorArg) -> Self {
        Seen::Tensor {
            address: tensor.data.addr(),
            dtype: tensor.dtype,
            shape: SmallVec::from_slice(tensor.shape),
            strides: tensor.strides.map(SmallVec::from_slice),
        }
    }

    fn is(&self, tensor: &TensorArg) -> bool {
        let Seen::Tensor { address, dtype, shape, strides } = self else { return false };
        *address == tensor.data.addr()
            && *dtype == tensor.dtype
            && **shape == *tensor.shape
            && strides.as_deref() == tensor.strides
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_difference_is_seen() {
        let data = std::ptr::without_provenance_mut(4096);
        let tensor = TensorArg { data, dtype: DType::F32, shape: &[2, 3], strides: None };
        let mut memo = Memo::new(2);
        let with = |tensor| [Arg::Tensor(tensor), Arg::Int(1)];
        assert!(!memo.recalls(&with(tensor)), "nothing is kept yet");
        memo.keep(&with(tensor));
        assert!(memo.recalls(&[Arg::Tensor(tensor), Arg::Int(2)]), "scalars may change");
        for other in [
            TensorArg { data: data.wrapping_add(4), ..tensor },
            TensorArg { dtype: DType::I32, ..tensor },
            TensorArg { shape: &[3, 2], ..tensor },
            TensorArg { shape: &[2, 3, 1], ..tensor },
            TensorArg { strides: Some(&[3, 1]), ..tensor },
        ] {
            assert!(!memo.recalls(&with(other)), "{other:?}");
        }
        assert!(!memo.recalls(&[Arg::Tensor(tensor)]));
        assert!(!memo.recalls(&[Arg::Tensor(tensor), Arg::Tensor(tensor)]));
        memo.keep(&[Arg::Ranks(&[tensor]), Arg::Int(1)]);
        assert!(!memo.recalls(&[Arg::Ranks(&[tensor]), Arg::Int(1)]), "lists are checked each time");
        memo.keep(&with(tensor));
        memo.forget();
        assert!(!memo.recalls(&with(tensor)));
    }
}
