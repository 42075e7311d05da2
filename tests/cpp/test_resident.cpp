// Memory that lives with the ranks.
#include "test.hpp"

using namespace pld;

int main() {
  test::deadline();
  constexpr std::int64_t kColumns = 16;
  World threads = World::threads(2);
  Executable shift = compile(test::shift(kColumns), threads);
  const std::vector<float> in = test::inputs(0, 2, kColumns);
  std::vector<float> out(2 * kColumns);

  // One shard a rank, in and out of the ranks' memory, without staging.
  Resident ins = Resident::create_stacked(threads, F32, {1, kColumns});
  Resident outs = Resident::create_stacked(threads, F32, {1, kColumns});
  for (std::uint32_t r = 0; r < 2; r++) ins.copy_in(r, Span<const float>(in.data() + r * kColumns, kColumns));
  shift.launch(ins, outs, 2.0f);
  for (std::uint32_t r = 0; r < 2; r++) outs.copy_out(r, Span<float>(out.data() + r * kColumns, kColumns));
  CHECK(test::shifted(out, 0, 2, kColumns, 2));

  // A run keeps the memory of one that is destroyed.
  {
    Resident gone = std::move(ins);
    CHECK(!ins && gone);
    Run run = shift.submit(gone, outs, 3.0f);
    gone = Resident(nullptr);
    run.wait();
  }
  for (std::uint32_t r = 0; r < 2; r++) outs.copy_out(r, Span<float>(out.data() + r * kColumns, kColumns));
  CHECK(test::shifted(out, 0, 2, kColumns, 3));

  // One rank's alone begins zeroed, and has its own size.
  Resident one = Resident::create(threads, 1, I64, {3});
  std::vector<std::int64_t> three(3, 9), four(4);
  one.copy_out(1, Span<std::int64_t>(three));
  CHECK(three[0] == 0 && three[2] == 0);
  CHECK_THROWS(Status::invalid_argument, "32", one.copy_in(1, Span<std::int64_t>(four)));
  CHECK_STATUS(Status::invalid_argument, one.try_copy_out(0, Span<std::int64_t>(three)));
  CHECK_THROWS(Status::invalid_argument, "2", Resident::create(threads, 2, I64, {3}));
  CHECK_THROWS(Status::invalid_argument, "", Resident::create_stacked(threads, static_cast<DType>(99), {3}));
  CHECK_THROWS(Status::invalid_argument, "", shift.launch(one, outs, 3.0f));
  threads = World::threads(1);
  CHECK_THROWS(Status::invalid_state, "", one.copy_in(1, Span<std::int64_t>(three)));
}
