// Worlds: options, the log, abort, and what is refused.
#include "test.hpp"

#include <chrono>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <thread>

using namespace pld;
using namespace std::chrono_literals;

int main() {
  test::deadline();
  static_assert(!std::is_copy_constructible_v<World> && std::is_nothrow_move_constructible_v<World>, "one owner");

  // Messages, also of a world that was moved, and a log that throws is no harm.
  std::mutex mutex;
  std::vector<std::string> messages;
  WorldOptions options;
  options.nranks = 3;
  options.wait = WaitPolicy::yield;
  options.cores_per_rank = 2;
  options.max_runs = 3;
  options.chaos_seed = 5;
  options.log = [&](LogLevel level, const char *message) {
    CHECK(level == LogLevel::info || level == LogLevel::error);
    const std::lock_guard<std::mutex> lock(mutex);
    messages.emplace_back(message);
    throw std::runtime_error("lost");
  };
  World logged = World::create(options);
  CHECK(messages.size() == 1);
  CHECK(logged.nranks() == 3 && logged.rank() == -1);
  World moved = std::move(logged);
  CHECK(!logged && moved.nranks() == 3 && logged.nranks() == 0 && logged.rank() == -1);
  CHECK_STATUS(Status::ok, moved.status());

  // An abort ends everything, with its code, and only this world.
  World other = World::threads(2);
  moved.abort(77);
  CHECK_STATUS(Status::aborted, moved.status());
  CHECK_CONTAINS(last_error(), "77");
  CHECK_STATUS(Status::ok, other.status());
  moved = std::move(other);
  CHECK(moved.nranks() == 2 && messages.size() >= 2);
  CHECK_THROWS(Status::invalid_argument, "NULL", other.abort(1));

  // A wait that cannot be satisfied ends after the time-out.
  options = WorldOptions();
  options.nranks = 2;
  options.timeout = 200ms;
  World hurried = World::create(options);
  const Program never_told = test::program([](const test::Given &g) {
    if_(g.n > 1, [&] { notify(g.sig.at(0), g.me); });
    wait(g.sig.at(0), 1);
  });
  Executable stuck = compile(never_told, hurried);
  std::vector<std::int32_t> xs(16), ys(16);
  std::vector<float> fs(64);
  CHECK_THROWS(Status::timeout, "test_world.cpp",
               stuck.launch(arg(xs, {2, 8}), arg(ys, {2, 8}), arg(fs, {2, 4, 8}), 1, 1.0f, true));

  // A trace of what the ranks did.
  options = WorldOptions();
  options.nranks = 2;
  options.trace = "/tmp/pld-test-cpp-trace-" + std::to_string(getpid());
  {
    World traced = World::create(options);
    const std::vector<float> in = test::inputs(0, 2, 4);
    std::vector<float> out(8);
    compile(test::shift(4), traced).launch(arg(in, {2, 1, 4}), arg(out, {2, 1, 4}), 2.0f);
  }
  std::ifstream trace(options.trace);
  const std::string events{std::istreambuf_iterator<char>(trace), std::istreambuf_iterator<char>()};
  std::remove(options.trace.c_str());
  CHECK_CONTAINS(events, "exchange");

  // What is refused.
  options = WorldOptions();
  options.nranks = 2;
  options.log_level = static_cast<LogLevel>(9);
  CHECK_THROWS(Status::invalid_argument, "9", World::create(options));
  options.log_level = LogLevel::error;
  options.transport = Transport::shm;
  CHECK_THROWS(Status::invalid_argument, "pld_world_join", World::create(options));
  options.transport = Transport::thread;
  CHECK_THROWS(Status::invalid_argument, "pld_world_create", World::join(options));
  options.transport = Transport::automatic;
  options.bootstrap = "carrier pigeon";
  CHECK_THROWS(Status::invalid_argument, "carrier pigeon", World::join(options));
  options.bootstrap.clear();
  options.wait = static_cast<WaitPolicy>(8);
  CHECK_THROWS(Status::invalid_argument, "8", World::create(options));
  options.wait = WaitPolicy::sleep;

  // An exchange that fails, or throws, ends the joining.
  options.exchange = [](const void *, void *, std::size_t) { return false; };
  CHECK_THROWS(Status::io, "exchange", World::join(options));
  options.exchange = [](const void *, void *, std::size_t) -> bool { throw std::runtime_error("lost"); };
  CHECK_THROWS(Status::io, "exchange", World::join(options));
}
