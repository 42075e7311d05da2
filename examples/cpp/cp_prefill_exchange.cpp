// The exchange of a context-parallel prefill, once a layer: every rank gets the last rows of all segments of the
// sequence. The program of examples/pld/cp_prefill_exchange.pld, whose comments explain the protocol.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/cp_prefill_exchange                               two ranks, forty layers
//   build/cpp/cp_prefill_exchange --ranks 4 --processes         four ranks, a process each
#include "exchange.hpp"

using namespace pld;

constexpr int kSegmentRows = 512, kTailRows = 128, kWidth = 4096;

static Program prefill_program() {
  Program prog("cp_prefill_exchange");
  const Dim SEG_ROWS = prog.constant("SEG_ROWS", kSegmentRows), TAIL_ROWS = prog.constant("TAIL_ROWS", kTailRows);
  const Dim D = prog.constant("D", kWidth);
  const Dim own_rows = 2 * SEG_ROWS, all_tails = 2 * prog.world_size() * TAIL_ROWS;
  TransferOptions chunks;
  chunks.chunk_rows = 16;
  chunks.chunk_cols = 4096;
  chunks.pipeline = true;

  const Entry exchange = prog.entry("exchange", [&] {
    const Tensor hidden = prog.in("hidden", BF16, {own_rows, D}), context = prog.out("context", BF16, {all_tails, D});
    const Tensor tails = prog.window("tails", BF16, {all_tails, D});
    const Tensor ready = prog.window("ready", I32, {world_size, 1});
    const Tensor consumed = prog.window("consumed", I32, {world_size, 1});
    const Scalar me = prog.scalar("me", I32), epoch = prog.scalar("epoch", I32);

    // Every rank owns a segment near the beginning and one near the end, so that all have as much attention to do.
    const auto segment_of = [](Scalar owner, Scalar half) {
      return let("segment", select(half == 0, owner, 2 * world_size - 1 - owner));
    };

    const Task freed = let("freed", prog.at("await_consumed", [&] {
      for_range("peer", 0, world_size, [&](Scalar peer) {
        if_(peer != me, [&] { defer_wait(consumed.at(peer, 0), epoch - 1); });
      });
    }));

    const Task published = let("published", prog.spmd("publish", world_size, deps(freed), [&](Scalar peer) {
      let("peer", peer);
      for_range("half", 0, 2, [&](Scalar half) {
        const Scalar segment = segment_of(me, half);
        put(tails.at(segment * TAIL_ROWS, 0), peer, hidden.at((half + 1) * SEG_ROWS - TAIL_ROWS, 0), {TAIL_ROWS, D},
            chunks);
      });
      if_(peer != me, [&] { notify(ready.at(me, 0), peer); });
    }));

    // Owners are independent of each other: no one waits for a slow one. Their rows in `context` are different ones.
    for_range("owner", 0, world_size, [&](Scalar owner) {
      const Task arrived = let("arrived", prog.at("await_ready", deps(published), [&] {
        if_(owner != me, [&] { defer_wait(ready.at(owner, 0), epoch); });
      }));
      prog.at("consume", deps(arrived).no_dep({context}), [&] {
        for_range("half", 0, 2, [&](Scalar half) {
          const Scalar segment = segment_of(owner, half);
          get(context.at(segment * TAIL_ROWS, 0), me, tails.at(segment * TAIL_ROWS, 0), {TAIL_ROWS, D}, chunks);
        });
        if_(owner != me, [&] { notify(consumed.at(me, 0), owner); });
      });
    });
  });

  prog.host([&] {
    const Tensor hidden = prog.in("hidden", BF16, {world_size, own_rows, D});
    const Tensor context = prog.out("context", BF16, {world_size, all_tails, D});
    const Scalar epoch = prog.scalar("epoch", I32);
    const Buffer tails = prog.alloc_window("tails_buf", BF16, {all_tails, D});
    const Buffer ready = prog.alloc_window("ready_buf", I32, {world_size, 1});
    const Buffer consumed = prog.alloc_window("consumed_buf", I32, {world_size, 1});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(exchange, r, {hidden[r], context[r], tails.view(), ready.view(), consumed.view(), r, epoch});
    });
  });
  prog.finish();
  return prog;
}

// Bits that depend on layer, rank, row and column.
static std::uint16_t element(std::uint32_t epoch, std::uint32_t rank, std::size_t place) {
  return static_cast<std::uint16_t>((rank + 8 * epoch) * 7919u + place * 40503u + (place >> 16));
}

static void run(const Program &program, example::Ranks &ranks) {
  CompileOptions options;
  options.persistent = true;
  Executable executable = compile(program, ranks.world, options);
  const std::size_t given = 2 * kSegmentRows * kWidth, gotten = 2 * ranks.nranks * kTailRows * kWidth;
  std::vector<bfloat16> hidden(ranks.driven * given), context(ranks.driven * gotten);
  const Arg in = ranks.arg(hidden, 2 * kSegmentRows, kWidth);
  const Arg out = ranks.arg(context, 2 * ranks.nranks * kTailRows, kWidth);
  std::vector<double> times;
  for (std::uint32_t epoch = 1; epoch <= ranks.launches; epoch++) {
    for (std::size_t i = 0; i < hidden.size(); i++)
      hidden[i].bits = element(epoch, ranks.first + static_cast<std::uint32_t>(i / given), i % given);
    std::fill(context.begin(), context.end(), bfloat16());
    const double begin = example::microseconds();
    executable.launch(in, out, epoch);
    times.push_back(example::microseconds() - begin);
    for (std::size_t i = 0; i < context.size(); i++) {
      const std::size_t row = i % gotten / kWidth, segment = row / kTailRows, last = 2 * ranks.nranks - 1;
      const std::size_t owner = std::min(segment, last - segment), half = owner == segment ? 0 : 1;
      const std::size_t place = ((half + 1) * kSegmentRows - kTailRows + row % kTailRows) * kWidth + i % kWidth;
      const std::uint16_t expected = element(epoch, static_cast<std::uint32_t>(owner), place);
      if (context[i].bits != expected)
        example::is_wrong("context", ranks.first + static_cast<std::uint32_t>(i / gotten), i % gotten, context[i].bits,
                          expected);
    }
  }
  example::show_times(ranks, "512 rows of 4096 from every rank", times);
}

int main(int argc, char **argv) {
  return example::exchange(argc, argv, "cp_prefill_exchange", 40, prefill_program, run);
}
