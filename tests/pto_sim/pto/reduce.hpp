// Rows or columns of a tile become one element each.
#pragma once

#include "compute.hpp"

namespace pto_sim {

template <class T>
constexpr bool is_reduced_by_rows = is_one_of<T, float, half, int32_t, int16_t>;
template <class T>
constexpr bool is_reduced_by_cols = is_reduced_by_rows<T> || (is_a5 && is_arithmetic<T>);

// Column 0 of `to` becomes what each row of `from` comes to.
template <class Op, class D, class A, class Scratch>
void reduce_rows(D &to, const A &from, const Scratch &scratch, const char *name) {
  using T = typename A::DType;
  static_assert(std::is_same_v<T, typename D::DType> && std::is_same_v<T, typename Scratch::DType>,
                "all tiles have the same elements");
  static_assert(is_reduced_by_rows<T>, "the vector unit does not reduce rows of elements of this type");
  static_assert(A::isRowMajor && (D::isRowMajor || D::Cols == 1), "the result is a tile of rows, or one column");
  if (from.GetValidRow() == 0 || from.GetValidCol() == 0 || from.GetValidRow() != to.GetValidRow())
    fault("%s: %u x %u elements to %u rows", name, from.GetValidRow(), from.GetValidCol(), to.GetValidRow());
  core().issue(PIPE_V, name);
  touch(from, How::Read);
  touch(scratch, How::Write);
  touch(to, How::Write);
  for (unsigned r = 0; r < from.GetValidRow(); ++r) {
    T sum = from.data()[A::at(r, 0)];
    for (unsigned c = 1; c < from.GetValidCol(); ++c) sum = Op::of(sum, from.data()[A::at(r, c)]);
    to.data()[D::at(r, 0)] = sum;
  }
}

// Row 0 of `to` becomes what each column of `from` comes to.
template <class Op, class D, class A>
void reduce_cols(D &to, const A &from, const char *name) {
  using T = typename A::DType;
  static_assert(std::is_same_v<T, typename D::DType>, "both tiles have the same elements");
  static_assert(is_reduced_by_cols<T>, "the vector unit does not reduce columns of elements of this type");
  static_assert(A::isRowMajor && D::isRowMajor, "only rows of elements are here");
  if (from.GetValidRow() == 0 || from.GetValidCol() == 0 || from.GetValidCol() != to.GetValidCol())
    fault("%s: %u x %u elements to %u columns", name, from.GetValidRow(), from.GetValidCol(), to.GetValidCol());
  core().issue(PIPE_V, name);
  touch(from, How::Read);
  touch(to, How::Write);
  for (unsigned c = 0; c < from.GetValidCol(); ++c) {
    T sum = from.data()[A::at(0, c)];
    for (unsigned r = 1; r < from.GetValidRow(); ++r) sum = Op::of(sum, from.data()[A::at(r, c)]);
    to.data()[D::at(0, c)] = sum;
  }
}

}  // namespace pto_sim

namespace pto {

#define PTO_SIM_ROWS(NAME, OP)                                   \
  template <class D, class A, class Scratch>                     \
  RecordEvent NAME(D &to, A &from, Scratch &scratch) {           \
    pto_sim::reduce_rows<pto_sim::OP>(to, from, scratch, #NAME); \
    return {};                                                   \
  }
#define PTO_SIM_COLS(NAME, OP)                          \
  template <class D, class A>                           \
  RecordEvent NAME(D &to, A &from) {                    \
    pto_sim::reduce_cols<pto_sim::OP>(to, from, #NAME); \
    return {};                                          \
  }
PTO_SIM_ROWS(TROWSUM, Add)
PTO_SIM_ROWS(TROWPROD, Mul)
PTO_SIM_ROWS(TROWMAX, Max)
PTO_SIM_ROWS(TROWMIN, Min)
PTO_SIM_COLS(TCOLSUM, Add)
PTO_SIM_COLS(TCOLPROD, Mul)
PTO_SIM_COLS(TCOLMAX, Max)
PTO_SIM_COLS(TCOLMIN, Min)
#undef PTO_SIM_ROWS
#undef PTO_SIM_COLS

}  // namespace pto
