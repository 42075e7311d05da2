// Step 9: the same all-reduce in two phases, which move less: rank r adds up row r of all ranks, and gives the sum to
// all.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/09_allreduce_two_phase --ranks 3
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program allreduce_two_phase() {
  Program prog("allreduce_two_phase");
  const Entry allreduce = prog.entry("allreduce", [&] {
    const Tensor x = prog.in("x", F32, {world_size, kColumns}), y = prog.out("y", F32, {world_size, kColumns});
    const Tensor data = prog.window("data", F32, {world_size, kColumns});
    const Tensor staged = prog.window("staged", I32, {world_size}), reduced = prog.window("reduced", I32, {world_size});
    const Scalar me = prog.scalar("me", I32);

    // Row `me` of all ranks is for this rank to add up.
    prog.at("scatter", [&] {
      put(data, me, x);
      for_range("peer", 0, world_size, [&](Scalar peer) { notify(staged.at(me), peer); });
      Tile sum = let("sum", full(F32, {1, kColumns}, 0.0));
      for_range("src", 0, world_size, [&](Scalar src) {
        wait(staged.at(src), 1);
        sum += remote_load(data, src, {me, 0}, {1, kColumns});
      });

      // Its sum takes the place of row `me` everywhere: nobody but this rank has read that row.
      for_range("peer", 0, world_size, [&](Scalar peer) {
        remote_store(sum, data.at(me, 0), peer);
        notify(reduced.at(me), peer);
      });
    });

    prog.at("gather", [&] {
      for_range("owner", 0, world_size, [&](Scalar owner) { wait(reduced.at(owner), 1); });
      get(y, me, data);
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, world_size, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, world_size, kColumns});
    const Buffer data = prog.alloc_window("data_buf", F32, {world_size, kColumns});
    const Buffer staged = prog.alloc_window("staged_buf", I32, {world_size});
    const Buffer reduced = prog.alloc_window("reduced_buf", I32, {world_size});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(allreduce, r, {xs[r], ys[r], data.view(), staged.view(), reduced.view(), r});
    });
  });
  return prog;
}

int main(int argc, char **argv) {
  return step::main(argc, argv, "09_allreduce_two_phase", allreduce_two_phase,
                    {{"x", F32, PLD_WORLD, kColumns}, {"y", F32, PLD_WORLD, kColumns, step::sum}});
}
