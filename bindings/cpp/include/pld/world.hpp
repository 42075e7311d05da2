/// @file world.hpp
/// Worlds: the ranks that run programs.
#ifndef PLD_WORLD_HPP
#define PLD_WORLD_HPP

#include <pld.h>
#include <pld/error.hpp>
#include <pld/handle.hpp>
#include <pld/program.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pld {

/// How ranks wait for each other.
enum class WaitPolicy : pld_wait_policy_t {
  automatic = PLD_WAIT_POLICY_AUTO,
  spin = PLD_WAIT_POLICY_SPIN,
  yield = PLD_WAIT_POLICY_YIELD,
  sleep = PLD_WAIT_POLICY_SLEEP,
};

/// How important a message is.
enum class LogLevel : pld_log_level_t {
  automatic = PLD_LOG_DEFAULT,
  error = PLD_LOG_ERROR,
  info = PLD_LOG_INFO,
};

/// Options of a world; see `pld_world_options_t`. Zero is the default everywhere.
struct WorldOptions {
  /// The transport; default by the function that is called.
  Transport transport = Transport::automatic;
  /// Number of ranks. World::create needs it; 0 in World::join takes it and the rank from the environment.
  std::uint32_t nranks = 0;
  /// This process's rank, if `nranks` is not 0. Join only.
  std::uint32_t rank = 0;
  /// How ranks wait.
  WaitPolicy wait = WaitPolicy::automatic;
  /// Messages up to this level are given to `log`.
  LogLevel log_level = LogLevel::automatic;
  /// How long joining, compiling, a wait or a launch may take; default 30 seconds.
  std::chrono::microseconds timeout{0};
  /// How ranks of World::join find each other: `env:` (default), `file:PATH` or `tcp:HOST:PORT`.
  std::string bootstrap;
  /// Or by this all-gather, which every rank calls as often in the same order: it fills `all` with every rank's `size`
  /// bytes, in rank order, `mine` being this rank's, and says whether that went well. Needs `nranks` and `rank`.
  std::function<bool(const void *mine, void *all, std::size_t size)> exchange;
  /// Gets messages; called by any thread that uses the world, also by several at once. What it throws is lost.
  std::function<void(LogLevel, const char *message)> log;
  /// Cores of each rank that this process drives, 1 to 64; default 1.
  std::uint32_t cores_per_rank = 0;
  /// Most submitted runs that have not ended; default 64.
  std::uint32_t max_runs = 0;
  /// Other than 0 shakes the timing, drawn with this seed.
  std::uint64_t chaos_seed = 0;
  /// A file that gets a trace of what the ranks do: `docs/tracing.md`. Empty for the file that the environment's
  /// `PLD_TRACE` names, else for no trace.
  std::string trace;
  /// Transport::hccl: the ACL device of each rank that this process drives; empty for devices with the numbers of the
  /// ranks.
  std::vector<std::int32_t> devices;
  /// Transport::hccl, join only: an `HcclComm` of the engine with the same ranks, which it destroys after the world;
  /// nullptr to make one.
  void *comm = nullptr;
  /// How long a process that is not of this host may be silent until its rank counts as lost; default 5 seconds.
  std::chrono::microseconds peer_timeout{0};
};

/// A world. Any number of threads may use it at once, until one destroys it. Destroying it leaves the world:
/// executables and runs that are still there may only be destroyed afterwards.
class World : public Handle<pld_world_t, pld_world_destroy> {
 public:
  using Handle::Handle;

  /// A world whose ranks are threads, or cards, of this process; see `pld_world_create`.
  static Result<World> try_create(const WorldOptions &options) noexcept { return make(pld_world_create, options); }
  /// Makes this process one rank of a world of processes. Collective, blocks until all have met; see `pld_world_join`.
  static Result<World> try_join(const WorldOptions &options = {}) noexcept { return make(pld_world_join, options); }

#if PLD_EXCEPTIONS
  /// As `try_create`, but throws.
  static World create(const WorldOptions &options) { return try_create(options).value(); }
  /// As `try_join`, but throws.
  static World join(const WorldOptions &options = {}) { return try_join(options).value(); }
  /// A world of so many threads of this process.
  static World threads(std::uint32_t nranks) {
    WorldOptions options;
    options.nranks = nranks;
    return create(options);
  }
#endif

  /// The number of ranks.
  std::uint32_t nranks() const noexcept { return pld_world_nranks(capi()); }
  /// This process's rank; -1 if it drives all ranks.
  std::int32_t rank() const noexcept { return pld_world_rank(capi()); }
  /// Status::ok, or the error that ended the world, with its report as `last_error()`.
  Status status() const noexcept { return detail::status(pld_world_status(capi())); }
  /// Ends what all ranks are doing, and all they will do, with Status::aborted and `code` in the message. Callable from
  /// any thread at any time; does not block.
  Status try_abort(std::int32_t code) noexcept { return detail::status(pld_world_abort(capi(), code)); }
#if PLD_EXCEPTIONS
  /// As `try_abort`, but throws.
  void abort(std::int32_t code) { detail::check(try_abort(code)); }
#endif

 private:
  /// The functions of the options, which the world calls as long as it lives.
  struct Functions {
    std::function<bool(const void *, void *, std::size_t)> exchange;
    std::function<void(LogLevel, const char *)> log;
  };

  static std::int32_t exchange(const void *mine, void *all, std::size_t size, void *user_data) noexcept {
    bool well = false;
    detail::guarded([&] { well = static_cast<Functions *>(user_data)->exchange(mine, all, size); });
    return well ? 0 : 1;
  }

  static void log(pld_log_level_t level, const char *message, void *user_data) noexcept {
    detail::guarded([&] { static_cast<Functions *>(user_data)->log(static_cast<LogLevel>(level), message); });
  }

  static Result<World> make(pld_status_t (*create)(const pld_world_options_t *, pld_world_t **),
                            const WorldOptions &options) noexcept {
    pld_world_options_t raw;
    const Status sized = detail::status(pld_world_options_init(&raw, sizeof raw));
    if (sized != Status::ok) return Error::last(sized);
    raw.transport = static_cast<pld_transport_t>(options.transport);
    raw.nranks = options.nranks;
    raw.rank = options.rank;
    raw.wait = static_cast<pld_wait_policy_t>(options.wait);
    raw.log_level = static_cast<pld_log_level_t>(options.log_level);
    raw.timeout_us = static_cast<std::uint64_t>(options.timeout.count());
    raw.bootstrap = options.bootstrap.empty() ? nullptr : options.bootstrap.c_str();
    raw.cores_per_rank = options.cores_per_rank;
    raw.max_runs = options.max_runs;
    raw.chaos_seed = options.chaos_seed;
    raw.trace = options.trace.empty() ? nullptr : options.trace.c_str();
    raw.devices = options.devices.data();
    raw.ndevices = static_cast<std::uint32_t>(options.devices.size());
    raw.comm = options.comm;
    raw.peer_timeout_us = static_cast<std::uint64_t>(options.peer_timeout.count());
    auto functions = std::make_shared<Functions>(Functions{options.exchange, options.log});
    if (functions->exchange) {
      raw.exchange = exchange;
      raw.exchange_user_data = functions.get();
    }
    if (functions->log) {
      raw.log = log;
      raw.log_user_data = functions.get();
    }
    pld_world_t *world = nullptr;
    const Status status = detail::status(create(&raw, &world));
    if (status != Status::ok) return Error::last(status);
    return World(world, std::move(functions));
  }
};

}  // namespace pld

#endif
