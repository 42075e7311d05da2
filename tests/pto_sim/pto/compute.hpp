// The vector unit: element by element, of tiles and scalars.
#pragma once

#include <cmath>

#include "tensor.hpp"

namespace pto_sim {

// The element types of the vector unit's arithmetic.
template <class T>
constexpr bool is_arithmetic =
    is_one_of<T, float, half, int32_t, int16_t> ||
    (is_a5 && is_one_of<T, bfloat16_t, int64_t, uint64_t, uint32_t, uint16_t, int8_t, uint8_t>);

struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
  }
};
struct Mul {
  template <class T>
  static T of(T a, T b) {
    static_assert(!is_one_of<T, int8_t, uint8_t>, "the vector unit does not multiply elements of this type");
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  }
};
struct Div {
  template <class T>
  static T of(T a, T b) {
    static_assert(is_one_of<T, float, half>, "the vector unit does not divide elements of this type");
    return static_cast<T>(static_cast<float>(a) / static_cast<float>(b));
  }
};
// Which of two numbers comes first; what is none comes before all, and -0 before 0.
template <class T>
bool is_first(T a, T b, bool is_none_first) {
  if constexpr (is_float<T>) {
    const float x = static_cast<float>(a), y = static_cast<float>(b);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == is_none_first;
    if (x == y) return std::signbit(x);
  }
  return static_cast<Wide<T>>(a) < static_cast<Wide<T>>(b);
}
// What is no number is the result.
struct Max {
  template <class T>
  static T of(T a, T b) {
    return is_first(a, b, false) ? b : a;
  }
};
struct Min {
  template <class T>
  static T of(T a, T b) {
    return is_first(a, b, true) ? a : b;
  }
};

template <class A, class B>
void same_valid(const A &a, const B &b, const char *name) {
  if (a.GetValidRow() != b.GetValidRow() || a.GetValidCol() != b.GetValidCol())
    fault("%s: tiles of which %u x %u and %u x %u elements are valid", name, a.GetValidRow(), a.GetValidCol(),
          b.GetValidRow(), b.GetValidCol());
}

// Calls this with the row and column of every valid element.
template <class Tile, class F>
void each(const Tile &tile, F visit) {
  for (unsigned row = 0; row < tile.GetValidRow(); ++row)
    for (unsigned col = 0; col < tile.GetValidCol(); ++col) visit(row, col);
}

template <class Op, class D, class A, class B>
void combine(D &to, const A &a, const B &b, const char *name) {
  using T = typename D::DType;
  static_assert(std::is_same_v<T, typename A::DType> && std::is_same_v<T, typename B::DType>,
                "all tiles have the same elements");
  static_assert(is_arithmetic<T>, "the vector unit does not compute with elements of this type");
  static_assert(D::isRowMajor && A::isRowMajor && B::isRowMajor, "only rows of elements are here");
  same_valid(to, a, name);
  same_valid(to, b, name);
  core().issue(PIPE_V, name);
  touch(a, How::Read);
  touch(b, How::Read);
  touch(to, How::Write);
  each(to,
       [&](unsigned r, unsigned c) { to.data()[D::at(r, c)] = Op::of(a.data()[A::at(r, c)], b.data()[B::at(r, c)]); });
}

template <class Op, class D, class A>
void combine_scalar(D &to, const A &a, typename A::DType b, const char *name) {
  using T = typename D::DType;
  static_assert(std::is_same_v<T, typename A::DType>, "both tiles have the same elements");
  static_assert(is_arithmetic<T>, "the vector unit does not compute with elements of this type");
  static_assert(D::isRowMajor && A::isRowMajor, "only rows of elements are here");
  same_valid(to, a, name);
  core().issue(PIPE_V, name);
  touch(a, How::Read);
  touch(to, How::Write);
  each(to, [&](unsigned r, unsigned c) { to.data()[D::at(r, c)] = Op::of(a.data()[A::at(r, c)], b); });
}

}  // namespace pto_sim

namespace pto {

#define PTO_SIM_TILES(NAME, OP)                     \
  template <class D, class A, class B>              \
  RecordEvent NAME(D &to, A &a, B &b) {             \
    pto_sim::combine<pto_sim::OP>(to, a, b, #NAME); \
    return {};                                      \
  }
#define PTO_SIM_SCALAR(NAME, OP)                           \
  template <class D, class A>                              \
  RecordEvent NAME(D &to, A &a, typename A::DType b) {     \
    pto_sim::combine_scalar<pto_sim::OP>(to, a, b, #NAME); \
    return {};                                             \
  }
PTO_SIM_TILES(TADD, Add)
PTO_SIM_TILES(TSUB, Sub)
PTO_SIM_TILES(TMUL, Mul)
PTO_SIM_TILES(TDIV, Div)
PTO_SIM_TILES(TMAX, Max)
PTO_SIM_TILES(TMIN, Min)
PTO_SIM_SCALAR(TADDS, Add)
PTO_SIM_SCALAR(TSUBS, Sub)
PTO_SIM_SCALAR(TMULS, Mul)
PTO_SIM_SCALAR(TDIVS, Div)
PTO_SIM_SCALAR(TMAXS, Max)
PTO_SIM_SCALAR(TMINS, Min)
#undef PTO_SIM_TILES
#undef PTO_SIM_SCALAR

// The scalar over the tile.
template <class D, class A>
RecordEvent TDIVS(D &to, typename D::DType a, A &b) {
  static_assert(std::is_same_v<typename D::DType, typename A::DType>, "both tiles have the same elements");
  pto_sim::same_valid(to, b, "TDIVS");
  pto_sim::core().issue(PIPE_V, "TDIVS");
  pto_sim::touch(b, pto_sim::How::Read);
  pto_sim::touch(to, pto_sim::How::Write);
  pto_sim::each(to,
                [&](unsigned r, unsigned c) { to.data()[D::at(r, c)] = pto_sim::Div::of(a, b.data()[A::at(r, c)]); });
  return {};
}

// Every valid element becomes the scalar.
template <class D>
RecordEvent TEXPANDS(D &to, typename D::DType value) {
  static_assert(sizeof(value) < 8 || pto_sim::is_a5, "the vector unit does not fill with elements of this type");
  pto_sim::core().issue(PIPE_V, "TEXPANDS");
  pto_sim::touch(to, pto_sim::How::Write);
  pto_sim::each(to, [&](unsigned r, unsigned c) { to.data()[D::at(r, c)] = value; });
  return {};
}

template <class D, class A>
RecordEvent TMOV(D &to, A &from) {
  static_assert(std::is_same_v<typename D::DType, typename A::DType>, "both tiles have the same elements");
  static_assert(D::Rows == A::Rows && D::Cols == A::Cols && D::isRowMajor == A::isRowMajor,
                "both tiles have the same shape");
  pto_sim::same_valid(to, from, "TMOV");
  if (to.GetValidRow() == 0 || to.GetValidCol() == 0) pto_sim::fault("TMOV: no element is valid");
  pto_sim::core().issue(PIPE_V, "TMOV");
  pto_sim::touch(from, pto_sim::How::Read);
  pto_sim::touch(to, pto_sim::How::Write);
  pto_sim::each(to, [&](unsigned r, unsigned c) { to.data()[D::at(r, c)] = from.data()[A::at(r, c)]; });
  return {};
}

}  // namespace pto
