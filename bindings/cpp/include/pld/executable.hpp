/// @file executable.hpp
/// Programs compiled for a world, and their launches.
#ifndef PLD_EXECUTABLE_HPP
#define PLD_EXECUTABLE_HPP

#include <pld.h>
#include <pld/arg.hpp>
#include <pld/callback.hpp>
#include <pld/error.hpp>
#include <pld/handle.hpp>
#include <pld/program.hpp>
#include <pld/run.hpp>
#include <pld/span.hpp>
#include <pld/world.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pld {

/// A function for a name of a program.
struct NamedCallback {
  /// The name of extern or host tasks.
  std::string name;
  /// The function.
  Callback function;
};

namespace detail {

/// The list as the C interface has it.
inline std::vector<pld_callback_t> raw_of(const std::vector<NamedCallback> &callbacks) {
  std::vector<pld_callback_t> raw;
  for (const NamedCallback &c : callbacks)
    raw.push_back(pld_callback_t{c.name.c_str(), c.function.function(), c.function.user_data()});
  return raw;
}

}  // namespace detail

/// Options of `compile`; see `pld_compile_options_t`.
struct CompileOptions {
  /// Windows keep their contents from launch to launch, and launches need no barrier.
  bool persistent = false;
  /// Offsets, peers and divisors are not checked when the program runs; a mistake in them is then undefined behaviour.
  bool unchecked = false;
  /// Functions for extern and host tasks, in place of those that the program was built with.
  std::vector<NamedCallback> callbacks;
  /// The name of the pool that its windows lie in; empty for windows of its own.
  std::string pool;
  /// Bytes of windows that the pool can take; default as many as the first program has.
  std::uint64_t pool_bytes = 0;
  /// Note when each rank begins and ends its part of a launch, for Executable::time.
  bool timed = false;
};

/// When a rank had its part of a launch, by the clock of std::chrono::steady_clock, which all processes of a host
/// share.
struct LaunchTime {
  /// When it came to the launch.
  std::chrono::nanoseconds begin;
  /// When its part was over; without host tasks, which come after all ranks.
  std::chrono::nanoseconds end;
};

/// A program compiled for a world. Any number of threads may use it, but a world is used by one call at a time.
class Executable : public Handle<pld_executable_t, pld_executable_destroy> {
 public:
  using Handle::Handle;

  /// Runs the program once and blocks until this process's ranks are done, with one argument for each parameter of the
  /// host driver. Collective; see `pld_launch`. Allocates nothing.
  Status try_launch(Span<const Arg> arguments) noexcept {
    return detail::status(pld_launch(capi(), raw(arguments), arguments.size()));
  }

  /// The same with the arguments one by one: `try_launch(arg(x, {2, 256}), epoch)`.
  template <class... Args, class = std::enable_if_t<(std::is_convertible_v<const Args &, Arg> && ...)>>
  Status try_launch(const Args &...arguments) noexcept {
    const std::array<Arg, sizeof...(Args)> list = {Arg(arguments)...};
    return try_launch(Span<const Arg>(list));
  }

  /// As `try_launch`, but does not wait for the end; see `pld_submit`. The memory of the arguments must stay valid
  /// until the run is done; the list itself need not.
  Result<Run> try_submit(Span<const Arg> arguments) noexcept {
    pld_run_t *run = nullptr;
    const Status status = detail::status(pld_submit(capi(), raw(arguments), arguments.size(), &run));
    if (status != Status::ok) return Error::last(status);
    return Run(run, kept_);
  }

  /// The same with the arguments one by one.
  template <class... Args, class = std::enable_if_t<(std::is_convertible_v<const Args &, Arg> && ...)>>
  Result<Run> try_submit(const Args &...arguments) noexcept {
    const std::array<Arg, sizeof...(Args)> list = {Arg(arguments)...};
    return try_submit(Span<const Arg>(list));
  }

  /// As `try_launch`, but queues the launch on the engine's stream, an `aclrtStream`, and returns; see `pld_launch_on`. The
  /// memory of the arguments is used until the stream has come past the launch.
  Status try_launch_on(void *native_stream, Span<const Arg> arguments) noexcept {
    return detail::status(pld_launch_on(capi(), raw(arguments), arguments.size(), native_stream));
  }

