// Step 4: signals. Every rank notifies every other one and waits for all of them: a barrier. Afterwards its cells say
// who has arrived: 1 for every other rank, 0 for itself.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/04_barrier
#include "step.hpp"

using namespace pld;

static Program barrier() {
  Program prog("barrier");
  const Entry meet = prog.entry("meet", [&] {
    const Tensor arrived = prog.out("arrived", I32, {world_size, 1});
    const Tensor signal = prog.window("signal", I32, {world_size, 1});
    const Scalar me = prog.scalar("me", I32);
    prog.at("meet", [&] {
      // notify changes a cell of the peer, by convention the one with this rank's number.
      for_range("peer", 0, world_size, [&](Scalar peer) { if_(peer != me, [&] { notify(signal.at(me, 0), peer); }); });
      // wait looks at a cell of this rank.
      for_range("src", 0, world_size, [&](Scalar src) { if_(src != me, [&] { wait(signal.at(src, 0), 1); }); });
      store(load(signal, {0, 0}, {world_size, 1}), arrived, {0, 0});
    });
  });

  prog.host([&] {
    const Tensor arrived = prog.out("arrived", I32, {world_size, world_size, 1});
    const Buffer signal = prog.alloc_window("signal_buf", I32, {world_size, 1});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(meet, r, {arrived[r], signal.view(), r}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  const auto others = [](step::Element e) { return e.row == e.rank ? 0.0 : 1.0; };
  return step::main(argc, argv, "04_barrier", barrier, {{"arrived", I32, PLD_WORLD, 1, others}});
}
