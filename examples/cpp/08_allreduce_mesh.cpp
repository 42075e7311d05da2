// Step 8: an all-reduce, the shortest way. Every rank stages what it has, tells all others, waits for all of them, and
// adds up what all have staged: y = x[0] + x[1] + ..., on every rank.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/08_allreduce_mesh --ranks 3
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program allreduce_mesh() {
  Program prog("allreduce_mesh");
  const Entry allreduce = prog.entry("allreduce", [&] {
    const Tensor x = prog.in("x", F32, {world_size, kColumns}), y = prog.out("y", F32, {world_size, kColumns});
    const Tensor data = prog.window("data", F32, {world_size, kColumns});
    const Tensor staged = prog.window("staged", I32, {world_size});
    const Scalar me = prog.scalar("me", I32);
    prog.at("reduce", [&] {
      put(data, me, x);
      for_range("peer", 0, world_size, [&](Scalar peer) { notify(staged.at(me), peer); });

      Tile sum = let("sum", full(F32, {world_size, kColumns}, 0.0));
      for_range("src", 0, world_size, [&](Scalar src) {
        wait(staged.at(src), 1);
        sum += remote_load(data, src, {0, 0}, {world_size, kColumns});
      });
      store(sum, y, {0, 0});
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, world_size, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, world_size, kColumns});
    const Buffer data = prog.alloc_window("data_buf", F32, {world_size, kColumns});
    const Buffer staged = prog.alloc_window("staged_buf", I32, {world_size});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(allreduce, r, {xs[r], ys[r], data.view(), staged.view(), r}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  return step::main(argc, argv, "08_allreduce_mesh", allreduce_mesh,
                    {{"x", F32, PLD_WORLD, kColumns}, {"y", F32, PLD_WORLD, kColumns, step::sum}});
}
