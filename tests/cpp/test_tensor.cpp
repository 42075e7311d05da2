// Tensors: places, elements, parts and names.
#include "test.hpp"

using namespace pld;
using test::Given;

int main() {
  test::deadline();
  static_assert(!std::is_convertible_v<Element &, Operand> && !std::is_copy_constructible_v<Element>,
                "an element that was given a name cannot be read again by accident");

  test::same_text(test::program([](const Given &g) {
                    g.y(0) = g.x(1);
                    g.y(g.n) = 5;
                    g.y(2) += g.x(3);
                    g.y(3) -= 1;
                    g.f(1, g.n) = g.q;
                    const Tensor row = let("row", slice(g.f.at(g.n, 0), {1, 8}));
                    const Tensor flat = let("flat", flatten(row));
                    flat(3) = row(0, 4);
                    g.y(4) = rank(g.w);
                    g.y(5) = nranks(g.w);
                  }),
                  test::text(R"(
    y[0] = x[1]
    y[n] = 5
    y[2] = y[2] + x[3]
    y[3] = y[3] - 1
    f[1, n] = q
    row = slice f[n, 0] [1, 8]
    flat = flatten row
    flat[3] = row[0, 4]
    y[4] = rank(w)
    y[5] = nranks(w)
)"));

  // Eight dimensions, the most that there are; nine are refused, and not cut.
  for (const bool too_many : {false, true}) {
    Program prog("wide");
    const Entry e = prog.entry("e", [&] {
      const Tensor t =
          too_many ? prog.out("t", I32, {1, 1, 1, 1, 1, 1, 1, 2, 2}) : prog.out("t", I32, {1, 1, 1, 1, 1, 1, 1, 2});
      prog.at("a", [&] { t(0, 0, 0, 0, 0, 0, 0, 1) = 3; });
    });
    prog.host([&] {
      const Tensor t = prog.out("t", I32, {1, 1, 1, 1, 1, 1, 1, 2});
      ranks(0, 1, [&](Scalar r) { dispatch(e, r, {t}); });
    });
    if (too_many) {
      CHECK_THROWS(Status::verify, "9", prog.finish());
    } else {
      prog.finish();
      CHECK_CONTAINS(prog.text(), "t[0, 0, 0, 0, 0, 0, 0, 1] = 3");
    }
  }

  const Tensor none;
  CHECK(none.program() == nullptr && none.capi().id == 0);
  Program lost = test::program([&](const Given &g) { put(g.w, 1, none); }, false);
  CHECK_THROWS(Status::verify, "handle is zero", lost.finish());
}
