// MoE dispatch and combine between the ranks of an expert-parallel world, called once a layer: the program of
// examples/pld/moe_dispatch_combine.pld, whose comments explain the protocol, with an expert of the engine's own and a
// reference computed on the host.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/moe_dispatch_combine                              two ranks, twenty layers
//   build/cpp/moe_dispatch_combine --ranks 4 --processes        four ranks, a process each
//   build/cpp/moe_dispatch_combine --launches 600 --cores 2     ten steps of 60 layers, two cores a rank
#include "exchange.hpp"

using namespace pld;

constexpr int kTokens = 128, kTopk = 8, kWidth = 4096, kLocalExperts = 16, kPad = 8, kBlocks = 4;
constexpr int kMaxPerSrc = kTokens;  // rows of the lane that an expert keeps for each source

// What an expert makes of a row: a different thing for each expert.
static void answer(std::int64_t expert, const std::int8_t *x, float scale, float weight, bfloat16 *y) {
  const float factor = scale * (1.0f + 0.125f * static_cast<float>(expert)) * weight;
  for (int d = 0; d < kWidth; d++) y[d] = bfloat16(static_cast<float>(x[d]) * factor);
}

// The engine's kernel, a block an expert: reads the lanes of the expert, writes its answers packed.
static Status expert(const TaskContext &context) {
  const auto x = context.tensor<const std::int8_t>(0);
  const auto scales = context.tensor<const float>(1), weights = context.tensor<const float>(2);
  const auto counts = context.tensor<const std::int32_t>(3), first = context.tensor<const std::int32_t>(4);
  const auto y = context.tensor<bfloat16>(5);
  const std::int64_t e = context.block(), nranks = context.nranks();
  for (std::int64_t src = 0; src < nranks; src++) {
    const std::int64_t lane = (e * nranks + src) * kMaxPerSrc, to = first(e, src), rows = counts(src, e);
    if (rows > kMaxPerSrc || to + rows > y.shape()[0]) return Status::out_of_bounds;
    for (std::int64_t i = 0; i < rows; i++)
      answer(context.rank() * kLocalExperts + e, &x(lane + i, 0), scales(lane + i, 0), weights(lane + i, 0),
             &y(to + i, 0));
  }
  return Status::ok;
}

// A window of the entry, and the buffer behind it.
struct Window {
  const char *name;
  DType dtype;
  Shape shape;
};

