// The guide's all-reduce: every rank stages its row in a window, a barrier of signals makes all rows visible, and every
// rank adds up the others'. Shows the verified result and the time of a launch, and with --print the program as text.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/allreduce --print                  two ranks, threads of this process
//   build/cpp/allreduce --ranks 4 --processes    four ranks, a process each
#include "exchange.hpp"

using namespace pld;

constexpr int kSize = 256, kWarmUp = 200;

static Program allreduce_program() {
  Program prog("l3_allreduce");
  const Entry allreduce = prog.entry("allreduce", [&] {
    const Tensor inp = prog.in("inp", F32, {1, kSize}), out = prog.out("out", F32, {1, kSize});
    const Tensor data = prog.window("data", F32, {1, kSize}), signal = prog.window("signal", I32, {world_size, 1});
    const Scalar me = prog.scalar("me", I32);
    prog.at("reduce_step", [&] {
      Tile acc = let("acc", load(inp, {0, 0}, {1, kSize}));
      store(acc, data, {0, 0});
      for_range("peer", 0, world_size, [&](Scalar peer) { if_(peer != me, [&] { notify(signal.at(me, 0), peer); }); });
      for_range("src", 0, world_size, [&](Scalar src) { if_(src != me, [&] { wait(signal.at(src, 0), 1); }); });
      for_range("peer", 0, world_size, [&](Scalar peer) {
        if_(peer != me, [&] { acc += let("recv", remote_load(data, peer, {0, 0}, {1, kSize})); });
      });
      store(acc, out, {0, 0});
    });
  });

  prog.host([&] {
    const Tensor inputs = prog.in("inputs", F32, {world_size, 1, kSize});
    const Tensor outputs = prog.out("outputs", F32, {world_size, 1, kSize});
    const Buffer data = prog.alloc_window("data_buf", F32, {1, kSize});
    const Buffer signal = prog.alloc_window("signal_buf", I32, {world_size, 1});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(allreduce, r, {inputs[r], outputs[r], data.view(), signal.view(), r});
    });
  });
  prog.finish();
  return prog;
}

// Launches in a world, for the ranks that this process drives: all of them, or its own.
static void run(const Program &program, example::Ranks &ranks) {
  Executable executable = compile(program, ranks.world);
  std::vector<float> inputs(ranks.driven * kSize), outputs(ranks.driven * kSize);
  const Arg args[] = {ranks.arg(inputs, 1, kSize), ranks.arg(outputs, 1, kSize)};
  std::vector<double> times;
  for (std::uint32_t launch = 0; launch < kWarmUp + ranks.launches; launch++) {
    // Small whole numbers, so that sums are exact whatever the order.
    const auto input = [&](std::size_t rank, std::size_t i) { return static_cast<float>(100 * rank + i + launch % 7); };
    for (std::size_t i = 0; i < inputs.size(); i++) inputs[i] = input(ranks.first + i / kSize, i % kSize);
    std::fill(outputs.begin(), outputs.end(), -1.0f);
    const double begin = example::microseconds();
    executable.launch(args);
    if (launch >= kWarmUp) times.push_back(example::microseconds() - begin);
    for (std::size_t i = 0; i < outputs.size(); i++) {
      float sum = 0;
      for (std::uint32_t rank = 0; rank < ranks.nranks; rank++) sum += input(rank, i % kSize);
      example::check("sum", ranks.first + static_cast<std::uint32_t>(i / kSize), i % kSize, outputs[i], sum);
    }
  }
  example::show_times(ranks, "all-reduce of 256 floats", times);
}

int main(int argc, char **argv) { return example::exchange(argc, argv, "allreduce", 2000, allreduce_program, run); }
