// Step 10: the same all-reduce around a ring, where a rank sends to its next one only. In world - 1 steps partial sums
// travel and grow, until each rank has one row complete; in world - 1 more the complete rows travel.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/10_allreduce_ring --ranks 3
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program allreduce_ring() {
  Program prog("allreduce_ring");
  const Entry allreduce = prog.entry("allreduce", [&] {
    const Tensor x = prog.in("x", F32, {world_size, kColumns}), y = prog.out("y", F32, {world_size, kColumns});
    const Tensor data = prog.window("data", F32, {world_size, kColumns});
    const Tensor inbox = prog.window("inbox", F32, {world_size, kColumns});
    const Tensor arrived = prog.window("arrived", I32, {2});
    const Scalar me = prog.scalar("me", I32);
    prog.at("ring", [&] {
      put(data, me, x);
      const Scalar next = let("next", (me + 1) % world_size);

      // Row me - step goes on, and row me - step - 1 comes: each step has a row of the inbox for itself.
      for_range("step", 0, world_size - 1, [&](Scalar step) {
        const Scalar row = let("row", (me + world_size - step) % world_size);
        put(inbox.at(step, 0), next, data.at(row, 0), {1, kColumns});
        notify(arrived.at(0), next);
        wait(arrived.at(0), step + 1);
        const Scalar grows = let("grows", (row + world_size - 1) % world_size);
        const Tile came = load(inbox, {step, 0}, {1, kColumns});
        const Tile mine = load(data, {grows, 0}, {1, kColumns});
        store(came + mine, data, {grows, 0});
      });

      // Row me + 1 is complete here. Complete rows go straight to their places.
      for_range("step", 0, world_size - 1, [&](Scalar step) {
        const Scalar row = let("row", (me + 1 + world_size - step) % world_size);
        put(data.at(row, 0), next, data.at(row, 0), {1, kColumns});
        notify(arrived.at(1), next);
        wait(arrived.at(1), step + 1);
      });
      get(y, me, data);
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, world_size, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, world_size, kColumns});
    const Buffer data = prog.alloc_window("data_buf", F32, {world_size, kColumns});
    const Buffer inbox = prog.alloc_window("inbox_buf", F32, {world_size, kColumns});
    const Buffer arrived = prog.alloc_window("arrived_buf", I32, {2});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(allreduce, r, {xs[r], ys[r], data.view(), inbox.view(), arrived.view(), r});
    });
  });
  return prog;
}

int main(int argc, char **argv) {
  return step::main(argc, argv, "10_allreduce_ring", allreduce_ring,
                    {{"x", F32, PLD_WORLD, kColumns}, {"y", F32, PLD_WORLD, kColumns, step::sum}});
}
