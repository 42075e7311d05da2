// Tiles: loads, stores, and all arithmetic.
#include "test.hpp"

using namespace pld;
using test::Given;

int main() {
  test::deadline();
  static_assert(!std::is_assignable_v<Tile &, const Tile &>, "a named tile is overwritten with `assign`");

  test::same_text(test::program([](const Given &g) {
                    Tile a = let("a", load(g.f, {0, 0}, {2, 8})), b = let("b", load(g.f.at(g.n, 0), {2, 8}));
                    a = a + b;
                    a = a - b;
                    a = a * b;
                    a = a / b;
                    a = max(a, b);
                    a = min(a, b);
                    a += b;
                    a -= b;
                    a *= b;
                    a /= b;
                    a = a + g.q;
                    a = a - 1.5f;
                    a = a * g.q;
                    a = a / 2;
                    a = max(a, 0);
                    a = min(a, g.q);
                    a += 1;
                    a -= g.q;
                    a *= 2;
                    a /= g.q;
                    assign(a, b);
                    Tile c = let("c", copy(a)), d = let("d", full(F32, {2, 8}, g.q));
                    c = d + c;
                    const Tile high = let("high", row_max(c)), total = let("total", row_sum(c));
                    const Tile top = let("top", col_max(c)), all = let("all", col_sum(c));
                    const Tile half = let("half", cast(c, F16));
                    store(cast(half, F32), g.f, {0, 0});
                    store(high + total, g.f.at(0, g.n));
                    store(top - all, g.w, {1, 0});
                  }),
                  test::text(R"(
    a = load f[0, 0] [2, 8]
    b = load f[n, 0] [2, 8]
    a = add a, b
    a = sub a, b
    a = mul a, b
    a = div a, b
    a = max a, b
    a = min a, b
    a = add a, b
    a = sub a, b
    a = mul a, b
    a = div a, b
    a = add a, q
    a = sub a, 1.5
    a = mul a, q
    a = div a, 2
    a = max a, 0
    a = min a, q
    a = add a, 1
    a = sub a, q
    a = mul a, 2
    a = div a, q
    a = copy b
    c = copy a
    d = full f32 [2, 8] q
    c = add d, c
    high = row_max c
    total = row_sum c
    top = col_max c
    all = col_sum c
    half = cast c f16
    t1 = cast half f32
    store t1 -> f[0, 0]
    t2 = add high, total
    store t2 -> f[0, n]
    t3 = sub top, all
    store t3 -> w[1, 0]
)"));

  const Tile none;
  CHECK(none.program() == nullptr && none.capi().id == 0);
  Program lost = test::program([&](const Given &g) { store(none, g.f, {0, 0}); }, false);
  CHECK_THROWS(Status::verify, "handle is zero", lost.finish());
}
