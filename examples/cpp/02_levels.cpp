// Step 2: three levels. The host driver dispatches, the entry orders tasks, tasks compute: y[r] = x[r] * (r + 1).
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/02_levels
#include "step.hpp"

using namespace pld;

constexpr int kRows = 8, kColumns = 8;

static Program levels() {
  Program prog("levels");
  const Entry scale = prog.entry("scale", [&] {
    const Tensor x = prog.in("x", F32, {kRows, kColumns}), y = prog.inout("y", F32, {kRows, kColumns});
    const Scalar factor = prog.scalar("factor", I32);
    prog.at("copy", [&] { store(load(x, {0, 0}, {kRows, kColumns}), y, {0, 0}); });

    // It reads y, so it waits for the task that writes y.
    prog.at("multiply", [&] { store(load(y, {0, 0}, {kRows, kColumns}) * cast(factor, F32), y, {0, 0}); });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, kRows, kColumns});
    const Tensor ys = prog.inout("ys", F32, {world_size, kRows, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(scale, r, {xs[r], ys[r], r + 1}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  const auto scaled = [](step::Element e) { return step::input(e) * (e.rank + 1); };
  return step::main(argc, argv, "02_levels", levels,
                    {{"x", F32, kRows, kColumns}, {"y", F32, kRows, kColumns, scaled}});
}
