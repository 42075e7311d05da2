// Regions of global memory, and tiles of the unified buffer, with the parameters that PTO-ISA gives them.
#pragma once

#include "core.hpp"

namespace pto_sim {

// Five numbers, of which some are known when the kernel is compiled; the others are 1 unless given.
template <int64_t N1, int64_t N2, int64_t N3, int64_t N4, int64_t N5>
struct Sizes {
  static constexpr int64_t known[5] = {N1, N2, N3, N4, N5};
  int64_t values[5];

  Sizes() : values{1, 1, 1, 1, 1} { know(); }
  Sizes(int64_t n1, int64_t n2, int64_t n3, int64_t n4, int64_t n5) : values{n1, n2, n3, n4, n5} { know(); }
  // Of those that are not known only.
  template <class... Numbers, std::enable_if_t<(sizeof...(Numbers) > 0 && sizeof...(Numbers) < 5), int> = 0>
  Sizes(Numbers... numbers) : Sizes() {
    static_assert(sizeof...(Numbers) == (N1 < 0) + (N2 < 0) + (N3 < 0) + (N4 < 0) + (N5 < 0),
                  "as many as are not known");
    const int64_t given[] = {static_cast<int64_t>(numbers)...};
    for (int i = 0, next = 0; i < 5; ++i)
      if (known[i] == pto::DYNAMIC) values[i] = given[next++];
  }

 private:
  void know() {
    for (int i = 0; i < 5; ++i)
      if (known[i] != pto::DYNAMIC) values[i] = known[i];
  }
};

}  // namespace pto_sim

namespace pto {

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC, int64_t N5 = DYNAMIC>
struct Shape : pto_sim::Sizes<N1, N2, N3, N4, N5> {
  using pto_sim::Sizes<N1, N2, N3, N4, N5>::Sizes;
};

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC, int64_t N5 = DYNAMIC>
struct Stride : pto_sim::Sizes<N1, N2, N3, N4, N5> {
  using pto_sim::Sizes<N1, N2, N3, N4, N5>::Sizes;
};

template <class Element, class Shape_, class Stride_, Layout Layout_ = Layout::ND>
class GlobalTensor {
 public:
  using Shape = Shape_;
  using Stride = Stride_;
  using RawDType = std::remove_cv_t<Element>;
  using DType = RawDType;
  static constexpr Layout layout = Layout_;

  GlobalTensor() = default;
  GlobalTensor(DType *data, const Shape &shape = {}, const Stride &stride = {})
      : data_(data), shape_(shape), stride_(stride) {}

  int64_t GetShape(int dim) const { return shape_.values[dim]; }
  int64_t GetStride(int dim) const { return stride_.values[dim]; }
  DType *data() const { return data_; }
  void SetAddr(DType *data) { data_ = data; }

 private:
  DType *data_ = nullptr;
  Shape shape_;
  Stride stride_;
};

template <TileType Loc_, class Element, int Rows_, int Cols_, BLayout BFractal_ = BLayout::RowMajor,
          int RowValid = Rows_, int ColValid = Cols_, SLayout SFractal_ = SLayout::NoneBox,
          int SFractalSize_ = TileConfig::fractalABSize, PadValue PadVal_ = PadValue::Null,
          CompactMode Compact_ = CompactMode::Null>
class Tile {
 public:
  using DType = Element;
  static constexpr TileType Loc = Loc_;
  static constexpr int Rows = Rows_, Cols = Cols_, ValidRow = RowValid, ValidCol = ColValid;
  static constexpr bool isRowMajor = BFractal_ == BLayout::RowMajor;
  static_assert(Loc == TileType::Vec && SFractal_ == SLayout::NoneBox, "only tiles of a vector core are here");
  static_assert(Rows > 0 && Cols > 0 && ValidRow <= Rows && ValidCol <= Cols, "the valid part is part of the tile");
  static_assert((isRowMajor ? Cols : Rows) * sizeof(DType) % pto_sim::BLOCK_BYTES == 0,
                "rows are whole blocks of 32 bytes");
  static_assert(Rows < 4096, "fewer rows than 4096");

