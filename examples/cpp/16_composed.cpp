// Step 16: three collectives in one program: a tensor-parallel layer. Rank 0 has the tokens and gives them to all.
// Each rank multiplies them by its share of the weights - here by the number r + 1 - which gives it a part of every
// row of the result. Each rank adds up one row, adds the token to it (the residual), and all rows come together again:
// y = x[0] * (1 + 2 + ... + world) + x[0], on every rank.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/16_composed --ranks 3
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 8;

static Program composed() {
  Program prog("composed");
  const Entry layer = prog.entry("layer", [&] {
    const Tensor x = prog.in("x", F32, {world_size, kColumns}), y = prog.out("y", F32, {world_size, kColumns});
    const Tensor tokens = prog.window("tokens", F32, {world_size, kColumns});
    const Tensor parts = prog.window("parts", F32, {world_size, kColumns});
    prog.at("layer", [&] {
      const Scalar me = let("me", rank(tokens));
      put(tokens, me, x);
      broadcast(tokens, 0);

      const Scalar weight = let("weight", cast(me + 1, F32));
      store(load(tokens, {0, 0}, {world_size, kColumns}) * weight, parts, {0, 0});
      reduce_scatter(parts, Combine::sum);

      const Tile sum = load(parts, {me, 0}, {1, kColumns});
      const Tile token = load(tokens, {me, 0}, {1, kColumns});
      store(sum + token, parts, {me, 0});
      const Tensor row = let("row", slice(parts.at(me, 0), {1, kColumns}));
      allgather(tokens, row);
      get(y, me, tokens);
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, world_size, kColumns});
    const Tensor ys = prog.out("ys", F32, {world_size, world_size, kColumns});
    const Buffer tokens = prog.alloc_window("tokens_buf", F32, {world_size, kColumns});
    const Buffer parts = prog.alloc_window("parts_buf", F32, {world_size, kColumns});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(layer, r, {xs[r], ys[r], tokens.view(), parts.view()}); });
  });
  return prog;
}

int main(int argc, char **argv) {
  const auto of_layer = [](step::Element e) {
    e.rank = 0;
    return step::input(e) * (e.nranks * (e.nranks + 1) / 2 + 1);
  };
  return step::main(argc, argv, "16_composed", composed,
                    {{"x", F32, PLD_WORLD, kColumns}, {"y", F32, PLD_WORLD, kColumns, of_layer}});
}
