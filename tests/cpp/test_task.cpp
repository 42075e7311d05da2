// Tasks: options, grids, manual parts, and the graph that follows.
#include "test.hpp"

using namespace pld;

namespace {

Program tasks() {
  Program prog("tasks");
  const Entry e = prog.entry("e", [&] {
    const Tensor x = prog.in("x", I32, {8}), y = prog.inout("y", I32, {8}), w = prog.window("w", I32, {8});
    const Tensor z = prog.inout("z", I32, {8});
    prog.manual_dep(w);
    const Task first = let("first", prog.at("one", [&] { y(0) = x(0); }));
    const Task second = let("second", prog.spmd("two", 4, [&](Scalar b) {
      let("b", b);
      y(b) = x(prog.block_index());
    }));
    const Task both = let("both", prog.join("both", {first, second}));
    const Task last =
        let("last", prog.at("three", deps(both).no_dep({y, z}).when(x.at(1), Cmp::ne, -3), [&] { y(1) = 2; }));
    prog.at("four", TaskOptions().allow_early_resolve(), [&] { z(0) = 1; });
    prog.spmd("five", world_size, deps(last, both), [&](Scalar b) {
      let("b", b);
      w(b) = 1;
    });
    prog.manual([&] { prog.at("six", [&] { z(1) = 1; }); });
  });
  prog.host([&] {
    const Tensor xs = prog.in("xs", I32, {world_size, 8}), ys = prog.inout("ys", I32, {world_size, 8});
    const Tensor zs = prog.inout("zs", I32, {world_size, 8});
    const Buffer w = prog.alloc_window("w_buf", I32, {8});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(e, r, {xs[r], ys[r], w.view(I32, {8}), zs[r]}); });
  });
  prog.finish();
  return prog;
}

}  // namespace

int main() {
  test::deadline();
  const Program prog = tasks();
  test::same_text(prog, R"(program tasks
entry e(x: tensor[8] i32 in, y: tensor[8] i32 inout, w: window[8] i32 manual, z: tensor[8] i32 inout) {
  first = at one { y[0] = x[0] }
  second = spmd two [4] as b { y[b] = x[b] }
  both = at both deps [first, second] {}
  last = at three deps [both] no_dep [y, z] predicate x[1] != -3 { y[1] = 2 }
  at four allow_early_resolve { z[0] = 1 }
  spmd five [world] deps [last, both] as b { w[b] = 1 }
  manual {
    at six { z[1] = 1 }
  }
}
host (xs: tensor[world, 8] i32 in, ys: tensor[world, 8] i32 inout, zs: tensor[world, 8] i32 inout) {
  w_buf = alloc_window [8] i32
  ranks r in 0..world {
    w = window w_buf [8] i32
    dispatch e(xs[r], ys[r], w, zs[r]) device r
  }
}
)");

  // `three` waits for `both`, and neither for what it was told to overlook.
  CHECK_CONTAINS(prog.graph(2), "three");
  CHECK_CONTAINS(prog.graph(2, GraphFormat::dot), "digraph");

  // The predicate retires the task on ranks where it does not hold.
  World threads = World::threads(8);
  Executable executable = compile(prog, threads);
  std::vector<std::int32_t> xs(64), ys(64, -1), zs(64);
  for (std::size_t i = 0; i < 64; i++) xs[i] = i % 8 == 1 && i > 32 ? -3 : static_cast<std::int32_t>(i);
  executable.launch(arg(xs, {8, 8}), arg(ys, {8, 8}), arg(zs, {8, 8}));
  for (std::size_t r = 0; r < 8; r++) {
    CHECK(ys[8 * r] == xs[8 * r] && ys[8 * r + 2] == xs[8 * r + 2] && zs[8 * r] == 1 && zs[8 * r + 1] == 1);
    CHECK(ys[8 * r + 1] == (8 * r > 31 ? -3 : 2));
  }
}
