// Step 13: all-gather. Every rank has a row, and all ranks get all rows: y[r] = x[0], x[1], ... It is what step 7 does
// by hand, but here the next call may follow at once.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/13_allgather --ranks 3
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program gather_all() {
  Program prog("allgather");
  const Entry gather = prog.entry("gather", [&] {
    const Tensor x = prog.in("x", F32, {1, kColumns}), y = prog.out("y", F32, {world_size, kColumns});
    const Tensor rows = prog.window("rows", F32, {world_size, kColumns});
    prog.at("gather", [&] {
      allgather(rows, x);
      get(y, rank(rows), rows);
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, 1, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, world_size, kColumns});
    const Buffer rows = prog.alloc_window("rows_buf", F32, {world_size, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(gather, r, {xs[r], ys[r], rows.view()}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  return step::main(argc, argv, "13_allgather", gather_all,
                    {{"x", F32, 1, kColumns}, {"y", F32, PLD_WORLD, kColumns, step::of_all}});
}
