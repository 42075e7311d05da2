// The smallest user: an all-reduce between four threads, built, checked, compiled and launched.
#include <pld/pld.hpp>

#include <cstdio>

using namespace pld;

int main() try {
  Program prog("sum");
  const Entry entry = prog.entry("sum", [&] {
    const Tensor x = prog.in("x", F32, {1, 8}), y = prog.out("y", F32, {1, 8}), data = prog.window("data", F32, {1, 8});
    prog.at("reduce", [&] {
      store(load(x, {0, 0}, {1, 8}), data, {0, 0});
      allreduce(data, Combine::sum);
      store(load(data, {0, 0}, {1, 8}), y, {0, 0});
    });
  });
  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, 1, 8}), ys = prog.out("ys", F32, {world_size, 1, 8});
    const Buffer data = prog.alloc_window("data_buf", F32, {1, 8});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(entry, r, {xs[r], ys[r], data.view()}); });
  });
  prog.finish();
  check(prog);

  World four = World::threads(4);
  Executable sum = compile(prog, four);
  std::vector<float> xs(32), ys(32);
  for (int i = 0; i < 32; i++) xs[static_cast<std::size_t>(i)] = static_cast<float>(i * i);
  sum.launch(arg(xs, {4, 1, 8}), arg(ys, {4, 1, 8}));
  for (std::size_t i = 0; i < 32; i++) {
    const float wrong = ys[i] - (xs[i % 8] + xs[i % 8 + 8] + xs[i % 8 + 16] + xs[i % 8 + 24]);
    if (wrong < 0 || wrong > 0) return 1;
  }
  std::printf("libpld %s: the sums are right\n", version_string());
  return 0;
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