static Program moe_program() {
  Program prog("moe_dispatch_combine");
  const Dim T = prog.constant("T", kTokens), TOPK = prog.constant("TOPK", kTopk), D = prog.constant("D", kWidth);
  const Dim N_LOCAL = prog.constant("N_LOCAL", kLocalExperts);
  const Dim MAX_PER_SRC = prog.constant("MAX_PER_SRC", kMaxPerSrc);
  const Dim PAD = prog.constant("PAD", kPad), BLOCKS = prog.constant("BLOCKS", kBlocks);
  const Dim lanes = N_LOCAL * world_size * MAX_PER_SRC, routes = T * TOPK;
  const std::vector<Window> windows = {
      {"sent", I32, {world_size, N_LOCAL}},
      {"slots", I32, {T, TOPK}},
      {"counts", I32, {world_size, N_LOCAL}},
      {"counted", I32, {world_size, 1}},
      {"recv_x", I8, {lanes, D}},
      {"recv_scale", F32, {lanes, PAD}},
      {"recv_weight", F32, {lanes, PAD}},
      {"recv_route", I32, {lanes, PAD}},
      {"arrived", I32, {world_size, 1}},
      {"first", I32, {N_LOCAL, world_size}},
      {"y", BF16, {world_size * T * TOPK, D}},
      {"routed_y", BF16, {routes, D}},
      {"returned", I32, {world_size, 1}},
  };

  const Entry moe = prog.entry("moe", [&] {
    const Tensor x = prog.in("x", I8, {T, D}), scales = prog.in("scales", F32, {T, 1});
    const Tensor indices = prog.in("indices", I32, {T, TOPK}), weights = prog.in("weights", F32, {T, TOPK});
    const Tensor tokens = prog.in("tokens", I32, {1}), out = prog.out("out", F32, {T, D});
    std::vector<Tensor> w;
    for (const Window &window : windows) w.push_back(prog.window(window.name, window.dtype, window.shape));
    const Tensor sent = w[0], slots = w[1], counts = w[2], counted = w[3], recv_x = w[4], recv_scale = w[5],
                 recv_weight = w[6], recv_route = w[7], arrived = w[8], first = w[9], y = w[10], routed_y = w[11],
                 returned = w[12];
    const Scalar me = prog.scalar("me", I32), epoch = prog.scalar("epoch", I32);

    const auto others = [&](const char *name, auto body) {
      for_range(name, 0, world_size, [&](Scalar other) { if_(other != me, [&] { body(other); }); });
    };

    // Which row of its lane each route takes, and how many rows each lane gets.
    const Task routed = let("routed", prog.at("route", [&] {
      const Array rows = array("rows", I32, world_size * N_LOCAL);
      for_range("t", 0, clamp(tokens(0), 0, T), [&](Scalar t) {
        for_range("k", 0, TOPK, [&](Scalar k) {
          const Scalar eid = let("eid", indices(t, k));
          slots(t, k) = rows[eid];
          rows[eid] += 1;
        });
      });
      for_range("dst", 0, world_size, [&](Scalar dst) {
        for_range("e", 0, N_LOCAL, [&](Scalar e) { sent(dst, e) = rows[dst * N_LOCAL + e]; });
        put(counts.at(me, 0), dst, sent.at(dst, 0), {1, N_LOCAL});
        if_(dst != me, [&] { notify(counted.at(me, 0), dst); });
      });
    }));

    const Task pushed = let("pushed", prog.spmd("push", BLOCKS, [&](Scalar b) {
      let("b", b);
      for_range("t", b, clamp(tokens(0), 0, T), BLOCKS, [&](Scalar t) {
        for_range("k", 0, TOPK, [&](Scalar k) {
          const Scalar eid = let("eid", indices(t, k)), dst = let("dst", eid / N_LOCAL);
          const Scalar lane = let("lane", (eid % N_LOCAL * world_size + me) * MAX_PER_SRC);
          const Scalar slot = let("slot", slots(t, k));
          const Tensor lane_x = let("lane_x", slice(recv_x.at(lane, 0), {MAX_PER_SRC, D}));
          put(lane_x.at(slot, 0), dst, x.at(t, 0), {1, D});
          const Scalar row = let("row", lane + slot);
          remote_store(let("scale", full(F32, {1, PAD}, scales(t, 0))), recv_scale.at(row, 0), dst);
          remote_store(let("weight", full(F32, {1, PAD}, weights(t, k))), recv_weight.at(row, 0), dst);
          remote_store(let("route", full(I32, {1, PAD}, t * TOPK + k)), recv_route.at(row, 0), dst);
        });
      });
      others("dst", [&](Scalar dst) { notify(arrived.at(me, 0), dst); });
    }));

    // Where the answers to each lane begin in y: expert by expert, packed. Needs the counts only.
    const Task placed = let("placed", prog.at("place", deps(routed), [&] {
      others("src", [&](Scalar src) { wait(counted.at(src, 0), epoch); });
      Var total = var("total", I32, 0);
      for_range("e", 0, N_LOCAL, [&](Scalar e) {
        for_range("src", 0, world_size, [&](Scalar src) {
          first(e, src) = total;
          total += counts(src, e);
        });
      });
    }));

    const Task received = let("received", prog.at("receive", deps(pushed), [&] {
      others("src", [&](Scalar src) { defer_wait(arrived.at(src, 0), epoch * BLOCKS); });
    }));

    const Task answers = let("answers", prog.extern_task("expert", expert,
                                                         {reads(recv_x), reads(recv_scale), reads(recv_weight),
                                                          reads(counts), reads(first), writes(y)},
                                                         N_LOCAL, deps(placed, received)));

    // Every row goes back to where it came from.
    const Task answered = let("answered", prog.spmd("answer", N_LOCAL, deps(answers), [&](Scalar e) {
      let("e", e);
      for_range("src", 0, world_size, [&](Scalar src) {
        const Scalar lane = let("lane", (e * world_size + src) * MAX_PER_SRC);
        for_range("i", 0, counts(src, e), [&](Scalar i) {
          put(routed_y.at(recv_route(lane + i, 0), 0), src, y.at(first(e, src) + i, 0), {1, D});
        });
      });
      others("src", [&](Scalar src) { notify(returned.at(me, 0), src); });
    }));

    const Task gathered = let("gathered", prog.at("gather", deps(answered), [&] {
      others("src", [&](Scalar src) { defer_wait(returned.at(src, 0), epoch * N_LOCAL); });
    }));

    // The sum of the answers to each token.
    prog.spmd("combine", BLOCKS, deps(gathered), [&](Scalar b) {
      let("b", b);
      for_range("t", b, clamp(tokens(0), 0, T), BLOCKS, [&](Scalar t) {
        Tile sum = let("sum", full(F32, {1, D}, 0.0f));
        for_range("k", 0, TOPK, [&](Scalar k) {
          const Tile answer = let("answer", load(routed_y.at(t * TOPK + k, 0), {1, D}));
          sum += let("wide", cast(answer, F32));
        });
        store(sum, out.at(t, 0));
      });
    });
  });

  prog.host([&] {
    const Tensor x = prog.in("x", I8, {world_size, T, D}), scales = prog.in("scales", F32, {world_size, T, 1});
    const Tensor indices = prog.in("indices", I32, {world_size, T, TOPK});
    const Tensor weights = prog.in("weights", F32, {world_size, T, TOPK});
    const Tensor tokens = prog.in("tokens", I32, {world_size, 1}), out = prog.out("out", F32, {world_size, T, D});
    const Scalar epoch = prog.scalar("epoch", I32);
    std::vector<Buffer> buffers;
    for (const Window &w : windows)
      buffers.push_back(prog.alloc_window(w.name + std::string("_buf"), w.dtype, w.shape));
    ranks("r", 0, world_size, [&](Scalar r) {
      std::vector<Argument> given = {x[r], scales[r], indices[r], weights[r], tokens[r], out[r]};
      for (const Buffer &buffer : buffers) given.push_back(buffer.view());
      given.push_back(r);
      given.push_back(epoch);
      dispatch(moe, r, given);
    });
  });
  prog.finish();
  return prog;
}

