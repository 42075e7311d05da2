// Step 1: one entry, dispatched once a rank. Every rank adds its own number to its part: y[r] = x[r] + r.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/01_hello_rank
#include "step.hpp"

using namespace pld;

constexpr int kRows = 8, kColumns = 8;

static Program hello_rank() {
  Program prog("hello_rank");

  // The entry is what one rank does: it sees an ordinary [8, 8] tensor, and its number.
  const Entry hello = prog.entry("hello", [&] {
    const Tensor x = prog.in("x", F32, {kRows, kColumns}), y = prog.out("y", F32, {kRows, kColumns});
    const Scalar me = prog.scalar("me", I32);
    prog.at("add_rank", [&] { store(load(x, {0, 0}, {kRows, kColumns}) + cast(me, F32), y, {0, 0}); });
  });

  // The host driver has the tensors of all ranks, and dispatches the entry to each rank with its part of them.
  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, kRows, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, kRows, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(hello, r, {xs[r], ys[r], r}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  const auto with_rank = [](step::Element e) { return step::input(e) + e.rank; };
  return step::main(argc, argv, "01_hello_rank", hello_rank,
                    {{"x", F32, kRows, kColumns}, {"y", F32, kRows, kColumns, with_rank}});
}
