// Collectives, in a task and in the host driver; and what they leave.
#include "test.hpp"

using namespace pld;

namespace {

Program every_collective() {
  Program prog("collectives");
  CollectiveOptions ring, cores, channel;
  ring.mode = CollectiveMode::ring;
  cores.cores = 2;
  const Entry e = prog.entry("e", [&] {
    const Tensor x = prog.in("x", F32, {world_size, 8}), counts = prog.in("counts", I32, {world_size});
    const Tensor begin = prog.in("begin", I64, {world_size});
    const Tensor a = prog.window("a", F32, {world_size, 8}), b = prog.window("b", F32, {world_size, 8});
    const Tensor got = prog.window("got", I32, {world_size}), to = prog.in("to", I64, {world_size});
    const Tensor sig = prog.window("sig", I32, {1});
    const Scalar me = prog.scalar("me", I32);
    prog.at("t", [&] {
      channel.signal = sig;
      barrier();
      barrier(a);
      barrier({}, channel);
      allreduce(a, Combine::sum, ring);
      allreduce(a, Combine::max, channel);
      reduce_scatter(a, Combine::min);
      broadcast(a, world_size - 1);
      allgather(b, let("row", slice(a.at(me, 0), {1, 8})));
      all_to_all(b, x);
      all_to_all_v({a, got}, {x, counts});
      all_to_all_v({a, got, to}, {x, counts, begin});
    });
  });
  prog.host([&] {
    const Tensor x = prog.in("x", F32, {world_size, world_size, 8}),
                 counts = prog.in("counts", I32, {world_size, world_size});
    const Tensor begin = prog.in("begin", I64, {world_size, world_size}),
                 to = prog.in("to", I64, {world_size, world_size});
    const Buffer a_buf = prog.alloc_window("a_buf", F32, {world_size, 8}),
                 b_buf = prog.alloc_window("b_buf", F32, {world_size, 8});
    const Buffer got_buf = prog.alloc_window("got_buf", I32, {world_size}),
                 sig_buf = prog.alloc_window("sig_buf", I32, {1});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(e, r,
               {x[r], counts[r], begin[r], a_buf.view(F32, {world_size, 8}), b_buf.view(F32, {world_size, 8}),
                got_buf.view(I32, {world_size}), to[r], sig_buf.view(I32, {1}), r});
    });
    const Tensor data = let("data", a_buf.view(F32, {world_size, 8}));
    allreduce(data, Combine::prod, cores);
    barrier(data);
  });
  prog.finish();
  return prog;
}

}  // namespace

int main() {
  test::deadline();
  test::same_text(every_collective(), R"(program collectives
entry e(x: tensor[world, 8] f32 in, counts: tensor[world] i32 in, begin: tensor[world] i64 in, a: window[world, 8] f32,
        b: window[world, 8] f32, got: window[world] i32, to: tensor[world] i64 in, sig: window[1] i32, me: i32) {
  at t {
    barrier
    barrier of a
    barrier signal sig
    allreduce sum a mode ring
    allreduce max a signal sig
    reduce_scatter min a
    broadcast a root world - 1
    row = slice a[me, 0] [1, 8]
    allgather b <- row
    all_to_all b <- x
    all_to_all_v a, got <- x, counts
    all_to_all_v a, got, to <- x, counts, begin
  }
}
host (x: tensor[world, world, 8] f32 in, counts: tensor[world, world] i32 in, begin: tensor[world, world] i64 in,
      to: tensor[world, world] i64 in) {
  a_buf = alloc_window [world, 8] f32
  b_buf = alloc_window [world, 8] f32
  got_buf = alloc_window [world] i32
  sig_buf = alloc_window [1] i32
  ranks r in 0..world {
    a = window a_buf [world, 8] f32
    b = window b_buf [world, 8] f32
    got = window got_buf [world] i32
    sig = window sig_buf [1] i32
    dispatch e(x[r], counts[r], begin[r], a, b, got, to[r], sig, r) device r
  }
  data = window a_buf [world, 8] f32
  allreduce prod data cores 2
  barrier of data
}
)");

  // The host driver alone: an all-reduce whose result depends on rank and place.
  Program prog("sums");
  const auto moving = [&](const char *name, bool in) {
    return prog.entry(name, [&] {
      const Tensor x = in ? prog.in("x", I32, {8}) : prog.out("x", I32, {8}), w = prog.window("w", I32, {8});
      prog.at("move", [&] {
        if (in)
          put(w, rank(w), x);
        else
          get(x, rank(w), w);
      });
    });
  };
  const Entry give = moving("give", true), take = moving("take", false);
  prog.host([&] {
    const Tensor xs = prog.in("xs", I32, {world_size, 8}), ys = prog.out("ys", I32, {world_size, 8});
    const Buffer buffer = prog.alloc_window("w_buf", I32, {8});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(give, r, {xs[r], buffer.view(I32, {8})}); });
    allreduce(let("all", buffer.view(I32, {8})), Combine::sum);
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(take, r, {ys[r], buffer.view(I32, {8})}); });
  });
  prog.finish();
  World threads = World::threads(3);
  std::vector<std::int32_t> xs, ys(24);
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < 8; i++) xs.push_back(100 * r + i);
  compile(prog, threads).launch(arg(xs, {3, 8}), arg(ys, {3, 8}));
  for (int i = 0; i < 24; i++) CHECK(ys[static_cast<std::size_t>(i)] == 300 + 3 * (i % 8));
}
