// The checker: what it finds, with lines of C++, and a schedule to run again.
#include "test.hpp"

#include <chrono>

using namespace pld;
using test::Given;

namespace {

// Every rank tells the next one before it has put, or after.
Program exchange(bool right) {
  return test::program([&](const Given &g) {
    const Scalar next = let("next", (g.me + 1) % world_size);
    if (!right) notify(g.sig.at(0), next);
    put(g.w.at(0, 0), next, g.f.at(1, 0), {1, 8});
    if (right) notify(g.sig.at(0), next);
    wait(g.sig.at(0), 1);
    store(load(g.w, {0, 0}, {1, 8}), g.f, {0, 0});
    g.y(0) = g.x(0);
  });
}

}  // namespace

int main() {
  test::deadline();
  CheckOptions options;
  options.nranks = 3;
  options.explore = Explore::exhaustive;
  options.memory = MemoryModel::host;
  const CheckReport good = check(exchange(true), options);
  CHECK(good.status == Status::ok && good.errors == 0 && good.complete && good.schedules > 0 &&
        good.steps > good.schedules);

  // A race, with its line and a schedule that shows it.
  const Program wrong = exchange(false);
  CheckReport bad = try_check(wrong);
  CHECK(bad.status == Status::check && bad.errors > 0 && bad.findings.size() >= bad.errors);
  const Diagnostic race = bad.findings[0];
  CHECK(race.file == __FILE__ && race.line > 15 && race.line < 25 && !race.schedule.empty());
  CHECK_CONTAINS(race.code, "PLD-C");
  try {
    (void)check(wrong);
    CHECK(false);
  } catch (const Error &error) {
    CHECK(error.status() == Status::check && error.diagnostics().size() == bad.findings.size());
    CHECK_CONTAINS(error.what(), race.text);
  }
  options = CheckOptions();
  options.replay = race.schedule;
  const CheckReport again = try_check(wrong, options);
  CHECK(again.schedules == 1 && again.errors > 0 && again.findings[0].code == race.code);

  // Budgets, seeds, launches, inputs, functions.
  options = CheckOptions();
  options.explore = Explore::random;
  options.schedules = 7;
  options.seed = 11;
  options.fill = Fill::random;
  options.time_limit = std::chrono::minutes(1);
  CHECK(check(exchange(true), options).schedules == 7);
  options.explore = Explore::pct;
  options.memory = MemoryModel::npu;
  options.launches = 2;
  CHECK(check(exchange(true), options).schedules == 7);
  options.persistent = true;
  CHECK(try_check(exchange(true), options).errors > 0);

  constexpr std::uint32_t kLine = __LINE__ + 1;
  const Program sized = test::program([](const Given &g) { g.y(g.x(0)) = 1; });
  std::vector<std::int32_t> xs(16, 7);
  options = CheckOptions();
  options.args = {arg(xs, {2, 8}), Arg(), Arg(), 1, 1.0f, true};
  CHECK(check(sized, options).errors == 0);
  xs[8] = 8;
  const CheckReport outside = try_check(sized, options);
  CHECK(outside.status == Status::check && outside.findings[0].file == __FILE__ && outside.findings[0].line == kLine);
  options.args = {Arg(TensorArg(static_cast<std::int32_t *>(nullptr), {2, 8})), 3};
  CHECK(try_check(sized, options).status == Status::invalid_argument);

  int calls = 0;
  const Program host = Program::parse("program h\nhost (x: tensor[1] i32 inout) { host_task f(x inout) }\n");
  options = CheckOptions();
  options.callbacks = {{"f", [&] { calls++; }}};
  CHECK(check(host, options).errors == 0 && calls > 0);
  Program open("open");
  CHECK_THROWS(Status::invalid_state, "finished", (void)check(open));
}
