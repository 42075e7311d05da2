// The engine's own functions as tasks: lambdas, std::functions and C functions, with typed views.
#include "test.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>

using namespace pld;

namespace {

// y[i] = x[i] * n + q in two blocks of a slice with gaps, and a count on the host.
Program scaled(const Callback &scale, const Callback &count) {
  Program prog("scaled");
  const Entry e = prog.entry("e", [&] {
    const Tensor x = prog.in("x", I32, {4, 8}), y = prog.inout("y", I32, {4, 8});
    const Scalar n = prog.scalar("n", I64), q = prog.scalar("q", F32), on = prog.scalar("on", BOOL);
    const Task first = prog.at("clear", [&] { for_range("i", 0, 4, [&](Scalar i) { y(i, 0) = 9; }); });
    prog.extern_task("scale", scale,
                     {reads(let("left", slice(x.at(0, 2), {4, 3}))), writes(let("out", slice(y.at(0, 2), {4, 3}))),
                      updates(let("edge", slice(y.at(0, 0), {4, 1}))), n, q, on, 5},
                     2, deps(first));
  });
  prog.host([&] {
    const Tensor xs = prog.in("xs", I32, {world_size, 4, 8}), ys = prog.inout("ys", I32, {world_size, 4, 8});
    const Scalar n = prog.scalar("n", I64), q = prog.scalar("q", F32), on = prog.scalar("on", BOOL);
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(e, r, {xs[r], ys[r], n, q, on}); });
    prog.host_task("count", count, {reads(xs), reads(ys)});
  });
  prog.finish();
  return prog;
}

void scale(const TaskContext &c) {
  const auto x = c.tensor<const std::int32_t>(0);
  const auto y = c.tensor<std::int32_t>(1), edge = c.tensor<std::int32_t>(2);
  CHECK(c.tensors() == 3 && c.values() == 4 && c.blocks() == 2 && std::string(c.name()) == "scale");
  CHECK(x.shape().size() == 2 && x.shape()[0] == 4 && x.shape()[1] == 3 && x.strides()[0] == 8 && x.strides()[1] == 1);
  CHECK(c.integer(0) == 3 && c.real(1) > 0.24 && c.real(1) < 0.26 && c.integer(2) == 1 && c.integer(3) == 5);
  for (std::int64_t row = 2 * c.block(); row < 2 * c.block() + 2; row++) {
    for (std::int64_t i = 0; i < 3; i++) y(row, i) = x(row, i) * static_cast<std::int32_t>(c.integer(0));
    edge(row, 0) += static_cast<std::int32_t>(c.rank());
  }
}

std::vector<std::int32_t> numbers() {
  std::vector<std::int32_t> xs;
  for (int i = 0; i < 96; i++) xs.push_back(i * 7);
  return xs;
}

bool launched(const Program &program, World &threads, const CompileOptions &options = {}) {
  const std::vector<std::int32_t> xs = numbers();
  std::vector<std::int32_t> ys(96, -1);
  compile(program, threads, options).launch(arg(xs, {3, 4, 8}), arg(ys, {3, 4, 8}), 3, 0.25f, true);
  for (std::size_t i = 0; i < 96; i++) {
    const std::size_t column = i % 8;
    const int expected = column == 0 ? 9 + static_cast<int>(i / 32) : column >= 2 && column < 5 ? 3 * xs[i] : -1;
    if (ys[i] != expected) return false;
  }
  return true;
}

std::int32_t in_c(const pld_task_context_t *context, void *user_data) {
  scale(TaskContext(context));
  return ++*static_cast<std::atomic<int> *>(user_data) > 100;
}

}  // namespace

int main() {
  test::deadline();
  World threads = World::threads(3);
  std::atomic<int> calls{0};
  const auto count = [&](const TaskContext &c) {
    CHECK(c.launch() == 1 && c.nranks() == 3 && c.rank() == 0 && c.core() == 0);
    calls += static_cast<int>(c.tensor<const std::int32_t>(0).shape()[0]);
  };

  // A function, a lambda that keeps something, a std::function, one without parameters, and a C function.
  CHECK(launched(scaled(scale, count), threads) && calls == 3);
  const auto kept = std::make_shared<int>(0);
  {
    const Program program =
        scaled([kept](const TaskContext &c) { scale(c); }, std::function<void()>([&] { calls += 10; }));
    CHECK(kept.use_count() == 2);
    CHECK(launched(program, threads) && calls == 13);
    std::vector<std::int32_t> xs = numbers(), ys(96);
    Executable executable = [&] {
      Program copy = scaled([kept](const TaskContext &c) { scale(c); }, [] {});
      return compile(copy, threads);
    }();
    CHECK(kept.use_count() == 3);
    executable.launch(arg(xs, {3, 4, 8}), arg(ys, {3, 4, 8}), 3, 0.25f, true);
  }
  CHECK(kept.use_count() == 1);
  std::atomic<int> in_c_calls{0};
  CHECK(launched(scaled({in_c, &in_c_calls}, count), threads) && in_c_calls == 6);

  // Functions by name, for a program that was text; each form of result.
  const Program parsed = Program::parse(scaled(scale, count).text());
  CHECK_THROWS(Status::invalid_argument, "scale", launched(parsed, threads));
  CompileOptions options;
  options.callbacks = {{"scale", scale}, {"count", [](const TaskContext &) { return 0; }}};
  CHECK(launched(parsed, threads, options));
  CHECK(launched(scaled({}, {}), threads, options));
  options.callbacks[1].function = [] { return Status::ok; };
  CHECK(launched(parsed, threads, options));
  options.callbacks[1].function = [] { return 42; };
  CHECK_THROWS(Status::callback, "42", launched(parsed, threads, options));
  options.callbacks[1].function = []() -> int { throw std::runtime_error("lost"); };
  CHECK_THROWS(Status::callback, "count", launched(parsed, threads, options));

  // A view of another type, or of a tensor that is not there, is an error.
  options.callbacks[1].function = [](const TaskContext &c) { c.tensor<float>(0); };
  CHECK_THROWS(Status::callback, "count", launched(parsed, threads, options));
  options.callbacks[1].function = [&](const TaskContext &c) {
    CHECK_THROWS(Status::invalid_argument, "number 1 is i32, not f32", c.tensor<float>(1));
    CHECK_THROWS(Status::invalid_argument, "'count' is given 2 tensors, and there is no number 2", c.tensor<float>(2));
    CHECK(c.try_tensor<const std::int32_t>(1) && !c.try_tensor<const std::uint32_t>(1));
    CHECK(c.integer(0) == 0 && c.capi()->ntensors == 2);
  };
  CHECK(launched(parsed, threads, options));
}
