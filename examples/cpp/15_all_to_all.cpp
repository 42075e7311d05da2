// Step 15: all-to-all. Every rank has a row for each rank, and gets one from each: y[r][q] = x[q][r]. What was ordered
// by sender is ordered by receiver, which is how tokens get to their experts.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/15_all_to_all --ranks 3
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program exchange_all() {
  Program prog("all_to_all");
  const Entry exchange = prog.entry("exchange", [&] {
    const Tensor x = prog.in("x", F32, {world_size, kColumns}), y = prog.out("y", F32, {world_size, kColumns});
    const Tensor inbox = prog.window("inbox", F32, {world_size, kColumns});
    prog.at("exchange", [&] {
      all_to_all(inbox, x);
      get(y, rank(inbox), inbox);
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, world_size, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, world_size, kColumns});
    const Buffer inbox = prog.alloc_window("inbox_buf", F32, {world_size, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(exchange, r, {xs[r], ys[r], inbox.view()}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  const auto turned = [](step::Element e) {
    return step::input({e.nranks, static_cast<std::uint32_t>(e.row), e.rank, e.column});
  };
  return step::main(argc, argv, "15_all_to_all", exchange_all,
                    {{"x", F32, PLD_WORLD, kColumns}, {"y", F32, PLD_WORLD, kColumns, turned}});
}
