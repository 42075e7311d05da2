//! Combination of a region of a window over several ranks.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

use crate::codegen::index::Indexing;
use crate::error::Result;
use crate::ir::{Combine, PeerRange, Region, Tensor};

use super::bounds::Peers;
use super::function::{Function, PLAIN};
use super::size::Size;

/// Peers known when compiling, of at most this number, need no loop.
const UNROLLED: i64 = 8;

impl Function<'_, '_> {
    pub fn get_reduce(
        &mut self,
        op: Combine,
        dst: Tensor,
        src: Tensor,
        peers: PeerRange,
        region: Option<&Region>,
    ) -> Result<()> {
        let tensors = &self.program().tensors;
        let kernel = self.kernel(self.unit.kernels.combine(op, tensors[dst].dtype, tensors[src].dtype))?;
        let peers = self.peers(src, peers);
        let [dst_at, src_at, shape] = self.region(dst, src, region);
        let to = self.tensor_side(dst, None, &dst_at);
        let from = self.tensor_side(src, Some(Size::Const(0)), &src_at);
        if self.unit.has_far() {
            let sizes = [dst, src].map(|tensor| tensors[tensor].dtype.size());
            return self.combine_far(kernel, src, peers, &to, &from, &shape, sizes);
        }
        let sources = self.stack_slot(size_of::<*const u8>() as i64 * self.nranks(src));
        self.each_row(&to, &from, &shape, |f, to, from, elements| {
            f.list_sources(sources, src, peers, from)?;
            let (count, elements) = (f.size_value(peers.count), f.size_value(elements));
            f.call(kernel, None, &[to, sources, count, elements]);
            Ok(())
        })
    }

    /// Stores the addresses, in the windows of each peer, of what lies at `address` in those of rank 0.
    fn list_sources(&mut self, sources: Value, window: Tensor, peers: Peers, address: Value) -> Result<()> {
        let nranks = self.nranks(window);
        if let Peers { first: Size::Const(first), count: Size::Const(count @ ..=UNROLLED) } = peers {
            for k in 0..count {
                let rank = self.world_rank(window, Size::Const((first + k) % nranks));
                let source = self.copy_of(address, rank);
                let source = self.size_value(source);
                self.b.ins().store(PLAIN, source, sources, size_of::<*const u8>() as i32 * k as i32);
            }
            return Ok(());
        }
        self.counted_loop(Size::Const(0), peers.count, Size::Const(1), |f, k| {
            let number = f.add(peers.first, Size::Value(k));
            let number = if peers.first == Size::Const(0) { number } else { f.wrapped(number, nranks) };
            let rank = f.world_rank(window, number);
            let source = f.copy_of(address, rank);
            let source = f.size_value(source);
            let place = f.mul(Size::Value(k), Size::Const(size_of::<*const u8>() as i64));
            let place = f.add(Size::Value(sources), place);
            let place = f.size_value(place);
            f.b.ins().store(PLAIN, source, place, 0);
            Ok(())
        })
    }

    /// Stores the ranks of the peers.
    pub fn list_ranks(&mut self, list: Value, window: Tensor, peers: Peers) -> Result<()> {
        let nranks = self.nranks(window);
        self.counted_loop(Size::Const(0), peers.count, Size::Const(1), |f, k| {
            let number = f.add(peers.first, Size::Value(k));
            let number = if peers.first == Size::Const(0) { number } else { f.wrapped(number, nranks) };
            let rank = f.world_rank(window, number);
            let rank = f.size_value(rank);
            let place = f.mul(Size::Value(k), Size::Const(size_of::<u32>() as i64));
            let place = f.add(Size::Value(list), place);
            let place = f.size_value(place);
            f.b.ins().istore32(PLAIN, rank, place, 0);
            Ok(())
        })
    }

    /// A number below twice `nranks`, counted on from 0 behind the last.
    fn wrapped(&mut self, number: Size, nranks: i64) -> Size {
        let over = self.sub(number, Size::Const(nranks));
        let (number, over) = (self.size_value(number), self.size_value(over));
        let wraps = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, over, 0);
        Size::Value(self.b.ins().select(wraps, over, number))
    }
}
