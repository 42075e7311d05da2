// Scalars as programs mean them, and what the scalar unit computes with tiles.

#pragma once

#include <cstdint>

#include <pto/pto-inst.hpp>

namespace pld {

// Integers wrap, and -1 divides everything.

template <typename To, typename From>
AICORE inline To bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits stay");
    To to;
    __builtin_memcpy(&to, &from, sizeof(to));
    return to;
}

/// A float that comes as its bits.
AICORE inline float float_of_bits(int64_t bits)
{
    return bits_as<float>(uint32_t(bits));
}

template <typename T>
AICORE inline T add(T a, T b)
{
    return T(uint64_t(a) + uint64_t(b));
}

template <typename T>
AICORE inline T sub(T a, T b)
{
    return T(uint64_t(a) - uint64_t(b));
}

template <typename T>
AICORE inline T mul(T a, T b)
{
    return T(uint64_t(a) * uint64_t(b));
}

template <typename T>
AICORE inline T div(T a, T b)
{
    return b == T(-1) ? sub(T(0), a) : T(a / b);
}

template <typename T>
AICORE inline T rem(T a, T b)
{
    return b == T(-1) ? T(0) : T(a % b);
}

template <typename T>
AICORE inline T min(T a, T b)
{
    return b < a ? b : a;
}

template <typename T>
AICORE inline T max(T a, T b)
{
    return a < b ? b : a;
}

/// NaN if one of them is.
template <>
AICORE inline float min<float>(float a, float b)
{
    return a != a ? a : b != b ? b : a < b || (a == b && __builtin_signbit(a)) ? a : b;
}

/// NaN if one of them is.
template <>
AICORE inline float max<float>(float a, float b)
{
    return a != a ? a : b != b ? b : a > b || (a == b && !__builtin_signbit(a)) ? a : b;
}

/// The next index of a loop; the end where there is none.
AICORE inline int64_t advance(int64_t index, int64_t step, int64_t end)
{
    return uint64_t(end) - uint64_t(index) > uint64_t(step) ? index + step : end;
}

/// The integer that a float is without its fraction: the nearest that there is, and 0 for NaN.
template <typename T>
AICORE inline T saturate(float value)
{
    constexpr bool is_signed = T(-1) < T(0);
    constexpr int bits = 8 * int(sizeof(T)) - (is_signed ? 1 : 0);
    const float limit = 2.0f * float(uint64_t(1) << (bits - 1));
    const T highest = T(~uint64_t(0) >> (64 - bits));
    if (value >= limit) {
        return highest;
    }
    if (is_signed) {
        return value <= -limit ? T(-highest - 1) : value != value ? T(0) : T(int64_t(value));
    }
    return value > 0.0f ? T(uint64_t(value)) : T(0);
}

/// The nearest bf16, of two the even one.
AICORE inline bfloat16_t bf16(float value)
{
    const uint32_t bits = bits_as<uint32_t>(value);
    const uint32_t rounded = value != value ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
    return bits_as<bfloat16_t>(uint16_t(rounded >> 16));
}

/// The number that a bf16 is.
AICORE inline float float_of(bfloat16_t value)
{
    return bits_as<float>(uint32_t(bits_as<uint16_t>(value)) << 16);
}

// Floats of 8 bits.

/// Without infinities: what is too large becomes the largest number.
struct E4M3 {
    static constexpr int MANTISSA_BITS = 3;
    static constexpr int BIAS = 7;
    static constexpr uint32_t BEYOND = 0x7e;
    static constexpr uint32_t INFINITE = 0xff;
    static constexpr uint32_t NOT_A_NUMBER = 0x7f;
};

/// With infinities.
struct E5M2 {
    static constexpr int MANTISSA_BITS = 2;
    static constexpr int BIAS = 15;
    static constexpr uint32_t BEYOND = 0x7c;
    static constexpr uint32_t INFINITE = 0x7c;
    static constexpr uint32_t NOT_A_NUMBER = 0x7e;
};

/// The distance between the smallest numbers of a format.
template <typename Format>
AICORE inline float least_step()
{
    return bits_as<float>(uint32_t(127 + 1 - Format::BIAS - Format::MANTISSA_BITS) << 23);
}