// Kinds of routing.
enum Routing { kSpread, kCold, kHot, kHotter, kOwn, kRoutings };

static const char *const kRoutingNames[] = {"experts at random", "ranks without tokens", "one expert in every token",
                                            "one expert and nobody else", "own experts only"};

// What the ranks of this process have in a layer, behind each other.
struct Layer {
  std::vector<std::int8_t> x;         // [kTokens, kWidth]
  std::vector<float> scales;          // [kTokens, 1]
  std::vector<std::int32_t> indices;  // [kTokens, kTopk]
  std::vector<float> weights;         // [kTokens, kTopk]
  std::vector<std::int32_t> tokens;   // [1]
  std::vector<float> out;             // [kTokens, kWidth]

  explicit Layer(std::size_t parts)
      : x(parts * kTokens * kWidth), scales(parts * kTokens), indices(parts * kTokens * kTopk),
        weights(parts * kTokens * kTopk), tokens(parts), out(parts * kTokens * kWidth) {}
};

// A whole number below `end`, as if random.
static std::int32_t draw(std::uint32_t rank, std::size_t place, std::int32_t end) {
  return static_cast<std::int32_t>((example::value(rank, place) + 1.0f) * 0.5f * static_cast<float>(end)) % end;
}

// The experts of a token: different ones, and among them `hot` unless it is negative.
static void choose(std::uint32_t rank, std::size_t place, std::int32_t first, std::int32_t experts, std::int32_t hot,
                   std::int32_t *chosen) {
  for (int k = 0; k < kTopk; k++) {
    chosen[k] = k == 0 && hot >= 0 ? hot : first + draw(rank, place++, experts);
    while (std::find(chosen, chosen + k, chosen[k]) != chosen + k) chosen[k] = first + draw(rank, place++, experts);
  }
}