  Tile() = default;
  template <int R = ValidRow, int C = ValidCol>
  Tile(std::enable_if_t<R == DYNAMIC && C == DYNAMIC, unsigned> rows, unsigned cols)
      : rows_(check(rows, Rows)), cols_(check(cols, Cols)) {}
  template <int R = ValidRow, int C = ValidCol>
  Tile(std::enable_if_t<R == DYNAMIC && (C > 0), unsigned> rows) : rows_(check(rows, Rows)) {}
  template <int R = ValidRow, int C = ValidCol>
  Tile(std::enable_if_t<(R > 0) && C == DYNAMIC, unsigned> cols, int = 0) : cols_(check(cols, Cols)) {}

  unsigned GetValidRow() const { return rows_; }
  unsigned GetValidCol() const { return cols_; }
  void SetValidRow(unsigned rows) {
    static_assert(ValidRow == DYNAMIC, "the valid rows are fixed");
    rows_ = check(rows, Rows);
  }
  void SetValidCol(unsigned cols) {
    static_assert(ValidCol == DYNAMIC, "the valid columns are fixed");
    cols_ = check(cols, Cols);
  }
  void SetValidShape(unsigned rows, unsigned cols) {
    SetValidRow(rows);
    SetValidCol(cols);
  }

  DType *data() const {
    if (!data_) pto_sim::fault("a tile that TASSIGN has given no place");
    return data_;
  }

  // By the scalar unit.
  DType GetValue(uint32_t offset) const {
    touch_value(offset, pto_sim::How::Read);
    return data()[offset];
  }
  void SetValue(uint32_t offset, DType value) {
    touch_value(offset, pto_sim::How::Write);
    data()[offset] = value;
  }

  // The place of an element, in elements.
  static constexpr size_t at(size_t row, size_t col) { return isRowMajor ? row * Cols + col : col * Rows + row; }

  void assign(uint64_t offset) {
    if (offset % pto_sim::BLOCK_BYTES || offset > pto_sim::UB_BYTES ||
        sizeof(DType) * Rows * Cols > pto_sim::UB_BYTES - offset)
      pto_sim::fault("TASSIGN: a tile of %zu bytes at byte %llu of UB, which has %zu; tiles begin at multiples of 32",
                     sizeof(DType) * Rows * Cols, static_cast<unsigned long long>(offset), pto_sim::UB_BYTES);
    data_ = reinterpret_cast<DType *>(pto_sim::core().ub() + offset);
  }

 private:
  static unsigned check(unsigned size, int most) {
    if (size > static_cast<unsigned>(most))
      pto_sim::fault("a valid part of %u rows or columns, of a tile of %d", size, most);
    return size;
  }
  void touch_value(uint32_t offset, pto_sim::How how) const {
    if (offset >= Rows * Cols) pto_sim::fault("element %u of a tile that has %d", offset, Rows * Cols);
    pto_sim::core().issue(PIPE_S, "an access of the scalar unit");
    pto_sim::core().touch(reinterpret_cast<const unsigned char *>(data() + offset), sizeof(DType), how);
  }

  DType *data_ = nullptr;
  unsigned rows_ = ValidRow < 0 ? 0 : ValidRow, cols_ = ValidCol < 0 ? 0 : ValidCol;
};

}  // namespace pto

namespace pto_sim {

template <class T>
struct IsTile : std::false_type {};
template <pto::TileType L, class E, int R, int C, pto::BLayout B, int V, int W, pto::SLayout S, int F, pto::PadValue P,
          pto::CompactMode M>
struct IsTile<pto::Tile<L, E, R, C, B, V, W, S, F, P, M>> : std::true_type {};

// An instruction touches the valid part of a tile.
template <class T>
void touch(const T &tile, How how) {
  const size_t lines = T::isRowMajor ? tile.GetValidRow() : tile.GetValidCol();
  const size_t line = T::isRowMajor ? tile.GetValidCol() : tile.GetValidRow();
  for (size_t i = 0; i < lines && line; ++i) {
    const auto *first = tile.data() + (T::isRowMajor ? T::at(i, 0) : T::at(0, i));
    core().touch(reinterpret_cast<const unsigned char *>(first), line * sizeof *first, how);
  }
}

}  // namespace pto_sim

namespace pto {

// Gives a tile its place in UB, or a tensor its address.
template <class T, class Address>
void TASSIGN(T &object, Address address) {
  if constexpr (pto_sim::IsTile<T>::value) {
    static_assert(std::is_integral_v<Address>, "a tile's place is a number of bytes");
    object.assign(static_cast<uint64_t>(address));
  } else {
    static_assert(std::is_same_v<Address, typename T::DType *>, "a tensor's address is a pointer to its elements");
    object.SetAddr(address);
  }
}

}  // namespace pto