template <typename Format>
AICORE inline float float_of_f8(uint8_t bits)
{
    const uint32_t sign = uint32_t(bits & 0x80) << 24;
    const uint32_t magnitude = bits & 0x7f;
    if (magnitude > Format::BEYOND) {
        return bits_as<float>(sign | 0x7fc00000);
    }
    if (magnitude == Format::INFINITE) {
        return bits_as<float>(sign | 0x7f800000);
    }
    if (magnitude >> Format::MANTISSA_BITS == 0) {
        const float value = float(magnitude) * least_step<Format>();
        return sign == 0 ? value : -value;
    }
    return bits_as<float>(sign | ((magnitude + ((127 - Format::BIAS) << Format::MANTISSA_BITS)) << (23 - Format::MANTISSA_BITS)));
}

/// The nearest number, of two the even one.
template <typename Format>
AICORE inline uint8_t f8_of_float(float value)
{
    constexpr int DROPPED = 23 - Format::MANTISSA_BITS;
    const uint32_t bits = bits_as<uint32_t>(value);
    const uint32_t sign = bits >> 24 & 0x80;
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
        return uint8_t(sign | Format::NOT_A_NUMBER);
    }
    uint32_t result;
    if (magnitude < uint32_t(127 + 1 - Format::BIAS) << 23) {
        // Adding a number whose last bit is 1 rounds.
        const float steps = bits_as<float>(magnitude) / least_step<Format>();
        result = uint32_t((steps + 8388608.0f) - 8388608.0f);
    } else {
        const uint32_t rounded = magnitude + (1u << (DROPPED - 1)) - 1 + (magnitude >> DROPPED & 1);
        result = (rounded >> DROPPED) - (uint32_t(127 - Format::BIAS) << Format::MANTISSA_BITS);
    }
    return uint8_t(sign | (result < Format::BEYOND ? result : Format::BEYOND));
}

// What the scalar unit computes with tiles: what the vector unit of a target lacks.

/// Every element that is in use of a tile.
#define PLD_EACH(row, col, tile)                                           \
    for (uint32_t row = 0; row < uint32_t((tile).GetValidRow()); row++)    \
        for (uint32_t col = 0; col < uint32_t((tile).GetValidCol()); col++)

