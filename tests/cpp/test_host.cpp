// The host driver: windows of a shape or of bytes, domains, and dispatches.
#include "test.hpp"

using namespace pld;

namespace {

Program pairs() {
  Program prog("pairs");
  const Dim n = prog.dim("n"), D = prog.constant("D", 4);
  const Entry e = prog.entry("e", [&] {
    const Tensor x = prog.in("x", I32, {n, D}), w = prog.window("w", I32, {2, D}), s = prog.window("s", I32, {1});
    const Tensor y = prog.out("y", I32, {D});
    prog.at("t", [&] {
      const Scalar other = let("other", 1 - rank(w));
      put(w.at(0, 0), other, x.at(n - 1, 0), {1, D});
      notify(s.at(0), other);
      wait(s.at(0), 1);
      for_range("i", 0, D, [&](Scalar i) { y(i) = w(0, i) + 1000 * other; });
    });
  });
  const Entry alone = prog.entry("alone", [&] {
    const Tensor w = prog.window("w", I32, {3}), y = prog.inout("y", I32, {D});
    const Scalar q = prog.scalar("q", I64);
    prog.at("t", [&] {
      w(2) = 5;
      y(0) = y(0) + w(2) + cast(q, I32);
    });
  });
  prog.host([&] {
    const Tensor xs = prog.in("xs", I32, {world_size, n, D}), ys = prog.inout("ys", I32, {world_size, D});
    const Domain low = prog.domain_range("low", 0, 2), ends = prog.domain("ends", {world_size - 1, 2});
    const Buffer w_low = prog.alloc_window_bytes("w_low", 2 * D * 4 + 64, low);
    const Buffer s_low = prog.alloc_window("s_low", I32, {1}, low);
    const Buffer w_ends = prog.alloc_window("w_ends", I32, {2, D}, ends);
    const Buffer s_ends = prog.alloc_window_bytes("s_ends", 4, ends);
    const Buffer all = prog.alloc_window_bytes("all_buf", 12);
    const Tensor view = let("view", all.view(I32, {3}));
    ranks("r", 0, 2, [&](Scalar r) { dispatch(e, r, {xs[r], w_low.view(I32, {2, D}), s_low.view(), ys[r]}); });
    ranks("q", 2, 4, [&](Scalar q) { dispatch(e, q, {xs[q], w_ends.view(), s_ends.view(I32, {1}), ys[q]}); });
    ranks("o", 0, world_size, [&](Scalar o) { dispatch(alone, o, {view, ys[o], o * 7}); });
  });
  prog.finish();
  return prog;
}

}  // namespace

int main() {
  test::deadline();
  const Program prog = pairs();
  test::same_text(prog, R"(program pairs
dim n
const D = 4
entry e(x: tensor[n, D] i32 in, w: window[2, D] i32, s: window[1] i32, y: tensor[D] i32 out) {
  at t {
    other = 1 - rank(w)
    put w[0, 0] @other <- x[n - 1, 0] [1, D]
    notify s[0] @other += 1
    wait s[0] >= 1
    for i in 0..D { y[i] = w[0, i] + 1000 * other }
  }
}
entry alone(w: window[3] i32, y: tensor[D] i32 inout, q: i64) {
  at t {
    w[2] = 5
    y[0] = y[0] + w[2] + cast(q, i32)
  }
}
host (xs: tensor[world, n, D] i32 in, ys: tensor[world, D] i32 inout) {
  low = domain 0..2
  ends = domain [world - 1, 2]
  w_low = alloc_window bytes 2 * D * 4 + 64 in low
  s_low = alloc_window [1] i32 in low
  w_ends = alloc_window [2, D] i32 in ends
  s_ends = alloc_window bytes 4 in ends
  all_buf = alloc_window bytes 12
  view = window all_buf [3] i32
  ranks r in 0..2 {
    w = window w_low [2, D] i32
    s = window s_low [1] i32
    dispatch e(xs[r], w, s, ys[r]) device r
  }
  ranks q in 2..4 {
    w = window w_ends [2, D] i32
    s = window s_ends [1] i32
    dispatch e(xs[q], w, s, ys[q]) device q
  }
  ranks o in 0..world {
    dispatch alone(view, ys[o], o * 7) device o
  }
}
)");

  // What a launch is given.
  const std::vector<Param> params = prog.params(4);
  CHECK(params.size() == 2 && params[0].name == "xs" && params[1].name == "ys");
  CHECK(params[0].is_tensor && params[0].dtype == I32 && params[0].direction == Direction::in && params[0].sliced);
  CHECK(params[0].shape == std::vector<std::int64_t>({4, -1, 4}) && params[1].direction == Direction::inout);
  CHECK(prog.params()[1].shape == std::vector<std::int64_t>({-1, 4}));
  const std::vector<Param> scalars = test::shift(4).params();
  CHECK(scalars.size() == 3 && !scalars[2].is_tensor && scalars[2].dtype == F32 && scalars[2].shape.empty());
  CHECK_THROWS(Status::invalid_state, "finished", Program("open").params());

  // Ranks 0 and 1, and ranks 3 and 2, number each other 0 and 1.
  World threads = World::threads(4);
  std::vector<std::int32_t> xs, ys(16, 0);
  for (int i = 0; i < 4 * 3 * 4; i++) xs.push_back(i * i);
  compile(prog, threads).launch(arg(xs, {4, 3, 4}), arg(ys, {4, 4}));
  const std::size_t others[] = {1, 0, 3, 2};
  const int numbers[] = {0, 1, 1, 0};
  for (std::size_t r = 0; r < 4; r++)
    for (std::size_t i = 0; i < 4; i++) {
      const int came = xs[others[r] * 12 + 8 + i] + 1000 * (1 - numbers[r]);
      CHECK(ys[4 * r + i] == came + (i == 0 ? 5 + 7 * static_cast<int>(r) : 0));
    }
}
