// Step 12: broadcast. One rank, the root, has something for all: y[r] = x[root].
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/12_broadcast --ranks 3
#include "step.hpp"

using namespace pld;

constexpr int kRoot = 0, kColumns = 8;

static Program broadcast() {
  Program prog("broadcast");
  const Entry give = prog.entry("give", [&] {
    const Tensor x = prog.in("x", F32, {1, kColumns}), y = prog.out("y", F32, {1, kColumns});
    const Tensor data = prog.window("data", F32, {1, kColumns});
    prog.at("give", [&] {
      const Scalar me = let("me", rank(data));
      if_(me == kRoot, [&] { put(data, me, x); });
      broadcast(data, kRoot);
      get(y, me, data);
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, 1, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, 1, kColumns});
    const Buffer data = prog.alloc_window("data_buf", F32, {1, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(give, r, {xs[r], ys[r], data.view()}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  const auto of_root = [](step::Element e) {
    e.rank = kRoot;
    return step::input(e);
  };
  return step::main(argc, argv, "12_broadcast", broadcast, {{"x", F32, 1, kColumns}, {"y", F32, 1, kColumns, of_root}});
}
