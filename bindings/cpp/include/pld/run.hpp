/// @file run.hpp
/// Launches under way.
#ifndef PLD_RUN_HPP
#define PLD_RUN_HPP

#include <pld.h>
#include <pld/error.hpp>
#include <pld/handle.hpp>

#include <chrono>
#include <optional>

namespace pld {

/// A launch under way, which Executable::submit makes. Any number of threads may use it at once, until one destroys it.
/// Destroying it waits until it is done; the memory of the arguments must stay valid until then.
class Run : public Handle<pld_run_t, pld_run_destroy> {
 public:
  using Handle::Handle;

  /// Blocks until it is done, and says how it ended: as Executable::try_launch. May be called again.
  Status try_wait() const noexcept { return detail::status(pld_run_wait(capi(), -1)); }

  /// The same, but no longer than `timeout`: then nothing, and the run goes on.
  std::optional<Status> try_wait_for(std::chrono::microseconds timeout) const noexcept {
    const Status status = detail::status(pld_run_wait(capi(), timeout.count() < 0 ? 0 : timeout.count()));
    if (status == Status::timeout && !done()) return std::nullopt;
    return status;
  }

  /// Whether it is done, however it ended. Does not block.
  bool done() const noexcept { return pld_run_done(capi()) != 0; }

#if PLD_EXCEPTIONS
  /// Blocks until it is done; throws how it failed.
  void wait() const { detail::check(try_wait()); }

  /// The same, but no longer than `timeout`: whether it is done.
  bool wait_for(std::chrono::microseconds timeout) const {
    const std::optional<Status> status = try_wait_for(timeout);
    if (status) detail::check(*status);
    return status.has_value();
  }
#endif
};

}  // namespace pld

#endif
