// Loops, branches, variables, arrays and requirements.
#include "test.hpp"

using namespace pld;
using test::Given;

int main() {
  test::deadline();
  static_assert(!std::is_assignable_v<Var &, const Var &>, "a variable takes the value of another one as `a = +b`");

  test::same_text(test::program([](const Given &g) {
                    for_range("i", 0, 8, [&](Scalar i) { g.y(i) = 1; });
                    for_range("j", g.me, 8, 2, [&](Scalar j) { g.y(j) = 2; });
                    for_range(0, world_size, [&](Scalar k) {
                      let("k", k);
                      g.y(0) = cast(k, I32);
                    });
                    for_range(g.n, 8, g.n, [&](Scalar l) {
                      let("l", l);
                      g.y(1) = cast(l, I32);
                    });
                    if_(g.on, [&] { g.y(2) = 1; });
                    if_(
                        g.me == 0, [&] { g.y(3) = 1; }, [&] { g.y(4) = 1; });
                    if_(true, [&] { g.y(5) = 1; });
                  }),
                  test::text(R"(
    for i in 0..8 { y[i] = 1 }
    for j in me..8 step 2 { y[j] = 2 }
    for k in 0..world { y[0] = cast(k, i32) }
    for l in n..8 step n { y[1] = cast(l, i32) }
    if on { y[2] = 1 }
    if me == 0 { y[3] = 1 } else { y[4] = 1 }
    if true { y[5] = 1 }
)"));

  test::same_text(test::program([](const Given &g) {
                    Var a = var("a", I32, g.me), b = var("b", I64, 0), c = var("c", F32, 0.5f);
                    a = a + 1;
                    a += g.x(0);
                    a -= 2;
                    b = +a;
                    c = c * g.q;
                    g.y(0) = a;
                    const Array slot = array("slot", I32, world_size), ones = array("ones", I64, 4, 1);
                    slot[g.me] = g.x(1);
                    slot[let("next", g.me + 1)] += 1;
                    slot[0] -= g.x(2);
                    slot[1] = slot[2];
                    ones[b] = slot[0];
                    const Scalar s = let("s", slot[3] + ones[2]);
                    g.y(1) = cast(s, I32);
                  }),
                  test::text(R"(
    a = var i32 = me
    b = var i64 = 0
    c = var f32 = 0.5
    a = a + 1
    a = a + x[0]
    a = a - 2
    b = a
    c = c * q
    y[0] = a
    slot = array i32 [world] = 0
    ones = array i64 [4] = 1
    slot[me] = x[1]
    next = me + 1
    slot[next] = slot[next] + 1
    slot[0] = slot[0] - x[2]
    slot[1] = slot[2]
    ones[b] = slot[0]
    s = slot[3] + ones[2]
    y[1] = cast(s, i32)
)"));

  test::same_text(test::program([](const Given &g) {
                    require(g.n, Cmp::le, 8);
                    require(g.x(0), Cmp::ge, 0, 1);
                    require(g.n, Cmp::ne, g.me);
                    require(g.n, Cmp::eq, 1);
                    require(g.n, Cmp::lt, 2);
                    require(g.n, Cmp::gt, 3);
                  }),
                  test::text(R"(
    require n <= 8
    require x[0] >= 0 @1
    require n != me
    require n == 1
    require n < 2
    require n > 3
)"));

  // Without names, and inside a loop: what is made has names of the library's.
  const std::string text = test::program([](const Given &g) {
                             Var v = var(I32, 3);
                             const Array a = array(F32, 2, 1.5f);
                             for_range(0, 2, [&](Scalar i) { v += cast(a[i], I32); });
                             g.y(0) = v;
                           }).text();
  CHECK_CONTAINS(text, "var i32 = 3");
  CHECK_CONTAINS(text, "array f32 [2] = 1.5");
}
