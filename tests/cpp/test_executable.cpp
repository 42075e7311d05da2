// Executables: launches in every form, persistent windows, pools, times, and what ends a launch.
#include "test.hpp"

#include <algorithm>

using namespace pld;

int main() {
  test::deadline();
  constexpr std::int64_t kColumns = 16;
  World threads = World::threads(3);
  std::vector<float> in(3 * kColumns), out(3 * kColumns);
  const auto run = [&](Executable &executable, int launch) {
    in = test::inputs(0, 3, kColumns, launch);
    std::fill(out.begin(), out.end(), -1.0f);
    return executable.try_launch(arg(in, {3, 1, kColumns}), arg(out, {3, 1, kColumns}), 2.0f);
  };

  // A list that is made once, as the launch path wants it; arguments one by one; the program may be gone.
  Executable shift = compile(test::shift(kColumns), threads);
  const Arg args[] = {arg(in, {3, 1, kColumns}), arg(out, {3, 1, kColumns}), 2.0f};
  const std::vector<Arg> same(args, args + 3);
  for (int launch = 0; launch < 20; launch++) {
    const std::vector<float> values = test::inputs(0, 3, kColumns, launch);
    std::copy(values.begin(), values.end(), in.begin());
    switch (launch % 4) {
      case 0: shift.launch(args); break;
      case 1: shift.launch(same); break;
      case 2: shift.launch(args[0], args[1], 2.0f); break;
      default: CHECK_STATUS(Status::ok, shift.try_launch(args));
    }
    CHECK(test::shifted(out, 0, 3, kColumns, 2, launch));
    std::fill(out.begin(), out.end(), -1.0f);
  }

  // Persistent windows keep their contents until a reset; others cannot be reset.
  CompileOptions options;
  options.persistent = true;
  options.timed = true;
  Executable kept = compile(test::shift(kColumns, true), threads, options);
  const LaunchTime before = kept.time(1);
  CHECK(before.begin.count() == 0 && before.end.count() == 0);
  CHECK_STATUS(Status::ok, run(kept, 1));
  CHECK(test::shifted(out, 0, 3, kColumns, 2, 1));
  const LaunchTime first = kept.time(1);
  CHECK(first.begin.count() > 0 && first.end >= first.begin);
  kept.reset();
  CHECK_STATUS(Status::ok, run(kept, 2));
  CHECK(test::shifted(out, 0, 3, kColumns, 2, 2) && kept.time(1).begin >= first.end);
  // No stream of a card: there are none.
  CHECK_THROWS(Status::unsupported, "no cards", kept.launch_on(nullptr, args));
  CHECK_STATUS(Status::unsupported, kept.try_launch_on(nullptr, args[0], args[1], 2.0f));
  CHECK_THROWS(Status::invalid_state, "persistent", shift.reset());
  CHECK_THROWS(Status::invalid_state, "times", shift.time(0));
  CHECK_THROWS(Status::invalid_argument, "3", kept.time(3));

  // Two programs that share windows by name, in a pool of so many bytes.
  options = CompileOptions();
  options.persistent = true;
  options.pool = "shared";
  options.pool_bytes = 4096;
  Executable a = compile(test::shift(kColumns, true), threads, options),
             b = compile(test::shift(kColumns, true), threads, options);
  CHECK_STATUS(Status::ok, run(a, 3));
  CHECK_STATUS(Status::ok, run(b, 4));
  CHECK(test::shifted(out, 0, 3, kColumns, 2, 4));
  CHECK_THROWS(Status::mismatch, "data_buf", compile(test::shift(2 * kColumns, true), threads, options));

  // What ends a launch, with the line of the statement; the world goes on.
  const auto launch = [&](const Program &program, std::int64_t n, const CompileOptions &how = {}) {
    std::vector<std::int32_t> xs(24), ys(24);
    std::vector<float> fs(96);
    compile(program, threads, how).launch(arg(xs, {3, 8}), arg(ys, {3, 8}), arg(fs, {3, 4, 8}), n, 1.0f, true);
  };
  const Program outside = test::program([](const test::Given &g) { g.y(g.n) = 1; });
  launch(outside, 7);
  CHECK_THROWS(Status::out_of_bounds, "test_executable.cpp:" + std::to_string(__LINE__ - 2), launch(outside, 8));
  const Program divided = test::program([](const test::Given &g) { g.y(0) = cast(100 / g.n, I32); });
  CHECK_THROWS(Status::arithmetic, "test_executable.cpp:" + std::to_string(__LINE__ - 1), launch(divided, 0));
  options = CompileOptions();
  options.unchecked = true;
  launch(divided, 5, options);
  const Program required = test::program([](const test::Given &g) { require(g.n, Cmp::eq, 5); });
  CHECK_THROWS(Status::out_of_bounds, "test_executable.cpp:" + std::to_string(__LINE__ - 1), launch(required, 4));

  // What cannot be compiled.
  Program open("open");
  CHECK_THROWS(Status::invalid_state, "finished", compile(open, threads));
  options.callbacks = {{"nobody", [] {}}};
  CHECK_THROWS(Status::invalid_argument, "nobody", compile(outside, threads, options));
  CHECK(try_compile(open, threads).status() == Status::invalid_state);

  // Moved, given away, and used up.
  Executable moved = std::move(shift);
  CHECK(!shift && moved);
  CHECK_STATUS(Status::invalid_argument, run(shift, 5));
  Executable adopted(moved.release());
  CHECK(!moved);
  CHECK_STATUS(Status::ok, run(adopted, 6));
  threads.abort(5);
  CHECK_STATUS(Status::aborted, run(adopted, 7));
}
