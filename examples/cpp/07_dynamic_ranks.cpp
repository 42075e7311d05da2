// Step 7: the number of ranks is the world's, not the program's. Every rank gives its row to all: y[r] = x[0], x[1],
// ... The entry is not told who it is: it asks the window for its number and for the number of ranks.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/07_dynamic_ranks --ranks 4
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program dynamic_ranks() {
  Program prog("dynamic_ranks");
  const Entry give = prog.entry("give", [&] {
    const Tensor x = prog.in("x", F32, {1, kColumns}), y = prog.out("y", F32, {world_size, kColumns});
    const Tensor inbox = prog.window("inbox", F32, {world_size, kColumns}), arrived = prog.window("arrived", I32, {1});
    prog.at("give", [&] {
      const Scalar me = let("me", rank(inbox));
      const Scalar count = let("count", nranks(inbox));
      for_range("peer", 0, count, [&](Scalar peer) {
        put(inbox.at(me, 0), peer, x.at(0, 0), {1, kColumns});
        notify(arrived.at(0), peer);
      });

      // One cell counts all: when it has reached the number of ranks, every row is there.
      wait(arrived.at(0), count);
      get(y, me, inbox);
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, 1, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, world_size, kColumns});
    const Buffer inbox = prog.alloc_window("inbox_buf", F32, {world_size, kColumns});
    const Buffer arrived = prog.alloc_window("arrived_buf", I32, {1});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(give, r, {xs[r], ys[r], inbox.view(), arrived.view()}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  return step::main(argc, argv, "07_dynamic_ranks", dynamic_ranks,
                    {{"x", F32, 1, kColumns}, {"y", F32, PLD_WORLD, kColumns, step::of_all}});
}
