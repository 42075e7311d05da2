// Programs: the examples' texts, made in C++; text and back; graphs; collectives written out; ownership.
#include "test.hpp"

#include <fstream>
#include <sstream>

// The examples, each with its `main`; what they include is included before.
#include "../../examples/cpp/exchange.hpp"
namespace allreduce {
#include "../../examples/cpp/allreduce.cpp"
}
namespace moe {
#include "../../examples/cpp/moe_dispatch_combine.cpp"
}
namespace prefill {
#include "../../examples/cpp/cp_prefill_exchange.cpp"
}

using namespace pld;

namespace {

std::string text_of(const std::string &name) {
  std::ifstream file(SOURCE_TREE "/examples/pld/" + name + ".pld");
  CHECK(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int main() {
  test::deadline();
  test::same_text(allreduce::allreduce_program(), text_of("allreduce"));
  test::same_text(moe::moe_program(), text_of("moe_dispatch_combine"));
  test::same_text(prefill::prefill_program(), text_of("cp_prefill_exchange"));

  // Moved, never copied, and given away.
  static_assert(!std::is_copy_constructible_v<Program> && !std::is_copy_assignable_v<Program>, "one owner");
  static_assert(std::is_nothrow_move_constructible_v<Program> && std::is_nothrow_move_assignable_v<Program>, "moved");
  Program a = Program::parse(text_of("allreduce"), "allreduce.pld"), b = test::shift(4);
  pld_program_t *const raw = a.capi();
  const std::string text = a.text();
  b = std::move(a);
  CHECK(b.capi() == raw && b.text() == text && static_cast<bool>(b));
  Program c(b.release());
  CHECK(!b && b.capi() == nullptr && c.capi() == raw && c.text() == text);
  c = std::move(*&c);
  CHECK(c.text() == text);

  // Text and back; and what is not to be asked.
  CHECK(Program::parse(text).text() == text);
  CHECK_THROWS(Status::invalid_state, "finished", c.finish());
  CHECK_THROWS(Status::invalid_argument, "NULL", b.text());
  CHECK(b.try_text().status() == Status::invalid_argument);
  Program open("open");
  CHECK_THROWS(Status::invalid_state, "finished", open.text());
  CHECK_THROWS(Status::invalid_state, "finished", open.graph());
  CHECK_THROWS(Status::invalid_state, "finished", open.expand());
  CHECK(open.try_graph().status() == Status::invalid_state && open.try_expand().status() == Status::invalid_state);

  // Warnings are given, whether the program is built or parsed.
  std::vector<Diagnostic> warnings;
  const std::string idle =
      "program idle\nentry e(x: tensor[1] i32 in, w: window[1] i32) { at t {} }\n"
      "host (x: tensor[1] i32 in) {\n  b = alloc_window [1] i32\n  w = window b [1] i32\n"
      "  ranks r in 0..world { dispatch e(x, w) device r }\n}\n";
  Program::parse(idle, "idle.pld", &warnings);
  CHECK(!warnings.empty() && warnings[0].severity == Severity::warning && warnings[0].file == "idle.pld");
  CHECK(warnings[0].line == 2);
  Program built("idle");
  const Entry e = built.entry("e", [&] {
    built.in("x", I32, {1});
    built.window("w", I32, {1});
    built.at("t", [] {});
  });
  built.host([&] {
    const Tensor x = built.in("x", I32, {1}), w = built.alloc_window("b", I32, {1}).view(I32, {1});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(e, r, {x, w}); });
  });
  const std::vector<Diagnostic> same = built.finish();
  CHECK(same.size() == warnings.size() && same[0].code == warnings[0].code && same[0].file == __FILE__);

  // Graphs, and collectives that are written out.
  CHECK_CONTAINS(c.graph(), "reduce_step");
  CHECK_CONTAINS(c.graph(2, GraphFormat::dot), "digraph");
  const Program sum = Program::parse(
      "program s\nentry e(w: window[64] f32) { at t { allreduce sum w } }\nhost () {\n  b = alloc_window [64] f32\n"
      "  ranks r in 0..world {\n    w = window b [64] f32\n    dispatch e(w) device r\n  }\n}\n");
  ExpandOptions options;
  options.nranks = 3;
  CHECK_CONTAINS(sum.expand(options).text(), "notify");
  CHECK(sum.text().find("notify") == std::string::npos);
  options.ranks_per_host = 1;
  CHECK_CONTAINS(sum.expand(options).text(), "w_shards");
  options.transport = static_cast<Transport>(99);
  CHECK_THROWS(Status::invalid_argument, "99", sum.expand(options));
  CHECK_THROWS(Status::invalid_argument, "99", sum.graph(0, static_cast<GraphFormat>(99)));

  // A body that throws leaves a program that can be destroyed, and the thread as it was.
  Program thrown("thrown");
  try {
    thrown.entry("e", [&] { thrown.at("t", [] { throw 7; }); });
    CHECK(false);
  } catch (int seven) {
    CHECK(seven == 7);
  }
  CHECK(Scalar(world_size).program() == nullptr);
}