  /// The same with the arguments one by one.
  template <class... Args, class = std::enable_if_t<(std::is_convertible_v<const Args &, Arg> && ...)>>
  Status try_launch_on(void *native_stream, const Args &...arguments) noexcept {
    const std::array<Arg, sizeof...(Args)> list = {Arg(arguments)...};
    return try_launch_on(native_stream, Span<const Arg>(list));
  }

  /// Zeroes the windows of a persistent executable, or the pool that they lie in. Collective, blocks; between launches.
  Status try_reset() noexcept { return detail::status(pld_executable_reset(capi())); }

  /// When `rank`, which this process drives, had its part of the last launch; zeros before the first. Needs
  /// CompileOptions::timed; nothing is launched meanwhile.
  Result<LaunchTime> try_time(std::uint32_t rank) noexcept {
    pld_launch_time_t time;
    const Status status = detail::status(pld_executable_time(capi(), rank, &time));
    if (status != Status::ok) return Error::last(status);
    return LaunchTime{std::chrono::nanoseconds(time.begin_ns), std::chrono::nanoseconds(time.end_ns)};
  }

#if PLD_EXCEPTIONS
  /// As `try_launch`, but throws.
  void launch(Span<const Arg> arguments) { detail::check(try_launch(arguments)); }
  /// As `try_launch`, but throws.
  template <class... Args, class = std::enable_if_t<(std::is_convertible_v<const Args &, Arg> && ...)>>
  void launch(const Args &...arguments) {
    detail::check(try_launch(arguments...));
  }
  /// As `try_submit`, but throws.
  Run submit(Span<const Arg> arguments) { return try_submit(arguments).value(); }
  /// As `try_submit`, but throws.
  template <class... Args, class = std::enable_if_t<(std::is_convertible_v<const Args &, Arg> && ...)>>
  Run submit(const Args &...arguments) {
    return try_submit(arguments...).value();
  }
  /// As `try_launch_on`, but throws.
  void launch_on(void *native_stream, Span<const Arg> arguments) {
    detail::check(try_launch_on(native_stream, arguments));
  }
  /// As `try_launch_on`, but throws.
  template <class... Args, class = std::enable_if_t<(std::is_convertible_v<const Args &, Arg> && ...)>>
  void launch_on(void *native_stream, const Args &...arguments) {
    detail::check(try_launch_on(native_stream, arguments...));
  }
  /// As `try_reset`, but throws.
  void reset() { detail::check(try_reset()); }
  /// As `try_time`, but throws.
  LaunchTime time(std::uint32_t rank) { return try_time(rank).value(); }
#endif

 private:
  static const pld_arg_t *raw(Span<const Arg> arguments) noexcept {
    return reinterpret_cast<const pld_arg_t *>(arguments.data());
  }
};

/// Verifies the finished program for this number of ranks, turns it into machine code, and reserves its windows,
/// zeroed, on every rank. Collective, blocks; the program may be destroyed afterwards. See `pld_compile`.
inline Result<Executable> try_compile(const Program &program, World &world,
                                      const CompileOptions &options = {}) noexcept {
  pld_compile_options_t raw;
  Status status = detail::status(pld_compile_options_init(&raw, sizeof raw));
  if (status != Status::ok) return Error::last(status);
  const std::vector<pld_callback_t> callbacks = detail::raw_of(options.callbacks);
  raw.persistent = options.persistent;
  raw.unchecked = options.unchecked;
  raw.callbacks = callbacks.data();
  raw.ncallbacks = callbacks.size();
  raw.pool = options.pool.empty() ? nullptr : options.pool.c_str();
  raw.pool_bytes = options.pool_bytes;
  raw.timed = options.timed;
  pld_executable_t *executable = nullptr;
  status = detail::status(pld_compile(program.capi(), world.capi(), &raw, &executable));
  if (status != Status::ok) return Error::last(status);
  auto kept = std::make_shared<detail::Kept>();
  kept->push_back(program.kept());
  for (const NamedCallback &c : options.callbacks) kept->push_back(c.function.kept());
  return Executable(executable, std::move(kept));
}

#if PLD_EXCEPTIONS
/// As `try_compile`, but throws.
inline Executable compile(const Program &program, World &world, const CompileOptions &options = {}) {
  return try_compile(program, world, options).value();
}
#endif

}  // namespace pld

#endif
