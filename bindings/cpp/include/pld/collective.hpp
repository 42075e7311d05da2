/// @file collective.hpp
/// Collectives: what all ranks of a domain do together, in a task or in the host driver.
#ifndef PLD_COLLECTIVE_HPP
#define PLD_COLLECTIVE_HPP

#include <pld.h>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/tensor.hpp>
#include <pld/transfer.hpp>

#include <cstdint>

namespace pld {

/// The algorithm of a collective. It never changes what it means, only in which order floats combine.
enum class CollectiveMode : pld_collective_mode_t {
  automatic = PLD_COLLECTIVE_AUTO,
  mesh = PLD_COLLECTIVE_MESH,
  direct = PLD_COLLECTIVE_DIRECT,
  ring = PLD_COLLECTIVE_RING,
  two_phase = PLD_COLLECTIVE_TWO_PHASE,
  hierarchical = PLD_COLLECTIVE_HIERARCHICAL,
};

/// What a collective is told besides its operands; see `pld_collective_options_t`.
struct CollectiveOptions {
  /// The algorithm.
  CollectiveMode mode = CollectiveMode::automatic;
  /// How many blocks share the work, in the host driver; 0 is 1.
  std::uint32_t cores = 0;
  /// A window that names the channel; none for that of the data.
  Tensor signal = {};

  /// The options as the C interface has them.
  pld_collective_options_t capi() const noexcept {
    pld_collective_options_t o = pld_collective_defaults();
    o.mode = static_cast<pld_collective_mode_t>(mode);
    o.cores = cores;
    o.signal = signal.capi();
    return o;
  }
};

/// One side of an all-to-all of rows.
struct Rows {
  /// The rows: the parts of a tensor along its first dimension.
  Tensor rows;
  /// An I32 or I64 for each rank: the number of its rows.
  Tensor counts;
  /// An I32 or I64 for each rank: the first of its rows. None: the rows are divided evenly among the ranks.
  Tensor offsets = {};

  /// The side as the C interface has it.
  pld_rows_t capi() const noexcept { return pld_rows_at(rows.capi(), counts.capi(), offsets.capi()); }
};

/// Nobody goes on before all ranks of the window's domain have come; without a window, those of the signal or all ranks
/// of the world. `pld_barrier` says what holds for every collective.
inline void barrier(const Tensor &window = {}, const CollectiveOptions &options = {}, Location at = Location::here()) {
  const pld_collective_options_t o = options.capi();
  pld_program_t *p = window.program() != nullptr ? window.program() : detail::or_open(options.signal.program());
  (pld_barrier)(detail::at(p, at), window.capi(), &o);
}

/// The window of every rank becomes the combination of those of all ranks; see `pld_allreduce`.
inline void allreduce(const Tensor &data, Combine op, const CollectiveOptions &options = {},
                      Location at = Location::here()) {
  const pld_collective_options_t o = options.capi();
  (pld_allreduce)(detail::at(data.program(), at), data.capi(), static_cast<pld_combine_t>(op), &o);
}

/// Row `r` of the window of each rank `r` becomes the combination of the rows `r` of all ranks; see
/// `pld_reduce_scatter`.
inline void reduce_scatter(const Tensor &data, Combine op, const CollectiveOptions &options = {},
                           Location at = Location::here()) {
  const pld_collective_options_t o = options.capi();
  (pld_reduce_scatter)(detail::at(data.program(), at), data.capi(), static_cast<pld_combine_t>(op), &o);
}

/// The window of every rank becomes that of rank `root`; see `pld_broadcast`.
inline void broadcast(const Tensor &data, Operand root, const CollectiveOptions &options = {},
                      Location at = Location::here()) {
  const pld_collective_options_t o = options.capi();
  const pld_scalar_t rank = root.in(data.program());
  (pld_broadcast)(detail::at(data.program(), at), data.capi(), rank, &o);
}

/// Row `r` of the window `dst` of every rank becomes `src` of rank `r`; see `pld_allgather`.
inline void allgather(const Tensor &dst, const Tensor &src, const CollectiveOptions &options = {},
                      Location at = Location::here()) {
  const pld_collective_options_t o = options.capi();
  (pld_allgather)(detail::at(dst.program(), at), dst.capi(), src.capi(), &o);
}

/// Row `r` of the window `dst` of every rank `q` becomes row `q` of `src` of rank `r`; see `pld_all_to_all`.
inline void all_to_all(const Tensor &dst, const Tensor &src, const CollectiveOptions &options = {},
                       Location at = Location::here()) {
  const pld_collective_options_t o = options.capi();
  (pld_all_to_all)(detail::at(dst.program(), at), dst.capi(), src.capi(), &o);
}

/// Each rank sends as many rows to each other as its counts say; see `pld_all_to_all_v`.
inline void all_to_all_v(const Rows &recv, const Rows &send, const CollectiveOptions &options = {},
                         Location at = Location::here()) {
  const pld_collective_options_t o = options.capi();
  (pld_all_to_all_v)(detail::at(recv.rows.program(), at), recv.capi(), send.capi(), &o);
}

}  // namespace pld

#endif
