// A world of processes: joined by the environment, by a file, and by the engine's own exchange; and one that dies.
#include "test.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>

using namespace pld;

namespace {

constexpr std::int64_t kColumns = 16;

// Runs `body(rank)` in a process a rank; every one must end well, or by a signal if it is `killed`.
void processes(std::uint32_t nranks, const std::function<void(std::uint32_t)> &body,
               std::uint32_t killed = UINT32_MAX) {
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < nranks; rank++) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      test::deadline(60);
      try {
        body(rank);
      } catch (const std::exception &error) {
        test::fail(__FILE__, __LINE__, error.what());
      }
      std::exit(0);
    }
    children.push_back(child);
  }
  for (std::uint32_t rank = 0; rank < nranks; rank++) {
    int state = 0;
    CHECK(waitpid(children[rank], &state, 0) == children[rank]);
    CHECK(rank == killed ? WIFSIGNALED(state) : WIFEXITED(state) && WEXITSTATUS(state) == 0);
  }
}

// Launches with this rank's own slices, blocking and submitted.
void shift(World &all, std::uint32_t rank, std::uint32_t nranks) {
  CHECK(all.nranks() == nranks && all.rank() == static_cast<std::int32_t>(rank));
  Executable executable = compile(test::shift(kColumns), all);
  for (int launch = 0; launch < 20; launch++) {
    const std::vector<float> in = test::inputs(rank, 1, kColumns, launch);
    std::vector<float> out(kColumns, -1.0f);
    const Arg args[] = {arg(in, {1, kColumns}), arg(out, {1, kColumns}), 2.0f};
    if (launch % 2 == 0)
      executable.launch(args);
    else
      executable.submit(args).wait();
    CHECK(test::shifted(out, rank, nranks, kColumns, 2, launch));
  }
}

bool transfer(int fd, char *at, std::size_t size, bool sending) {
  while (size > 0) {
    const ssize_t n = sending ? ::write(fd, at, size) : ::read(fd, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

int main() {
  test::deadline();
  processes(3, [](std::uint32_t rank) {
    setenv("PLD_RANK", std::to_string(rank).c_str(), 1);
    setenv("PLD_WORLD_SIZE", "3", 1);
    setenv("PLD_JOB", ("cpp" + std::to_string(getppid())).c_str(), 1);
    World all = World::join();
    shift(all, rank, 3);
  });

  const std::string path = "/tmp/pld-test-cpp-" + std::to_string(getpid());
  processes(2, [&](std::uint32_t rank) {
    WorldOptions options;
    options.nranks = 2;
    options.rank = rank;
    options.bootstrap = "file:" + path;
    World all = World::join(options);
    shift(all, rank, 2);
  });
  unlink(path.c_str());

  // Between two ranks, an all-gather is a swap.
  int sockets[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const auto swap = [&](std::uint32_t rank) {
    return [&, rank](const void *mine, void *all, std::size_t size) {
      const char *from = static_cast<const char *>(mine);
      char *to = static_cast<char *>(all), *other = to + (1 - rank) * size;
      std::copy(from, from + size, to + rank * size);
      const bool first = transfer(sockets[rank], rank == 0 ? to : other, size, rank == 0);
      return first && transfer(sockets[rank], rank == 0 ? other : to + size, size, rank != 0);
    };
  };
  processes(2, [&](std::uint32_t rank) {
    WorldOptions options;
    options.nranks = 2;
    options.rank = rank;
    options.exchange = swap(rank);
    World all = World::join(options);
    shift(all, rank, 2);
  });

  // As two hosts that PLD_HOST names, and over OpenUCX alone.
  if (info().find("ucx: available") == std::string::npos) {
    std::printf("without several hosts: there is no OpenUCX here\n");
  } else {
    for (const Transport transport : {Transport::hosts, Transport::ucx})
      processes(2, [&](std::uint32_t rank) {
        setenv("PLD_HOST", rank == 0 ? "first" : "second", 1);
        WorldOptions options;
        options.transport = transport;
        options.nranks = 2;
        options.rank = rank;
        options.peer_timeout = std::chrono::seconds(10);
        options.exchange = swap(rank);
        World all = World::join(options);
        shift(all, rank, 2);
      });
  }
  WorldOptions wrong;
  wrong.transport = Transport::ucx;
  wrong.nranks = 2;
  CHECK_THROWS(Status::invalid_argument, "pld_world_join", World::create(wrong));
  wrong.bootstrap = "tcp:nowhere";
  CHECK_THROWS(Status::invalid_argument, "HOST:PORT", World::join(wrong));

  // A rank that dies ends the launch of the other, and the world.
  processes(
      2,
      [&](std::uint32_t rank) {
        WorldOptions options;
        options.nranks = 2;
        options.rank = rank;
        options.exchange = swap(rank);
        World all = World::join(options);
        Executable executable = compile(test::shift(kColumns), all);
        if (rank == 1) std::raise(SIGKILL);
        std::vector<float> in(kColumns), out(kColumns);
        CHECK_THROWS(Status::peer_lost, "rank 1",
                     executable.launch(arg(in, {1, kColumns}), arg(out, {1, kColumns}), 2.0f));
        CHECK_STATUS(Status::peer_lost, all.status());
      },
      1);
}
