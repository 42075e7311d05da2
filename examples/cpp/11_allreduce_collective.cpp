// Step 11: the same all-reduce in one line. It is nothing new: with --expand the step prints what the library makes of
// the line, in the puts, gets, notifies and waits of the steps before.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/11_allreduce_collective --print
//   build/cpp/11_allreduce_collective --expand
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program allreduce_collective() {
  Program prog("allreduce_collective");
  const Entry reduce = prog.entry("allreduce", [&] {
    const Tensor x = prog.in("x", F32, {world_size, kColumns}), y = prog.out("y", F32, {world_size, kColumns});
    const Tensor data = prog.window("data", F32, {world_size, kColumns});
    prog.at("reduce", [&] {
      const Scalar me = let("me", rank(data));
      put(data, me, x);
      allreduce(data, Combine::sum);
      get(y, me, data);
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, world_size, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, world_size, kColumns});
    const Buffer data = prog.alloc_window("data_buf", F32, {world_size, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(reduce, r, {xs[r], ys[r], data.view()}); });
  });
  return prog;
}

// What becomes of the program in a world of 2 ranks.
static int expand() {
  return example::main("expand", [] {
    Program program = allreduce_collective();
    program.finish();
    std::printf("%s", program.expand().text().c_str());
  });
}

int main(int argc, char **argv) {
  if (argc == 2 && std::string(argv[1]) == "--expand") return expand();
  return step::main(argc, argv, "11_allreduce_collective", allreduce_collective,
                    {{"x", F32, PLD_WORLD, kColumns}, {"y", F32, PLD_WORLD, kColumns, step::sum}});
}
