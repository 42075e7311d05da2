// Runs: launches that are submitted.
#include "test.hpp"

#include <atomic>
#include <chrono>
#include <thread>

using namespace pld;
using namespace std::chrono_literals;

int main() {
  test::deadline();
  constexpr std::int64_t kColumns = 16;
  World threads = World::threads(2);
  Executable shift = compile(test::shift(kColumns), threads);

  // Many at once, each with its own result.
  std::vector<std::vector<float>> ins, outs(10, std::vector<float>(2 * kColumns));
  for (int i = 0; i < 10; i++) ins.push_back(test::inputs(0, 2, kColumns, i));
  std::vector<Run> runs;
  for (std::size_t i = 0; i < 10; i++) {
    const Arg args[] = {arg(ins[i], {2, 1, kColumns}), arg(outs[i], {2, 1, kColumns}), static_cast<float>(i)};
    runs.push_back(i % 2 == 0 ? shift.submit(args) : shift.submit(args[0], args[1], args[2]));
  }
  for (Run &run : runs) run.wait();
  for (int i = 0; i < 10; i++) {
    CHECK(runs[static_cast<std::size_t>(i)].done());
    CHECK(test::shifted(outs[static_cast<std::size_t>(i)], 0, 2, kColumns, static_cast<float>(i), i));
  }
  CHECK(!shift.try_submit(1, 2, 3) && shift.try_submit().status() == Status::invalid_argument);
  CHECK_THROWS(Status::invalid_argument, "", shift.submit(1, 2, 3));

  // One that is under way: its function waits for us. The executable, and with it the function, may be gone.
  std::atomic<bool> go{false};
  Program prog("slow");
  const Entry e = prog.entry("e", [&] {
    prog.extern_task("slow",
                     [&go](const TaskContext &context) {
                       while (!go) std::this_thread::sleep_for(1ms);
                       return context.rank() == 1 ? Status::io : Status::ok;
                     },
                     {});
  });
  prog.host([&] { ranks("r", 0, world_size, [&](Scalar r) { dispatch(e, r, {}); }); });
  prog.finish();
  {
    Run run = [&] {
      Executable slow = compile(prog, threads);
      prog = Program("another");
      return slow.submit();
    }();
    CHECK(!run.done() && !run.wait_for(1ms) && !run.try_wait_for(-5ms) && !run.try_wait_for(2ms));
    go = true;
    CHECK_THROWS(Status::callback, "slow", run.wait());
    CHECK(run.done() && run.try_wait_for(1h) == Status::callback);
    CHECK_STATUS(Status::callback, run.try_wait());
    Run moved = std::move(run);
    CHECK(!run && moved && moved.done());
  }

  // The next one runs.
  const Arg args[] = {arg(ins[3], {2, 1, kColumns}), arg(outs[3], {2, 1, kColumns}), 7.0f};
  const Run last = shift.submit(args);
  CHECK(last.wait_for(1h) && test::shifted(outs[3], 0, 2, kColumns, 7, 3));
}
