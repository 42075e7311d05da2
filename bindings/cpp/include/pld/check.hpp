/// @file check.hpp
/// The checker: what can go wrong in any order of the ranks.
#ifndef PLD_CHECK_HPP
#define PLD_CHECK_HPP

#include <pld.h>
#include <pld/arg.hpp>
#include <pld/error.hpp>
#include <pld/executable.hpp>
#include <pld/program.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pld {

/// When remote writes land.
enum class MemoryModel : pld_memory_model_t {
  host = PLD_MEMORY_HOST,
  npu = PLD_MEMORY_NPU,
};

/// How schedules are chosen.
enum class Explore : pld_explore_t {
  automatic = PLD_EXPLORE_AUTO,
  random = PLD_EXPLORE_RANDOM,
  pct = PLD_EXPLORE_PCT,
  exhaustive = PLD_EXPLORE_EXHAUSTIVE,
};

/// How tensors are filled that are not given.
enum class Fill : pld_fill_t {
  iota = PLD_FILL_IOTA,
  random = PLD_FILL_RANDOM,
};

/// Options of `check`; see `pld_check_options_t`. Zero is the default everywhere.
struct CheckOptions {
  /// Number of ranks; default 2.
  std::uint32_t nranks = 0;
  /// Launches in a row, up to 1000; default 1.
  std::uint32_t launches = 0;
  /// As a persistent executable.
  bool persistent = false;
  /// When remote writes land.
  MemoryModel memory = MemoryModel::host;
  /// How schedules are chosen.
  Explore explore = Explore::automatic;
  /// Most schedules that are run; default 1000.
  std::uint64_t schedules = 0;
  /// No further schedule is begun after that long; default no limit.
  std::chrono::microseconds time_limit{0};
  /// What the random choices follow from.
  std::uint64_t seed = 0;
  /// The only schedule to run: that of a finding.
  std::string replay;
  /// Arguments as for a launch in a world of threads: one set for all launches, or as many sets as launches. They are
  /// copied, never written. What is not given is made up.
  std::vector<Arg> args;
  /// How tensors are filled that are not given.
  Fill fill = Fill::iota;
  /// Functions for extern and host tasks; none is needed.
  std::vector<NamedCallback> callbacks;
};

/// What was explored, and what was found.
struct CheckReport {
  /// Status::ok, Status::check if a finding is an error, or what kept the check from running.
  Status status = Status::ok;
  /// The findings, in source order, each once, with a schedule that shows it.
  std::vector<Diagnostic> findings;
  /// Whether every schedule was run, up to the order of independent steps.
  bool complete = false;
  /// Schedules that were run.
  std::uint64_t schedules = 0;
  /// Steps of all of them.
  std::uint64_t steps = 0;
  /// Findings that are errors.
  std::uint32_t errors = 0;
  /// Findings that are warnings.
  std::uint32_t warnings = 0;
};

/// Runs the finished program on private copies of its windows and tensors, in many orders of its ranks, tasks and
/// remote writes, and finds what can go wrong. Local, and needs no world; see `pld_check`.
[[nodiscard]] inline CheckReport try_check(const Program &program, const CheckOptions &options = {}) noexcept {
  CheckReport report;
  pld_check_options_t raw;
  report.status = detail::status(pld_check_options_init(&raw, sizeof raw));
  if (report.status != Status::ok) return report;
  const std::vector<pld_callback_t> callbacks = detail::raw_of(options.callbacks);
  raw.nranks = options.nranks;
  raw.launches = options.launches;
  raw.persistent = options.persistent;
  raw.memory = static_cast<pld_memory_model_t>(options.memory);
  raw.explore = static_cast<pld_explore_t>(options.explore);
  raw.schedules = options.schedules;
  raw.time_limit_us = static_cast<std::uint64_t>(options.time_limit.count());
  raw.seed = options.seed;
  raw.replay = options.replay.empty() ? nullptr : options.replay.c_str();
  raw.args = reinterpret_cast<const pld_arg_t *>(options.args.data());
  raw.nargs = options.args.size();
  raw.fill = static_cast<pld_fill_t>(options.fill);
  raw.callbacks = callbacks.data();
  raw.ncallbacks = callbacks.size();
  pld_check_report_t seen = {};
  seen.struct_size = sizeof seen;
  report.status = detail::status(pld_check(program.capi(), &raw, detail::collect, &report.findings, &seen));
  report.complete = seen.complete != 0;
  report.schedules = seen.schedules;
  report.steps = seen.steps;
  report.errors = seen.errors;
  report.warnings = seen.warnings;
  return report;
}

#if PLD_EXCEPTIONS
/// As `try_check`, but throws an error with all findings if one of them is an error, or if it could not run.
inline CheckReport check(const Program &program, const CheckOptions &options = {}) {
  CheckReport report = try_check(program, options);
  if (report.status != Status::ok) throw Error::last(report.status, std::move(report.findings));
  return report;
}
#endif

}  // namespace pld

#endif
