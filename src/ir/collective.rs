//! Collectives: exchanges that every rank of a domain takes part in.
//!
//! A collective is one op until [`crate::passes::expand_collectives`] writes it out in the ops that users write.

use smallvec::{SmallVec, smallvec};

use super::effects::Access;
use super::entity::{Scalar, Tensor};
use super::types::{Combine, Mode};

/// A call of a collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// Which one, of what.
    pub kind: CollectiveKind,
    /// Which algorithm.
    pub mode: Mode,
    /// How many blocks share the work, in the host driver; 1 inside a task.
    pub cores: i64,
    /// A window that names the channel: calls on one channel pair in their order, and those on different ones are
    /// independent. Its cells stay as they are. Without one, the channel is that of the data.
    pub signal: Option<Tensor>,
}

/// The collectives.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectiveKind {
    /// Nobody goes on before all have come.
    Barrier {
        /// A window of the domain; without it and a signal, all ranks of the world.
        window: Option<Tensor>,
    },
    /// Every rank's `data` becomes the combination of all.
    Allreduce {
        /// A window.
        data: Tensor,
        /// How elements combine.
        op: Combine,
    },
    /// Row `me` of every rank's `data` becomes the combination of all rows `me`; the others stay.
    ReduceScatter {
        /// A window of as many rows as ranks.
        data: Tensor,
        /// How elements combine.
        op: Combine,
    },
    /// Every rank's `data` becomes that of `root`.
    Broadcast {
        /// A window.
        data: Tensor,
        /// A rank of the domain, the same on all.
        root: Scalar,
    },
    /// Row `r` of every rank's `dst` becomes `src` of rank `r`.
    Allgather {
        /// A window of as many rows as ranks.
        dst: Tensor,
        /// As large as a row.
        src: Tensor,
    },
    /// Row `r` of `dst` becomes row `me` of `src` of rank `r`.
    AllToAll {
        /// A window of as many rows as ranks.
        dst: Tensor,
        /// As large.
        src: Tensor,
    },
    /// The same with as many rows for each rank as the counts say.
    AllToAllV(AllToAllV),
}

/// The operands of an all-to-all of rows whose numbers are known only when it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct AllToAllV {
    /// A window of rows.
    pub dst: Tensor,
    /// How many rows came from each rank; written.
    pub recv_counts: Tensor,
    /// Rows of the same length.
    pub src: Tensor,
    /// How many rows go to each rank.
    pub send_counts: Tensor,
    /// The rows at which those from each rank begin in `dst`, and those to each rank in `src`. Without them, the rows of
    /// both are divided evenly among the ranks.
    pub offsets: Option<(Tensor, Tensor)>,
}

impl Collective {
    /// A call with nothing said besides.
    pub fn new(kind: CollectiveKind) -> Self {
        Self { kind, mode: Mode::Auto, cores: 1, signal: None }
    }

    /// The window whose domain takes part; none for the whole world.
    pub fn window(&self) -> Option<Tensor> {
        use CollectiveKind::*;
        match self.kind {
            Barrier { window } => window.or(self.signal),
            Allreduce { data, .. } | ReduceScatter { data, .. } | Broadcast { data, .. } => Some(data),
            Allgather { dst, .. } | AllToAll { dst, .. } => Some(dst),
            AllToAllV(ref v) => Some(v.dst),
        }
    }

    /// The tensors that it reads or writes, in the order in which the text shows them.
    pub fn operands(&self) -> SmallVec<[(Tensor, Access); 6]> {
        use Access::{Read, Write};
        match self.kind {
            CollectiveKind::Barrier { .. } => smallvec![],
            CollectiveKind::Allreduce { data, .. }
            | CollectiveKind::ReduceScatter { data, .. }
            | CollectiveKind::Broadcast { data, .. } => smallvec![(data, Read), (data, Write)],
            CollectiveKind::Allgather { dst, src } | CollectiveKind::AllToAll { dst, src } => {
                smallvec![(dst, Write), (src, Read)]
            }
            CollectiveKind::AllToAllV(ref v) => {
                let mut operands =
                    smallvec![(v.dst, Write), (v.recv_counts, Write), (v.src, Read), (v.send_counts, Read)];
                operands.extend(v.offsets.iter().flat_map(|&(recv, send)| [(recv, Read), (send, Read)]));
                operands
            }
        }
    }

    /// All tensors that it names; some of them more than once.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor> {
        let operands = self.operands().into_iter().map(|(tensor, _)| tensor);
        self.window().into_iter().chain(self.signal).chain(operands)
    }

    /// How elements combine, if they do.
    pub fn combine(&self) -> Option<Combine> {
        match self.kind {
            CollectiveKind::Allreduce { op, .. } | CollectiveKind::ReduceScatter { op, .. } => Some(op),
            _ => None,
        }
    }

    /// The scalar that it uses, if any.
    pub fn root(&self) -> Option<Scalar> {
        match self.kind {
            CollectiveKind::Broadcast { root, .. } => Some(root),
            _ => None,
        }
    }

    /// Its verb in program text.
    pub fn name(&self) -> &'static str {
        match self.kind {
            CollectiveKind::Barrier { .. } => "barrier",
            CollectiveKind::Allreduce { .. } => "allreduce",
            CollectiveKind::ReduceScatter { .. } => "reduce_scatter",
            CollectiveKind::Broadcast { .. } => "broadcast",
            CollectiveKind::Allgather { .. } => "allgather",
            CollectiveKind::AllToAll { .. } => "all_to_all",
            CollectiveKind::AllToAllV(_) => "all_to_all_v",
        }
    }
}
