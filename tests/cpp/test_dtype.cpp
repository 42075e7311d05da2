// Element types, and the C++ types that hold them.
#include "test.hpp"

#include <cmath>
#include <cstring>

using namespace pld;

namespace {

// Every bit pattern of a 16-bit float, as the library makes it of floats and floats of it.
template <class Half>
void agree_with_the_library(DType half) {
  constexpr std::int64_t kCount = 65536;
  Program prog("convert");
  const Entry e = prog.entry("e", [&] {
    const Tensor h = prog.in("h", half, {1, kCount}), f = prog.out("f", F32, {1, kCount});
    const Tensor g = prog.in("g", F32, {1, kCount}), k = prog.out("k", half, {1, kCount});
    prog.at("t", [&] {
      store(cast(load(h, {0, 0}, {1, kCount}), F32), f, {0, 0});
      store(cast(load(g, {0, 0}, {1, kCount}), half), k, {0, 0});
    });
  });
  prog.host([&] {
    const Tensor h = prog.in("h", half, {1, kCount}), f = prog.out("f", F32, {1, kCount});
    const Tensor g = prog.in("g", F32, {1, kCount}), k = prog.out("k", half, {1, kCount});
    ranks("r", 0, world_size, [&](Scalar r) { dispatch(e, r, {h, f, g, k}); });
  });
  prog.finish();
  World one = World::threads(1);
  Executable executable = compile(prog, one);
  std::vector<Half> h(kCount), k(kCount);
  std::vector<float> f(kCount), g(kCount);
  for (std::size_t i = 0; i < kCount; i++) h[i].bits = static_cast<std::uint16_t>(i);
  // Floats of every exponent, on, beside and between what a half can be.
  for (std::uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
    for (std::uint32_t i = 0; i < kCount; i++) {
      const std::uint32_t bits = i << 16 | low;
      std::memcpy(&g[i], &bits, sizeof bits);
    }
    executable.launch(arg(h, {1, kCount}), arg(f, {1, kCount}), arg(g, {1, kCount}), arg(k, {1, kCount}));
    for (std::size_t i = 0; i < kCount; i++) {
      const float wide = static_cast<float>(h[i]);
      CHECK(std::isnan(f[i]) ? std::isnan(wide) : std::memcmp(&wide, &f[i], sizeof wide) == 0);
      const Half narrow(g[i]);
      CHECK(std::isnan(g[i]) ? std::isnan(static_cast<float>(narrow)) : narrow.bits == k[i].bits);
    }
  }
}

}  // namespace

int main() {
  test::deadline();
  static_assert(dtype_of<float>() == F32 && dtype_of<const float>() == F32, "floats");
  static_assert(dtype_of<float16>() == F16 && dtype_of<bfloat16>() == BF16, "halves");
  static_assert(dtype_of<float8_e4m3>() == F8E4M3 && dtype_of<float8_e5m2>() == F8E5M2, "quarters");
  static_assert(dtype_of<bool>() == BOOL && dtype_of<signed char>() == I8 && dtype_of<unsigned char>() == U8, "bytes");
  static_assert(dtype_of<short>() == I16 && dtype_of<unsigned short>() == U16, "words");
  static_assert(dtype_of<int>() == I32 && dtype_of<unsigned>() == U32, "signals");
  static_assert(dtype_of<long>() == dtype_of<std::intptr_t>() && dtype_of<long long>() == I64, "long");
  static_assert(dtype_of<std::uint64_t>() == U64 && dtype_of<std::size_t>() == U64, "unsigned long");
  CHECK(size_of(F32) == sizeof(float) && size_of(F16) == sizeof(float16) && size_of(BF16) == sizeof(bfloat16));
  CHECK(size_of(F8E4M3) == sizeof(float8_e4m3) && size_of(F8E5M2) == sizeof(float8_e5m2) && size_of(BOOL) == 1);
  CHECK(size_of(I8) == 1 && size_of(U8) == 1 && size_of(I16) == 2 && size_of(U16) == 2 && size_of(I32) == 4);
  CHECK(size_of(U32) == 4 && size_of(I64) == 8 && size_of(U64) == 8 && size_of(static_cast<DType>(99)) == 0);
  CHECK(std::strcmp(name(F32), "f32") == 0 && std::strcmp(name(U64), "u64") == 0 &&
        std::strcmp(name(BOOL), "bool") == 0);
  CHECK(std::strcmp(name(F8E5M2), "f8e5m2") == 0 && std::strcmp(name(static_cast<DType>(99)), "?") == 0);
  agree_with_the_library<float16>(F16);
  agree_with_the_library<bfloat16>(BF16);
}
