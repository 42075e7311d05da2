/// @file dtype.hpp
/// Element types, and the C++ types that hold them.
#ifndef PLD_DTYPE_HPP
#define PLD_DTYPE_HPP

#include <pld.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace pld {

/// An element type. F32, I8, ... are short for the values.
enum class DType : pld_dtype_t {
  f32 = PLD_DTYPE_F32,
  f16 = PLD_DTYPE_F16,
  bf16 = PLD_DTYPE_BF16,
  i8 = PLD_DTYPE_I8,
  u8 = PLD_DTYPE_U8,
  i16 = PLD_DTYPE_I16,
  u16 = PLD_DTYPE_U16,
  i32 = PLD_DTYPE_I32,
  u32 = PLD_DTYPE_U32,
  i64 = PLD_DTYPE_I64,
  u64 = PLD_DTYPE_U64,
  boolean = PLD_DTYPE_BOOL,
  f8e4m3 = PLD_DTYPE_F8E4M3,
  f8e5m2 = PLD_DTYPE_F8E5M2,
};

inline constexpr DType F32 = DType::f32;        ///< IEEE binary32.
inline constexpr DType F16 = DType::f16;        ///< IEEE binary16.
inline constexpr DType BF16 = DType::bf16;      ///< bfloat16.
inline constexpr DType I8 = DType::i8;          ///< Signed 8 bit.
inline constexpr DType U8 = DType::u8;          ///< Unsigned 8 bit.
inline constexpr DType I16 = DType::i16;        ///< Signed 16 bit.
inline constexpr DType U16 = DType::u16;        ///< Unsigned 16 bit.
inline constexpr DType I32 = DType::i32;        ///< Signed 32 bit; the type of signals.
inline constexpr DType U32 = DType::u32;        ///< Unsigned 32 bit.
inline constexpr DType I64 = DType::i64;        ///< Signed 64 bit.
inline constexpr DType U64 = DType::u64;        ///< Unsigned 64 bit.
inline constexpr DType BOOL = DType::boolean;   ///< One byte, 0 or 1.
inline constexpr DType F8E4M3 = DType::f8e4m3;  ///< OCP 8-bit float E4M3; moved and cast only.
inline constexpr DType F8E5M2 = DType::f8e5m2;  ///< OCP 8-bit float E5M2; moved and cast only.

/// The type as the C interface has it.
constexpr pld_dtype_t capi(DType dtype) noexcept { return static_cast<pld_dtype_t>(dtype); }

/// The size of one element in bytes; 0 for an unknown type.
inline std::size_t size_of(DType dtype) noexcept { return pld_dtype_size(capi(dtype)); }

/// Its name in program text, such as `f32`; `?` for an unknown type. Static.
inline const char *name(DType dtype) noexcept {
  static const char *const names[] = {"?",   "f32", "f16", "bf16", "i8",   "u8",     "i16",   "u16",
                                      "i32", "u32", "i64", "u64",  "bool", "f8e4m3", "f8e5m2"};
  const pld_dtype_t number = capi(dtype);
  return names[number < sizeof names / sizeof names[0] ? number : 0];
}

namespace detail {

/// The bits of a value as another type of the same size.
template <class To, class From>
To bits(const From &from) noexcept {
  static_assert(sizeof(To) == sizeof(From), "bits keep their number");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace detail

/// Storage of an F16 element. Conversions round to nearest, ties to even.
struct float16 {
  /// IEEE binary16.
  std::uint16_t bits = 0;

  float16() = default;

  /// The nearest one to a number.
  explicit float16(float value) noexcept {
    const auto wide = detail::bits<std::uint32_t>(value);
    const std::uint32_t sign = wide >> 16 & 0x8000, magnitude = wide & 0x7fffffff;
    std::uint32_t narrow;
    if (magnitude > 0x7f800000) {
      narrow = 0x7e00 | (magnitude >> 13 & 0x3ff);  // NaN
    } else if (magnitude >= 0x47800000) {
      narrow = 0x7c00;  // 2^16 and more: infinity
    } else if (magnitude < 0x38800000) {
      // Below 2^-14 the last bit is worth 2^-24, which is that of a float at 0.5: the addition rounds.
      narrow = detail::bits<std::uint32_t>(detail::bits<float>(magnitude) + 0.5f) - 0x3f000000;
    } else {
      narrow = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    }
    bits = static_cast<std::uint16_t>(sign | narrow);
  }

  /// The number, exactly.
  explicit operator float() const noexcept {
    const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00) return detail::bits<float>(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);
    if (magnitude < 0x400) {
      const float tiny = static_cast<float>(magnitude) * 0x1p-24f;
      return sign != 0 ? -tiny : tiny;
    }
    return detail::bits<float>(sign | ((magnitude << 13) + 0x38000000u));
  }
};

/// Storage of a BF16 element. Conversions round to nearest, ties to even.
struct bfloat16 {
  /// The upper half of an IEEE binary32.
  std::uint16_t bits = 0;

  bfloat16() = default;

  /// The nearest one to a number.
  explicit bfloat16(float value) noexcept {
    const auto wide = detail::bits<std::uint32_t>(value);
    const bool nan = (wide & 0x7fffffff) > 0x7f800000;
    bits = static_cast<std::uint16_t>(nan ? wide >> 16 | 0x40 : (wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }

  /// The number, exactly.
  explicit operator float() const noexcept { return detail::bits<float>(static_cast<std::uint32_t>(bits) << 16); }
};

/// Storage of an F8E4M3 element; programs convert it.
struct float8_e4m3 {
  /// OCP E4M3.
  std::uint8_t bits = 0;
};

/// Storage of an F8E5M2 element; programs convert it.
struct float8_e5m2 {
  /// OCP E5M2.
  std::uint8_t bits = 0;
};

/// The element type that a C++ type holds: float, bool, integers of 8 to 64 bits, float16, bfloat16, float8_e4m3 and
/// float8_e5m2.
template <class T>
constexpr DType dtype_of() noexcept {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) {
    return F32;
  } else if constexpr (std::is_same_v<U, float16>) {
    return F16;
  } else if constexpr (std::is_same_v<U, bfloat16>) {
    return BF16;
  } else if constexpr (std::is_same_v<U, float8_e4m3>) {
    return F8E4M3;
  } else if constexpr (std::is_same_v<U, float8_e5m2>) {
    return F8E5M2;
  } else if constexpr (std::is_same_v<U, bool>) {
    return BOOL;
  } else {
    static_assert(std::is_integral_v<U> && sizeof(U) <= 8, "no element type holds this C++ type");
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) {
      return is_signed ? I8 : U8;
    } else if constexpr (sizeof(U) == 2) {
      return is_signed ? I16 : U16;
    } else if constexpr (sizeof(U) == 4) {
      return is_signed ? I32 : U32;
    } else {
      return is_signed ? I64 : U64;
    }
  }
}

}  // namespace pld

#endif
