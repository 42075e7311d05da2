// What the exchanges share: ranks that are threads or processes, parts of arguments, options, and times.
#ifndef EXCHANGE_HPP
#define EXCHANGE_HPP

#include "example.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

namespace example {

// The ranks that this process drives: all, or its own.
struct Ranks {
  pld::World world;
  std::uint32_t nranks, first, driven, launches;

  bool processes() const { return world.rank() >= 0; }

  // An argument with one part of `rows` x `columns` for each rank of this process, behind each other.
  template <class T>
  pld::Arg arg(std::vector<T> &parts, std::int64_t rows, std::int64_t columns) const {
    return processes() ? pld::arg(parts, {rows, columns}) : pld::arg(parts, {nranks, rows, columns});
  }
};

inline double microseconds() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Sorts the times of launches, and shows them on rank 0.
inline void show_times(const Ranks &ranks, const char *what, std::vector<double> times) {
  if (ranks.first != 0 || times.empty()) return;
  std::sort(times.begin(), times.end());
  std::printf("%s, %u ranks, %s: median %.2f us, best %.2f us of %zu\n", what, ranks.nranks,
              ranks.processes() ? "processes" : "threads", times[times.size() / 2], times[0], times.size());
}

// Starts this program once a rank, as a launcher would; 0 if all ended well.
inline int start_processes(char **argv, std::uint32_t nranks) {
  for (std::uint32_t rank = 0; rank < nranks; rank++) {
    const pid_t child = fork();
    if (child < 0) {
      std::perror("fork");
      return 1;
    }
    if (child == 0) {
      setenv("PLD_RANK", std::to_string(rank).c_str(), 1);
      setenv("PLD_WORLD_SIZE", std::to_string(nranks).c_str(), 1);
      execv("/proc/self/exe", argv);
      std::perror("exec");
      _exit(127);
    }
  }
  int failed = 0, state;
  while (::wait(&state) > 0) failed |= !WIFEXITED(state) || WEXITSTATUS(state) != 0;
  return failed;
}

// An example that launches `launches` times by default: reads the options, starts the ranks, calls `build()`, which
// gives a finished program, and `run(program, ranks)`.
template <class Build, class Run>
int exchange(int argc, char **argv, const char *name, std::uint32_t launches, Build &&build, Run &&run) {
  pld::WorldOptions options;
  std::uint32_t nranks = 2;
  bool processes = false, print = false;
  for (int i = 1; i < argc; i++) {
    const std::string option = argv[i];
    const int number = i + 1 < argc ? std::atoi(argv[i + 1]) : 0;
    std::uint32_t *target = option == "--ranks"      ? &nranks
                            : option == "--cores"    ? &options.cores_per_rank
                            : option == "--launches" ? &launches
                                                     : nullptr;
    if (target != nullptr && number > 0) {
      *target = static_cast<std::uint32_t>(number);
      i++;
    } else if (option == "--processes") {
      processes = true;
    } else if (option == "--print") {
      print = true;
    } else {
      std::fprintf(stderr, "usage: %s [--ranks N] [--cores N] [--processes] [--launches N] [--print]\n", name);
      return 2;
    }
  }

  const bool is_rank = std::getenv("PLD_RANK") != nullptr;
  if (processes && !is_rank) return start_processes(argv, nranks) != 0 ? 1 : 0;
  return example::main(name, [&] {
    const pld::Program program = build();
    if (print && !is_rank) std::printf("%s", program.text().c_str());
    if (!is_rank) options.nranks = nranks;
    pld::World world = is_rank ? pld::World::join(options) : pld::World::create(options);
    const std::uint32_t size = world.nranks();
    const std::uint32_t first = is_rank ? static_cast<std::uint32_t>(world.rank()) : 0;
    Ranks ranks{std::move(world), size, first, is_rank ? 1 : size, launches};
    run(program, ranks);
  });
}

}  // namespace example

#endif