namespace scalar {

struct Add {
    template <typename T>
    static AICORE T of(T a, T b)
    {
        return pld::add<T>(a, b);
    }
};

struct Sub {
    template <typename T>
    static AICORE T of(T a, T b)
    {
        return pld::sub<T>(a, b);
    }
};

struct Mul {
    template <typename T>
    static AICORE T of(T a, T b)
    {
        return pld::mul<T>(a, b);
    }
};

struct Max {
    template <typename T>
    static AICORE T of(T a, T b)
    {
        return pld::max<T>(a, b);
    }
};

struct Min {
    template <typename T>
    static AICORE T of(T a, T b)
    {
        return pld::min<T>(a, b);
    }
};

/// An element of a tile.
template <typename Operand>
AICORE inline auto value_at(Operand &operand, uint32_t row, uint32_t col, int) -> decltype(operand.GetValue(0))
{
    return operand.GetValue(row * Operand::Cols + col);
}

/// A number, which is the same for every element.
template <typename T>
AICORE inline T value_at(const T &value, uint32_t, uint32_t, long)
{
    return value;
}

template <typename Op, typename Dst, typename A, typename B>
AICORE inline void combine(Dst &dst, A &a, B &b)
{
    using T = typename Dst::DType;
    PLD_EACH(row, col, dst) {
        const T result = Op::template of<T>(value_at(a, row, col, 0), T(value_at(b, row, col, 0)));
        dst.SetValue(row * Dst::Cols + col, result);
    }
}

template <typename Dst, typename A, typename B>
AICORE inline void add(Dst &dst, A &a, B &&b)
{
    combine<Add>(dst, a, b);
}

template <typename Dst, typename A, typename B>
AICORE inline void sub(Dst &dst, A &a, B &&b)
{
    combine<Sub>(dst, a, b);
}

template <typename Dst, typename A, typename B>
AICORE inline void mul(Dst &dst, A &a, B &&b)
{
    combine<Mul>(dst, a, b);
}

template <typename Dst, typename A, typename B>
AICORE inline void max(Dst &dst, A &a, B &&b)
{
    combine<Max>(dst, a, b);
}

template <typename Dst, typename A, typename B>
AICORE inline void min(Dst &dst, A &a, B &&b)
{
    combine<Min>(dst, a, b);
}

/// Divides integers; yes if it comes upon a division by zero.
template <typename Dst, typename A, typename B>
AICORE inline bool div(Dst &dst, A &a, B &&b)
{
    using T = typename Dst::DType;
    PLD_EACH(row, col, dst) {
        const T divisor = T(value_at(b, row, col, 0));
        if (divisor == 0) {
            return true;
        }
        const T dividend = value_at(a, row, col, 0);
        constexpr bool is_signed = T(-1) < T(0);
        dst.SetValue(row * Dst::Cols + col, is_signed ? pld::div<T>(dividend, divisor) : T(dividend / divisor));
    }
    return false;
}

template <typename Dst>
AICORE inline void fill(Dst &dst, typename Dst::DType value)
{
    PLD_EACH(row, col, dst) {
        dst.SetValue(row * Dst::Cols + col, value);
    }
}

template <typename To>
AICORE inline To converted(float value, To)
{
    return saturate<To>(value);
}

template <typename To, typename From>
AICORE inline To converted(From value, To)
{
    return To(value);
}

/// Between integers, and from and to f32.
template <typename Dst, typename Src>
AICORE inline void cast(Dst &dst, Src &src)
{
    using T = typename Dst::DType;
    PLD_EACH(row, col, dst) {
        dst.SetValue(row * Dst::Cols + col, converted(value_at(src, row, col, 0), T(0)));
    }
}

/// To bool.
template <typename Dst, typename Src>
AICORE inline void is_nonzero(Dst &dst, Src &src)
{
    PLD_EACH(row, col, dst) {
        dst.SetValue(row * Dst::Cols + col, value_at(src, row, col, 0) != 0);
    }
}

/// From floats of 8 bits to f32.
template <typename Format, typename Dst, typename Src>
AICORE inline void from_f8(Dst &dst, Src &src)
{
    PLD_EACH(row, col, dst) {
        dst.SetValue(row * Dst::Cols + col, float_of_f8<Format>(value_at(src, row, col, 0)));
    }
}

/// From f32 to floats of 8 bits.
template <typename Format, typename Dst, typename Src>
AICORE inline void to_f8(Dst &dst, Src &src)
{
    PLD_EACH(row, col, dst) {
        dst.SetValue(row * Dst::Cols + col, f8_of_float<Format>(value_at(src, row, col, 0)));
    }
}

template <typename Op, typename Dst, typename Src>
AICORE inline void reduce_rows(Dst &dst, Src &src)
{
    using T = typename Dst::DType;
    for (uint32_t row = 0; row < uint32_t(src.GetValidRow()); row++) {
        T all = value_at(src, row, 0, 0);
        for (uint32_t col = 1; col < uint32_t(src.GetValidCol()); col++) {
            all = Op::template of<T>(all, value_at(src, row, col, 0));
        }
        dst.SetValue(row * Dst::Cols, all);
    }
}

template <typename Op, typename Dst, typename Src>
AICORE inline void reduce_cols(Dst &dst, Src &src)
{
    using T = typename Dst::DType;
    for (uint32_t col = 0; col < uint32_t(src.GetValidCol()); col++) {
        T all = value_at(src, 0, col, 0);
        for (uint32_t row = 1; row < uint32_t(src.GetValidRow()); row++) {
            all = Op::template of<T>(all, value_at(src, row, col, 0));
        }
        dst.SetValue(col, all);
    }
}

template <typename Dst, typename Src>
AICORE inline void row_sum(Dst &dst, Src &src)
{
    reduce_rows<Add>(dst, src);
}

template <typename Dst, typename Src>
AICORE inline void row_max(Dst &dst, Src &src)
{
    reduce_rows<Max>(dst, src);
}

template <typename Dst, typename Src>
AICORE inline void col_sum(Dst &dst, Src &src)
{
    reduce_cols<Add>(dst, src);
}

template <typename Dst, typename Src>
AICORE inline void col_max(Dst &dst, Src &src)
{
    reduce_cols<Max>(dst, src);
}

} // namespace scalar

} // namespace pld
