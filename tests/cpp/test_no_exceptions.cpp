// The whole walk for an engine that is built without exceptions and without RTTI: every `try_` function.
#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "build this with -fno-exceptions -fno-rtti"
#endif
#include <pld/pld.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <unistd.h>

using namespace pld;

namespace {

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (0)

// y[r] = x[r - 1] * 2, by a function of the engine behind a put.
Program shift(bool right) {
  Program prog("shift");
  const Entry e = prog.entry("e", [&] {
    const Tensor x = prog.in("x", I32, {8}), y = prog.out("y", I32, {8}), w = prog.window("w", I32, {8});
    const Tensor s = prog.window("s", I32, {1});
    const Scalar me = prog.scalar("me", I32);
    const Task came = prog.at("come", [&] {
      const Scalar next = let("next", (me + 1) % world_size);
      put(right ? w : x, next, x);
      notify(s.at(0), next);
      wait(s.at(0), 1);
    });
    prog.extern_task(
        "twice",
        [](const TaskContext &c) {
          const Result<View<const std::int32_t>> from = c.try_tensor<const std::int32_t>(0);
          const Result<View<std::int32_t>> to = c.try_tensor<std::int32_t>(1);
          if (!from || !to || c.try_tensor<float>(0)) return Status::invalid_argument;
          for (std::int64_t i = 0; i < 8; i++) (*to)(i) = 2 * (*from)(i);
          return Status::ok;
        },
        {reads(w), writes(y)}, 1, deps(came));
  });
  prog.host([&] {
    const Tensor xs = prog.in("xs", I32, {world_size, 8}), ys = prog.out("ys", I32, {world_size, 8});
    const Buffer w = prog.alloc_window("w_buf", I32, {8}), s = prog.alloc_window("s_buf", I32, {1});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(e, r, {xs[r], ys[r], w.view(I32, {8}), s.view(I32, {1}), r}); });
  });
  return prog;
}

}  // namespace

int main() {
  alarm(120);
  Program wrong = shift(false);
  const Result<std::vector<Diagnostic>> refused = wrong.try_finish();
  CHECK(!refused && refused.status() == Status::verify && refused.error().diagnostics()[0].file == __FILE__);

  Program prog = shift(true);
  CHECK(prog.try_finish());
  const Result<std::string> text = prog.try_text();
  CHECK(text && Program::try_parse(*text) && !Program::try_parse("oops"));
  CHECK(prog.try_graph() && prog.try_expand() && prog.try_params()->size() == 2 && try_info());
  CHECK(try_check(prog).status == Status::ok);

  WorldOptions options;
  CHECK(World::try_create(options).status() == Status::invalid_argument);
  options.transport = Transport::thread;
  CHECK(World::try_join(options).status() == Status::invalid_argument);
  options.nranks = 2;
  Result<World> threads = World::try_create(options);
  CHECK(threads);
  CompileOptions how;
  how.persistent = how.timed = true;
  Result<Executable> executable = try_compile(prog, *threads, how);
  CHECK(executable);

  std::vector<std::int32_t> xs(16), ys(16);
  for (int i = 0; i < 16; i++) xs[static_cast<std::size_t>(i)] = 100 + i * i;
  const Result<Arg> in = try_arg(xs, {2, 8}), out = try_arg(ys, {2, 8});
  CHECK(in && out && !try_arg(xs, {2, 9}));
  const auto right = [&] {
    for (std::size_t i = 0; i < 16; i++)
      if (ys[i] != 2 * xs[(i + 8) % 16]) return false;
    return true;
  };
  CHECK(executable->try_launch(*in, *out) == Status::ok && right());
  CHECK(executable->try_launch(*in) == Status::invalid_argument && !last_error().empty());
  CHECK(executable->try_time(0)->end.count() > 0 && !executable->try_time(2));
  CHECK(executable->try_reset() == Status::ok);

  Result<Resident> shards = Resident::try_create_stacked(*threads, I32, {8});
  CHECK(shards && Resident::try_create(*threads, 1, I32, {8}));
  CHECK(shards->try_copy_in(0, Span<std::int32_t>(xs.data(), 8)) == Status::ok);
  CHECK(shards->try_copy_in(1, Span<std::int32_t>(xs.data() + 8, 8)) == Status::ok);
  ys.assign(16, 0);
  Result<Run> run = executable->try_submit(*shards, *out);
  CHECK(run && run->try_wait() == Status::ok && run->done() && right());
  CHECK(run->try_wait_for(std::chrono::microseconds(1)) == Status::ok);
  CHECK(shards->try_copy_out(1, Span<std::int32_t>(ys.data(), 8)) == Status::ok && ys[7] == xs[15]);
  CHECK(threads->try_abort(3) == Status::ok && threads->status() == Status::aborted);
}