// The inputs of a rank, which is number `part` of this process.
static void fill(Layer &layer, std::size_t part, Routing routing, std::uint32_t epoch, std::uint32_t rank,
                 std::uint32_t nranks) {
  const auto experts = static_cast<std::int32_t>(nranks * kLocalExperts);
  const std::int32_t hot = draw(nranks, epoch, experts);
  const std::uint32_t seed = rank + nranks * epoch;
  layer.tokens[part] = routing == kHotter ? kMaxPerSrc / kTopk : kTokens;
  if (routing == kCold && (rank + epoch) % 2 == 0) layer.tokens[part] = 0;
  for (std::size_t t = 0; t < kTokens; t++) {
    std::int32_t *chosen = &layer.indices[(part * kTokens + t) * kTopk];
    if (routing == kOwn)
      choose(seed, t * 4096, static_cast<std::int32_t>(rank) * kLocalExperts, kLocalExperts, -1, chosen);
    else
      choose(seed, t * 4096, 0, experts, routing == kHot ? hot : -1, chosen);
    if (routing == kHotter) std::fill(chosen, chosen + kTopk, hot);
    for (std::size_t k = 0; k < kTopk; k++)
      layer.weights[(part * kTokens + t) * kTopk + k] = example::value(seed, 1000003 + t * kTopk + k);

    // A row of activations as int8, with the scale that makes them activations again.
    const auto activation = [&](std::size_t d) { return example::value(seed, 2000003 + t * kWidth + d); };
    float largest = 0;
    for (std::size_t d = 0; d < kWidth; d++) largest = std::max(largest, std::fabs(activation(d)));
    layer.scales[part * kTokens + t] = largest / 127;
    for (std::size_t d = 0; d < kWidth; d++)
      layer.x[(part * kTokens + t) * kWidth + d] =
          static_cast<std::int8_t>(std::floor(activation(d) / (largest / 127) + 0.5f));
  }
}

// Compares with what the rank computes from its own tokens, as if it had all the experts. The same operations in the
// same order, so the same bits.
static void check(const Layer &layer, std::size_t part, std::uint32_t rank) {
  std::vector<bfloat16> y(kWidth);
  for (std::size_t t = 0; t < kTokens; t++) {
    const bool is_token = static_cast<std::int32_t>(t) < layer.tokens[part];
    const std::size_t row = part * kTokens + t;
    std::vector<float> sum(kWidth, is_token ? 0.0f : -1.0f);
    for (std::size_t route = row * kTopk; is_token && route < (row + 1) * kTopk; route++) {
      answer(layer.indices[route], &layer.x[row * kWidth], layer.scales[row], layer.weights[route], y.data());
      for (std::size_t d = 0; d < kWidth; d++) sum[d] += static_cast<float>(y[d]);
    }
    for (std::size_t d = 0; d < kWidth; d++) {
      const float got = layer.out[row * kWidth + d];
      if (sum[d] < got || sum[d] > got) example::is_wrong("out", rank, t * kWidth + d, got, sum[d]);
    }
  }
}

static void run(const Program &program, example::Ranks &ranks) {
  CompileOptions options;
  options.persistent = true;
  Executable executable = compile(program, ranks.world, options);
  Layer layer(ranks.driven);
  const Arg x = ranks.arg(layer.x, kTokens, kWidth), scales = ranks.arg(layer.scales, kTokens, 1);
  const Arg indices = ranks.arg(layer.indices, kTokens, kTopk), weights = ranks.arg(layer.weights, kTokens, kTopk);
  const Arg tokens = ranks.processes() ? arg(layer.tokens, {1}) : arg(layer.tokens, {ranks.nranks, 1});
  const Arg out = ranks.arg(layer.out, kTokens, kWidth);
  std::vector<double> times;
  std::uint32_t epoch = 0;
  for (int routing = kSpread; routing < kRoutings; routing++) {
    const std::uint32_t layers = routing == kSpread ? ranks.launches : 3;
    for (std::uint32_t i = 0; i < layers; i++) {
      epoch++;
      std::fill(layer.out.begin(), layer.out.end(), -1.0f);
      for (std::uint32_t part = 0; part < ranks.driven; part++)
        fill(layer, part, static_cast<Routing>(routing), epoch, ranks.first + part, ranks.nranks);
      const double begin = example::microseconds();
      executable.launch(x, scales, indices, weights, tokens, out, epoch);
      if (routing == kSpread) times.push_back(example::microseconds() - begin);
      for (std::uint32_t part = 0; part < ranks.driven; part++) check(layer, part, ranks.first + part);
    }
    if (ranks.first == 0) std::printf("%s: %u layers checked\n", kRoutingNames[routing], layers);
  }
  example::show_times(ranks, "a layer of 128 tokens to 8 experts each, rows of 4096", times);
}

int main(int argc, char **argv) { return example::exchange(argc, argv, "moe_dispatch_combine", 20, moe_program, run); }
