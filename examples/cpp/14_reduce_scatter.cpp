// Step 14: reduce-scatter. Every rank has a row for each rank, and gets the sum of those that are for it: y[r] =
// x[0][r] + x[1][r] + ... It is the first half of step 9.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/14_reduce_scatter --ranks 3
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program reduce_rows() {
  Program prog("reduce_scatter");
  const Entry reduce = prog.entry("reduce", [&] {
    const Tensor x = prog.in("x", F32, {world_size, kColumns}), y = prog.out("y", F32, {1, kColumns});
    const Tensor data = prog.window("data", F32, {world_size, kColumns});
    prog.at("reduce", [&] {
      const Scalar me = let("me", rank(data));
      put(data, me, x);
      reduce_scatter(data, Combine::sum);
      // Row `me` is the result; the other rows are as they were.
      get(y.at(0, 0), me, data.at(me, 0), {1, kColumns});
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, world_size, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, 1, kColumns});
    const Buffer data = prog.alloc_window("data_buf", F32, {world_size, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(reduce, r, {xs[r], ys[r], data.view()}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  const auto sum_of_row = [](step::Element e) {
    e.row = e.rank;
    return step::sum(e);
  };
  return step::main(argc, argv, "14_reduce_scatter", reduce_rows,
                    {{"x", F32, PLD_WORLD, kColumns}, {"y", F32, 1, kColumns, sum_of_row}});
}
