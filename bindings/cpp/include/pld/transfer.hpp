/// @file transfer.hpp
/// Data that moves between ranks: put, get, and tiles of other ranks.
#ifndef PLD_TRANSFER_HPP
#define PLD_TRANSFER_HPP

#include <pld.h>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/shape.hpp>
#include <pld/tensor.hpp>
#include <pld/tile.hpp>

#include <cstdint>

namespace pld {

/// How a remote write combines with what is there.
enum class Atomic : pld_atomic_t {
  none = PLD_ATOMIC_NONE,
  add = PLD_ATOMIC_ADD,
};

/// How the elements of ranks combine. F16 and BF16 combine in F32 and are rounded once, at the end; integers wrap.
enum class Combine : pld_combine_t {
  sum = PLD_COMBINE_SUM,
  prod = PLD_COMBINE_PROD,
  max = PLD_COMBINE_MAX,
  min = PLD_COMBINE_MIN,
};

/// How a put or get moves its data; see `pld_transfer_t`.
struct TransferOptions {
  /// Whether remote elements are overwritten or added to; put only.
  Atomic atomic = Atomic::none;
  /// Rows of a chunk on targets that stage transfers on chip; 0 for all. Never changes the result.
  std::int64_t chunk_rows = 0;
  /// Columns of a chunk; 0 for all.
  std::int64_t chunk_cols = 0;
  /// Two chunks in flight; needs both chunk sizes.
  bool pipeline = false;
};

namespace detail {

inline pld_transfer_t with(pld_transfer_t t, const TransferOptions &options) noexcept {
  t.atomic = static_cast<pld_atomic_t>(options.atomic);
  t.chunk_rows = options.chunk_rows;
  t.chunk_cols = options.chunk_cols;
  t.pipeline = options.pipeline;
  return t;
}

inline pld_transfer_t region(const Place &dst, const Place &src, const Shape &shape) noexcept {
  return pld_region(dst.offsets().data(), dst.offsets().size(), src.offsets().data(), src.offsets().size(),
                    shape.data(), shape.size());
}

}  // namespace detail

/// Moves a region of this rank's tensor into the window of rank `peer`: `put(recv_x.at(row, 0), dst, x.at(t, 0),
/// {1, D})`. Inside a task. Visible to the peer once a later `notify` of this task is awaited there; see `pld_put`.
inline void put(const Place &dst, Operand peer, const Place &src, Shape shape, TransferOptions options = {},
                Location at = Location::here()) {
  pld_program_t *p = dst.program();
  const pld_transfer_t t = detail::with(detail::region(dst, src, shape), options);
  const pld_scalar_t rank = peer.in(p);
  (pld_put)(detail::at(p, at), dst.tensor().capi(), rank, src.tensor().capi(), &t);
}

/// The same for all of both.
inline void put(const Tensor &dst, Operand peer, const Tensor &src, TransferOptions options = {},
                Location at = Location::here()) {
  pld_program_t *p = dst.program();
  const pld_transfer_t t = detail::with(pld_whole(), options);
  const pld_scalar_t rank = peer.in(p);
  (pld_put)(detail::at(p, at), dst.capi(), rank, src.capi(), &t);
}

/// Moves a region of the window of rank `peer` into this rank's tensor. Inside a task. The data is there when the next
/// operation of the task begins; what the peer wrote must have been published to this rank; see `pld_get`.
inline void get(const Place &dst, Operand peer, const Place &src, Shape shape, TransferOptions options = {},
                Location at = Location::here()) {
  pld_program_t *p = dst.program();
  const pld_transfer_t t = detail::with(detail::region(dst, src, shape), options);
  const pld_scalar_t rank = peer.in(p);
  (pld_get)(detail::at(p, at), dst.tensor().capi(), rank, src.tensor().capi(), &t);
}

/// The same for all of both.
inline void get(const Tensor &dst, Operand peer, const Tensor &src, TransferOptions options = {},
                Location at = Location::here()) {
  pld_program_t *p = dst.program();
  const pld_transfer_t t = detail::with(pld_whole(), options);
  const pld_scalar_t rank = peer.in(p);
  (pld_get)(detail::at(p, at), dst.capi(), rank, src.capi(), &t);
}

/// A region becomes the combination of that of the window of the ranks from `first` up to, but without, `end`, in this
/// order, counted on from rank 0 behind the last. Inside a task; see `pld_get_reduce`.
inline void get_reduce(const Place &dst, Operand first, Operand end, const Place &src, Combine op, Shape shape,
                       Location at = Location::here()) {
  pld_program_t *p = dst.program();
  const pld_transfer_t t = detail::region(dst, src, shape);
  const pld_scalar_t from = first.in(p), to = end.in(p);
  (pld_get_reduce)(detail::at(p, at), dst.tensor().capi(), from, to, src.tensor().capi(),
                   static_cast<pld_combine_t>(op), &t);
}

/// The same for all of both.
inline void get_reduce(const Tensor &dst, Operand first, Operand end, const Tensor &src, Combine op,
                       Location at = Location::here()) {
  pld_program_t *p = dst.program();
  const pld_transfer_t t = pld_whole();
  const pld_scalar_t from = first.in(p), to = end.in(p);
  (pld_get_reduce)(detail::at(p, at), dst.capi(), from, to, src.capi(), static_cast<pld_combine_t>(op), &t);
}

/// The part of rank `peer`'s window that begins at a place and has this shape, as a tile. Inside a task; see
/// `pld_remote_load`.
inline Tile remote_load(const Place &from, Operand peer, Shape shape, Location at = Location::here()) {
  pld_program_t *p = from.program();
  const Offsets &o = from.offsets();
  const pld_scalar_t rank = peer.in(p);
  return Tile(
      p,
      (pld_remote_load)(detail::at(p, at), from.tensor().capi(), rank, o.data(), o.size(), shape.data(), shape.size()),
      at);
}

/// The same, with the offsets in braces: `remote_load(data, peer, {0, 0}, {1, 256})`.
inline Tile remote_load(const Tensor &window, Operand peer, Offsets offsets, Shape shape,
                        Location at = Location::here()) {
  return remote_load(Place(window, offsets), peer, shape, at);
}

/// Writes a tile into rank `peer`'s window, beginning at a place. Inside a task. On an NPU only a notify of the same
/// task publishes it; see `pld_remote_store`.
inline void remote_store(const Tile &tile, const Place &to, Operand peer, Atomic atomic = Atomic::none,
                         Location at = Location::here()) {
  pld_program_t *p = to.program();
  const Offsets &o = to.offsets();
  const pld_scalar_t rank = peer.in(p);
  (pld_remote_store)(detail::at(p, at), tile.capi(), to.tensor().capi(), rank, o.data(), o.size(),
                     static_cast<pld_atomic_t>(atomic));
}

}  // namespace pld

#endif
