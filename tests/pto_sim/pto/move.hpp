// Between global memory and tiles.
#pragma once

#include "tensor.hpp"

namespace pto_sim {

// Adds to an element of global memory, atomically: of all processes and cores.
template <class T>
void atomic_add(T *address, T value) {
  using Bits = std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;
  auto *cell = reinterpret_cast<Bits *>(address);
  Bits before = __atomic_load_n(cell, __ATOMIC_RELAXED), after;
  do {
    T old;
    std::memcpy(&old, &before, sizeof old);
    const T sum = static_cast<T>(static_cast<Wide<T>>(old) + static_cast<Wide<T>>(value));
    std::memcpy(&after, &sum, sizeof after);
  } while (!__atomic_compare_exchange_n(cell, &before, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

// What a transfer of a tile needs of the tensor; its region.
template <class Tile, class Tensor>
Region check_transfer(const Tile &tile, const Tensor &tensor, const char *name) {
  using T = typename Tile::DType;
  static_assert(std::is_same_v<T, typename Tensor::RawDType>, "tile and tensor have the same elements");
  static_assert(Tensor::layout == pto::Layout::ND && Tile::isRowMajor, "only rows of elements are here");
  int64_t shape[5], stride[5];
  for (int i = 0; i < 5; ++i) {
    shape[i] = tensor.GetShape(i);
    stride[i] = tensor.GetStride(i);
    if (shape[i] < 1) fault("%s: size %lld in dimension %d", name, static_cast<long long>(shape[i]), i);
  }
  const int64_t rows = shape[0] * shape[1] * shape[2] * shape[3], cols = shape[4];
  if (rows != tile.GetValidRow() || cols != tile.GetValidCol())
    fault("%s: a tensor of %lld x %lld elements, and a tile of which %u x %u are valid", name,
          static_cast<long long>(rows), static_cast<long long>(cols), tile.GetValidRow(), tile.GetValidCol());
  if (shape[3] > 4095) fault("%s: %lld rows; 4095 at most", name, static_cast<long long>(shape[3]));
  if (stride[4] != 1 && cols > 1)
    fault("%s: elements of a row are %lld apart; they must be neighbours", name, static_cast<long long>(stride[4]));
  const int64_t gap = (stride[3] - cols) * static_cast<int64_t>(sizeof(T));
  if (shape[3] > 1 && (gap < 0 || gap > UINT32_MAX))
    fault("%s: rows of %lld elements are %lld apart", name, static_cast<long long>(cols),
          static_cast<long long>(stride[3]));
  if (reinterpret_cast<uintptr_t>(tensor.data()) % sizeof(T))
    fault("%s: %p is no address of an element", name, static_cast<void *>(tensor.data()));
  Region region{reinterpret_cast<size_t>(tensor.data()), static_cast<size_t>(cols) * sizeof(T), {}, {}};
  for (int i = 0; i < 4; ++i) {
    region.counts[i] = shape[i];
    region.strides[i] = stride[i] * static_cast<int64_t>(sizeof(T));
  }
  return region;
}

template <pto::AtomicType Atomic, class Tensor, class Tile>
void store(const Tensor &to, const Tile &tile, const char *name) {
  using T = typename Tile::DType;
  constexpr bool add = Atomic == pto::AtomicType::AtomicAdd;
  static_assert(
      !add || is_one_of<T, float, half, int32_t, int16_t, int8_t> || (std::is_same_v<T, bfloat16_t> && !is_a5),
      "the card cannot add to elements of this type");
  const Region region = check_transfer(tile, to, name);
  core().issue(PIPE_MTE3, name);
  touch(tile, How::Read);
  core().touch(region, add ? How::Add : How::Write);
  const T *row = tile.data();
  region.each_row([&](size_t address) {
    T *place = reinterpret_cast<T *>(address);
    if constexpr (add) {
      for (unsigned col = 0; col < tile.GetValidCol(); ++col) atomic_add(place + col, row[col]);
    } else {
      std::memcpy(place, row, region.row_bytes);
    }
    row += Tile::Cols;
  });
}

}  // namespace pto_sim

namespace pto {

template <class Tile, class Tensor>
RecordEvent TLOAD(Tile &tile, Tensor &from) {
  const pto_sim::Region region = pto_sim::check_transfer(tile, from, "TLOAD");
  pto_sim::core().issue(PIPE_MTE2, "TLOAD");
  pto_sim::core().touch(region, pto_sim::How::Read);
  pto_sim::touch(tile, pto_sim::How::Write);
  auto *row = tile.data();
  region.each_row([&](size_t address) {
    std::memcpy(row, reinterpret_cast<const void *>(address), region.row_bytes);
    row += Tile::Cols;
  });
  return {};
}

template <class Tile, class Tensor>
RecordEvent TSTORE(Tensor &to, Tile &tile) {
  pto_sim::store<AtomicType::AtomicNone>(to, tile, "TSTORE");
  return {};
}
template <class Tile, class Tensor, AtomicType Atomic>
RecordEvent TSTORE(Tensor &to, Tile &tile) {
  pto_sim::store<Atomic>(to, tile, "TSTORE");
  return {};
}

}  // namespace pto
