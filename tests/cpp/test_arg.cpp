// Arguments: tensors of all kinds, parts, tensors of other libraries, scalars.
#include "test.hpp"

#include <array>

using namespace pld;

// What <dlpack/dlpack.h> declares.
extern "C" {
struct DLTensor {
  void *data;
  struct {
    std::int32_t type, id;
  } device;
  std::int32_t ndim;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *);
};
}

namespace {

constexpr std::int64_t kColumns = 16;

DLManagedTensor dlpack(std::vector<float> &values, std::int64_t *shape) {
  DLManagedTensor t{};
  t.dl_tensor.data = values.data();
  t.dl_tensor.device = {1, 0};
  t.dl_tensor.ndim = 3;
  t.dl_tensor.dtype = {2, 32, 1};
  t.dl_tensor.shape = shape;
  return t;
}

}  // namespace

int main() {
  test::deadline();
  World threads = World::threads(2);
  Executable shift = compile(test::shift(kColumns), threads);
  const std::vector<float> in = test::inputs(0, 2, kColumns);
  std::vector<float> out(2 * kColumns);
  const auto right = [&](float scale) {
    const bool shifted = test::shifted(out, 0, 2, kColumns, scale);
    std::fill(out.begin(), out.end(), -1.0f);
    return shifted;
  };

  // Containers, whose sizes are compared with the shape; pointers; a Span.
  shift.launch(arg(in, {2, 1, kColumns}), arg(out, {2, 1, kColumns}), 2.0f);
  CHECK(right(2));
  shift.launch(arg(in.data(), {2, 1, kColumns}), arg(out.data(), {2, 1, kColumns}), 3.0f);
  CHECK(right(3));
  const Span<const float> view(in);
  shift.launch(arg(view, {2u, 1, static_cast<std::size_t>(kColumns)}), TensorArg(out.data(), F32, {2, 1, kColumns}),
               4.0);
  CHECK(right(4));
  CHECK_THROWS(Status::invalid_argument, "spans 33 elements, its memory has 32", arg(out, {3, 11}));
  CHECK_THROWS(Status::invalid_argument, "spans -32 elements", arg(out, {-2, 16}));
  CHECK(try_arg(out, {2, 1, 15}).status() == Status::invalid_argument && try_arg(out, {32}));

  // One tensor a rank.
  std::vector<float> in0(in.begin(), in.begin() + kColumns), in1(in.begin() + kColumns, in.end());
  const std::vector<TensorArg> ins = {{in0.data(), {1, kColumns}}, {in1.data(), {1, kColumns}}};
  const std::array<TensorArg, 2> outs = {TensorArg(out.data(), {1, kColumns}),
                                         TensorArg(out.data() + kColumns, {1, kColumns})};
  shift.launch(Arg(ins), Arg(outs), 5.0f);
  CHECK(right(5));

  // Tensors of other libraries.
  std::int64_t shape[] = {2, 1, kColumns};
  std::vector<float> given = in;
  const DLManagedTensor from = dlpack(given, shape), to = dlpack(out, shape);
  shift.launch(arg(&from), arg(&to), 6.0f);
  CHECK(right(6));

  // What does not fit is refused before anything runs.
  std::vector<std::int32_t> wrong(2 * kColumns);
  CHECK_THROWS(Status::invalid_argument, "is the integer 3, not an f32",
               shift.launch(arg(in, {2, 1, kColumns}), arg(out, {2, 1, kColumns}), 3));
  CHECK_THROWS(Status::invalid_argument, "i32",
               shift.launch(arg(wrong, {2, 1, kColumns}), arg(out, {2, 1, kColumns}), 1.0f));
  CHECK_THROWS(Status::invalid_argument, "16", shift.launch(arg(in, {2, 16, 1}), arg(out, {2, 1, kColumns}), 1.0f));
  CHECK_THROWS(Status::invalid_argument, "2", shift.launch(arg(in, {2, 1, kColumns}), arg(out, {2, 1, kColumns})));
  CHECK_THROWS(Status::invalid_argument, "9",
               shift.launch(arg(in.data(), {1, 1, 1, 1, 1, 1, 1, 1, 1}), arg(out, {2, 1, kColumns}), 1.0f));
  CHECK_THROWS(Status::invalid_argument, "", shift.launch(Arg(), arg(out, {2, 1, kColumns}), 1.0f));
  CHECK_THROWS(Status::invalid_argument, "", shift.launch(arg(in, {2, 1, kColumns}), arg(out, {2, 1, kColumns}), true));
  for (const float untouched : out) CHECK(untouched < 0);

  // Scalars take their kind from the C++ type.
  CHECK(Arg(true).capi().kind == PLD_ARG_BOOL && Arg(true).capi().integer == 1);
  CHECK(Arg(std::uint8_t{7}).capi().kind == PLD_ARG_INT && Arg(-7L).capi().integer == -7);
  CHECK(Arg(0.5f).capi().kind == PLD_ARG_FLOAT && Arg(0.5).capi().real > 0.4);
  CHECK(Arg().capi().kind == PLD_ARG_GENERATED && Arg(pld_arg_int(4)).capi().integer == 4);
}
