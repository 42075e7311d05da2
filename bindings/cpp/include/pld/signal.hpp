/// @file signal.hpp
/// Signals: how ranks order what they do.
#ifndef PLD_SIGNAL_HPP
#define PLD_SIGNAL_HPP

#include <pld.h>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/tensor.hpp>

namespace pld {

/// How a notify changes its cell.
enum class NotifyOp : pld_notify_op_t {
  add = PLD_NOTIFY_ADD,
  set = PLD_NOTIFY_SET,
};

/// How a wait compares. Comparison is signed.
enum class WaitCmp : pld_wait_cmp_t {
  eq = PLD_WAIT_EQ,
  ge = PLD_WAIT_GE,
};

/// Changes a cell of rank `peer`'s I32 window. Inside a task. Everything the task wrote before is visible to that rank
/// once its `wait` on the cell succeeds; nothing else orders ranks. Does not block; see `pld_notify`.
inline void notify(const Place &cell, Operand peer, Operand value = 1, NotifyOp op = NotifyOp::add,
                   Location at = Location::here()) {
  pld_program_t *p = cell.program();
  const Offsets &o = cell.offsets();
  const pld_scalar_t rank = peer.in(p), x = value.in(p);
  (pld_notify)(detail::at(p, at), cell.tensor().capi(), rank, o.data(), o.size(), x, static_cast<pld_notify_op_t>(op));
}

/// Blocks the task until this rank's cell compares with `expected`; see `notify`. One that is not satisfied within the
/// world's time-out ends the launch with Status::timeout on every rank.
inline void wait(const Place &cell, Operand expected, WaitCmp cmp = WaitCmp::ge, Location at = Location::here()) {
  pld_program_t *p = cell.program();
  const Offsets &o = cell.offsets();
  const pld_scalar_t x = expected.in(p);
  (pld_wait)(detail::at(p, at), cell.tensor().capi(), o.data(), o.size(), x, static_cast<pld_wait_cmp_t>(cmp));
}

/// Lets the task be over only when this rank's cell is `expected` or more, without blocking or holding a core. Inside a
/// task that does nothing else; see `pld_defer_wait`.
inline void defer_wait(const Place &cell, Operand expected, Location at = Location::here()) {
  pld_program_t *p = cell.program();
  const Offsets &o = cell.offsets();
  const pld_scalar_t x = expected.in(p);
  (pld_defer_wait)(detail::at(p, at), cell.tensor().capi(), o.data(), o.size(), x);
}

}  // namespace pld

#endif
