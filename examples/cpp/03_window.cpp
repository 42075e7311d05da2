// Step 3: a window. To its own rank it is a tensor like any other: x goes in, and comes out as y.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/03_window
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 64;

static Program window_round_trip() {
  Program prog("window_round_trip");
  const Entry round_trip = prog.entry("round_trip", [&] {
    const Tensor x = prog.in("x", F32, {1, kColumns}), y = prog.out("y", F32, {1, kColumns});
    const Tensor data = prog.window("data", F32, {1, kColumns});
    prog.at("there", [&] { store(load(x, {0, 0}, {1, kColumns}), data, {0, 0}); });
    prog.at("back", [&] { store(load(data, {0, 0}, {1, kColumns}), y, {0, 0}); });
  });

  // The host driver reserves the same memory on every rank, and passes a view of it.
  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, 1, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, 1, kColumns});
    const Buffer data = prog.alloc_window("data_buf", F32, {1, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(round_trip, r, {xs[r], ys[r], data.view()}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  return step::main(argc, argv, "03_window", window_round_trip,
                    {{"x", F32, 1, kColumns}, {"y", F32, 1, kColumns, step::input}});
}
