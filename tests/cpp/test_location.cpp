// Mistakes name the file and the line of the statement, whatever kind of call it is.
#include "test.hpp"

#include <functional>

using namespace pld;
using test::Given;

namespace {

// A mistake, written on one line of this file, with what its finding must say.
struct Mistake {
  unsigned line;
  const char *part;
  std::function<void(const Given &)> make;
};

// The first error of a program with this mistake.
Diagnostic found(const Mistake &mistake) {
  Program prog = test::program([&](const Given &g) { mistake.make(g); }, false);
  const Result<std::vector<Diagnostic>> finished = prog.try_finish();
  if (!finished)
    for (const Diagnostic &d : finished.error().diagnostics())
      if (d.severity == Severity::error) return d;
  test::fail(__FILE__, static_cast<int>(mistake.line), "the mistake is found");
}

// A part of f, with so many rows.
Tile rows(const Given &g, int n, Location at = Location::here()) { return load(g.f, {0, 0}, {n, 8}, at); }

void notify_through(const Given &g, Location at = Location::here()) { notify(g.w.at(0, 0), 1, 1, NotifyOp::add, at); }

}  // namespace

int main() {
  test::deadline();
  const Scalar none;
  const std::vector<Mistake> mistakes = {
      {__LINE__, "+ takes two numbers, not bool and i64", [](const Given &g) { g.y(0) = cast(g.on + g.n, I32); }},
      {__LINE__, "+ takes two numbers, not i64 and bool", [](const Given &g) { g.y(0) = cast(1 + g.on, I32); }},
      {__LINE__, "- takes a number, not bool", [](const Given &g) { g.y(0) = cast(-g.on, I32); }},
      {__LINE__, "not takes a bool, not i64", [](const Given &g) { if_(!g.n, [] {}); }},
      {__LINE__, "and takes two bools, not bool and i64", [](const Given &g) { if_(g.on && g.n > 0 && g.n, [] {}); }},
      {__LINE__, "min takes two numbers", [](const Given &g) { g.y(0) = min(g.n, g.on); }},
      {__LINE__, "a summand is no scalar", [&](const Given &g) { g.y(0) = sum({g.n, none, g.n}); }},
      {__LINE__, "a condition is a bool", [](const Given &g) { if_(g.n, [] {}); }},
      {__LINE__, "an offset is an integer", [](const Given &g) { let("e", g.x(g.q)); }},
      {__LINE__, "1 offset for f of rank 2", [](const Given &g) { let("e", g.f(g.n)); }},
      {__LINE__, "f32 does not convert to i32, the type of y", [](const Given &g) { g.y(0) = g.q; }},
      {__LINE__, "+ mixes i32 and f32", [](const Given &g) { g.y(0) += g.q; }},
      {__LINE__, "+ mixes i32 and f32", [](const Given &g) { Array a = array(I32, 4); a[g.n] += g.q; }},
      {__LINE__, "an array index is an integer", [](const Given &g) { Array a = array(I32, 4); let("e", a[g.on]); }},
      {__LINE__, "f32 does not convert to i32", [](const Given &g) { Var v = var(I32, 0); v = g.q; }},
      {__LINE__, "+ mixes i32 and f32", [](const Given &g) { Var v = var(I32, 0); v += g.q; }},
      {__LINE__, "has shape [2, 8]", [](const Given &g) { Tile a = rows(g, 1); a += rows(g, 2); }},
      {__LINE__, "has shape [2, 8]", [](const Given &g) { Tile a = rows(g, 1); a = rows(g, 2); }},
      {__LINE__, "has shape [2, 8]", [](const Given &g) { Tile a = rows(g, 1); let("b", a + rows(g, 2)); }},
      {__LINE__, "1 offset for f of rank 2", [](const Given &g) { load(g.f.at(0), {1, 8}); }},
      {__LINE__, "is i32, but f is f32", [](const Given &g) { store(full(I32, {1, 8}, 0), g.f, {0, 0}); }},
      {__LINE__, "put works on a window", [](const Given &g) { put(g.f.at(0, 0), 1, g.f.at(0, 0), {1, 8}); }},
      {__LINE__, "an int32 window, but w is f32", [](const Given &g) { notify(g.w.at(0, 0), 1); }},
      {__LINE__, "an int32 window, but w is f32", [](const Given &g) { wait(g.w.at(0, 0), 1); }},
      {__LINE__, "an int32 window, but w is f32", [](const Given &g) { notify_through(g); }},
      {__LINE__, "a loop bound is an integer", [](const Given &g) { for_range(0, g.q, [](Scalar) {}); }},
      {__LINE__, "allreduce works on windows", [](const Given &g) { allreduce(g.f, Combine::sum); }},
  };
  for (const Mistake &m : mistakes) {
    const Diagnostic d = found(m);
    std::printf("%s\n", d.text.c_str());
    if (d.file != __FILE__ || d.line != m.line)
      test::fail(__FILE__, static_cast<int>(m.line), "it is here, and not " + d.file + ":" + std::to_string(d.line));
    CHECK_CONTAINS(d.text, m.part);
    CHECK(d.severity == Severity::error && d.code.rfind("PLD-", 0) == 0);
  }
}
