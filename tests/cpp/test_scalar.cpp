// Scalars: every operator and function, with all that may be an operand.
#include "test.hpp"

using namespace pld;
using test::Given;

int main() {
  test::deadline();
  static_assert(sizeof(Scalar) <= 24 && std::is_trivially_copyable_v<Scalar>, "a small value");
  static_assert(!std::is_convertible_v<Scalar, bool>, "a comparison is no C++ bool");

  // Numbers, extents, variables and elements mix.
  test::same_text(test::program([](const Given &g) {
                    const std::size_t wide = 3;
                    const Scalar a = let("a", g.n + 1), b = let("b", wide * g.n), c = let("c", 7 - world_size);
                    const Scalar d = let("d", g.x(1) / 2), e = let("e", Dim(5) % g.me), s = let("s", g.q * 0.5f);
                    const Scalar h = let("h", -a), i = let("i", 2.5 - g.q);
                    const Scalar on = let("on2", (a == b) != true), off = let("off", !((on && g.on) || false));
                    if_((a < b && c <= d) || (e > 1 && h >= 2), [&] { g.y(0) = cast(s + i, I32); });
                    if_(off, [&] { g.y(1) = 2; });
                  }),
                  test::text(R"(
    a = n + 1
    b = 3 * n
    c = 7 - world
    d = x[1] / 2
    e = 5 % me
    s = q * 0.5
    h = -a
    i = 2.5 - q
    on2 = (a == b) != true
    off = not (on2 and on or false)
    if a < b and c <= d or e > 1 and h >= 2 { y[0] = cast(s + i, i32) }
    if off { y[1] = 2 }
)"));

  // Functions.
  test::same_text(test::program([](const Given &g) {
                    const Scalar a = let("a", min(g.n, 4)), b = let("b", max(a, g.x(2)));
                    const Scalar c = let("c", clamp(b, 0, world_size)), d = let("d", select(g.on, a, 3));
                    const Scalar e = let("e", sum({a, b, c, d})), s = let("s", cast(g.q, I64));
                    g.y(0) = cast(e + s, I32);
                  }),
                  test::text(R"(
    a = min(n, 4)
    b = max(a, x[2])
    c = clamp(b, 0, world)
    d = select(on, a, 3)
    e = a + b + c + d
    s = cast(q, i64)
    y[0] = cast(e + s, i32)
)"));

  // What belongs to no program is reported where it is used, not lost.
  const Scalar nowhere = Scalar(1.5f) + 2, number = 7;
  CHECK(nowhere.program() == nullptr && nowhere.capi().id == 0);
  CHECK(number.capi().is_int == 1 && number.capi().imm == 7);
  CHECK(Scalar().capi().id == 0);
  Program lost = test::program([&](const Given &g) { g.y(0) = nowhere; }, false);
  CHECK_THROWS(Status::verify, "the value is no scalar", lost.finish());
}
