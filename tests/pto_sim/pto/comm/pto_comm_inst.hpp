// Instructions between cards.
#pragma once

#include <time.h>

#include "../move.hpp"

namespace pto::comm {

enum class NotifyOp : uint8_t { AtomicAdd, Set };
enum class WaitCmp : uint8_t { EQ, NE, GT, GE, LT, LE };

// One cell.
using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>, Layout::ND>;

}  // namespace pto::comm

namespace pto_sim {

// The cell of a signal, which the scalar unit touches.
template <class S>
int32_t *cell_of(const S &signal, const char *name) {
  static_assert(std::is_same_v<typename S::RawDType, int32_t>, "a signal is an int32");
  for (int dim = 0; dim < 5; ++dim)
    if (signal.GetShape(dim) != 1) fault("%s: a signal of more than one cell", name);
  const auto address = reinterpret_cast<uintptr_t>(signal.data());
  if (address % 4) fault("%s: a cell at %#zx, which is no multiple of 4", name, static_cast<size_t>(address));
  if (pto_sim_device) pto_sim_device->check(signal.data(), 4);
  return signal.data();
}

// Whoever waits in vain lets others run: shortly at first.
class Patience {
 public:
  void fail() {
    if (pto_sim_device) pto_sim_device->poll();
    if (++failures_ < 64) return;
    const timespec pause = {0, failures_ < 1024 ? 1000 : 100000};
    nanosleep(&pause, nullptr);
  }
  void succeed() { failures_ = 0; }

 private:
  unsigned failures_ = 0;
};

inline Patience &patience() {
  thread_local Patience patience;
  return patience;
}

// Moves a chunk through a tile.
template <pto::AtomicType Atomic, class To, class From, class Tile>
void move_chunk(To &to, From &from, Tile &tile, const char *name) {
  pto::TLOAD(tile, from);
  core().set_flag(PIPE_MTE2, PIPE_MTE3, 0);
  core().wait_flag(PIPE_MTE2, PIPE_MTE3, 0);
  store<Atomic>(to, tile, name);
  core().set_flag(PIPE_MTE3, PIPE_MTE2, 0);
  core().wait_flag(PIPE_MTE3, PIPE_MTE2, 0);
}

template <class Tile>
void set_valid(Tile &tile, int64_t rows, int64_t cols) {
  if constexpr (Tile::ValidRow == pto::DYNAMIC) tile.SetValidRow(static_cast<unsigned>(rows));
  if constexpr (Tile::ValidCol == pto::DYNAMIC) tile.SetValidCol(static_cast<unsigned>(cols));
}

// All of `from`, through tiles by turns, in chunks as large as they: at once if they fit, else by rows of dimension 3
// and columns. The chunks of a tensor that does not fit leave the tile's valid part as the last one had it.
template <pto::AtomicType Atomic, class To, class From, class Tile>
void transfer(To &to, From &from, Tile *const (&tiles)[2], const char *name) {
  using T = typename From::RawDType;
  static_assert(std::is_same_v<typename To::RawDType, T> && std::is_same_v<typename Tile::DType, T>,
                "all have the same elements");
  static_assert(To::layout == From::layout, "both tensors have the same layout");
  int64_t shape[5];
  for (int i = 0; i < 5; ++i) {
    shape[i] = from.GetShape(i);
    if (to.GetShape(i) != shape[i])
      fault("%s: dimension %d is %lld there and %lld here", name, i, static_cast<long long>(to.GetShape(i)),
            static_cast<long long>(shape[i]));
  }
  const int64_t rows = shape[0] * shape[1] * shape[2] * shape[3], cols = shape[4];
  const int64_t chunk_rows = tiles[0]->GetValidRow(), chunk_cols = tiles[0]->GetValidCol();
  if (chunk_rows == 0 || chunk_cols == 0) fault("%s: a tile of which nothing is valid", name);
  if (tiles[1]->GetValidRow() != chunk_rows || tiles[1]->GetValidCol() != chunk_cols)
    fault("%s: two tiles of different valid parts", name);
  if (rows == 0 || cols == 0) return;
  if (rows <= chunk_rows && cols <= chunk_cols) return move_chunk<Atomic>(to, from, *tiles[0], name);
  if ((Tile::ValidRow != pto::DYNAMIC && shape[3] % chunk_rows) ||
      (Tile::ValidCol != pto::DYNAMIC && cols % chunk_cols))
    fault("%s: %lld x %lld elements in chunks of %lld x %lld, with a tile whose valid part is fixed", name,
          static_cast<long long>(shape[3]), static_cast<long long>(cols), static_cast<long long>(chunk_rows),
          static_cast<long long>(chunk_cols));
  using Strides = pto::Stride<>;
  using Chunk = pto::GlobalTensor<T, pto::Shape<>, Strides, From::layout>;
  const auto strides = [](const auto &tensor) {
    return Strides(tensor.GetStride(0), tensor.GetStride(1), tensor.GetStride(2), tensor.GetStride(3),
                   tensor.GetStride(4));
  };
  const auto part = [&](const auto &tensor, int64_t a, int64_t b, int64_t c, int64_t row, int64_t col, int64_t nrows,
                        int64_t ncols) {
    T *data = tensor.data() + a * tensor.GetStride(0) + b * tensor.GetStride(1) + c * tensor.GetStride(2) +
              row * tensor.GetStride(3) + col * tensor.GetStride(4);
    return Chunk(data, pto::Shape<>(1, 1, 1, nrows, ncols), strides(tensor));
  };
  int turn = 0;
  for (int64_t a = 0; a < shape[0]; ++a)
    for (int64_t b = 0; b < shape[1]; ++b)
      for (int64_t c = 0; c < shape[2]; ++c)
        for (int64_t row = 0; row < shape[3]; row += chunk_rows)
          for (int64_t col = 0; col < cols; col += chunk_cols) {
            const int64_t nrows = std::min(chunk_rows, shape[3] - row), ncols = std::min(chunk_cols, cols - col);
            Tile &tile = *tiles[turn++ % 2];
            set_valid(tile, nrows, ncols);
            Chunk source = part(from, a, b, c, row, col, nrows, ncols),
                  target = part(to, a, b, c, row, col, nrows, ncols);
            move_chunk<Atomic>(target, source, tile, name);
          }
}

}  // namespace pto_sim

namespace pto::comm {

// Into a peer's memory, through one tile or two.
template <AtomicType Atomic = AtomicType::AtomicNone, class To, class From, class Tile>
RecordEvent TPUT(To &to, From &from, Tile &tile) {
  pto_sim::transfer<Atomic>(to, from, {&tile, &tile}, "TPUT");
  return {};
}
template <AtomicType Atomic = AtomicType::AtomicNone, class To, class From, class Tile>
RecordEvent TPUT(To &to, From &from, Tile &ping, Tile &pong) {
  pto_sim::transfer<Atomic>(to, from, {&ping, &pong}, "TPUT");
  return {};
}

// Out of a peer's memory.
template <class To, class From, class Tile>
RecordEvent TGET(To &to, From &from, Tile &tile) {
  pto_sim::transfer<AtomicType::AtomicNone>(to, from, {&tile, &tile}, "TGET");
  return {};
}
template <class To, class From, class Tile>
RecordEvent TGET(To &to, From &from, Tile &ping, Tile &pong) {
  pto_sim::transfer<AtomicType::AtomicNone>(to, from, {&ping, &pong}, "TGET");
  return {};
}

// Changes a cell; what the core has stored before must have ended.
template <class S>
void TNOTIFY(S &signal, int32_t value, NotifyOp op) {
  int32_t *cell = pto_sim::cell_of(signal, "TNOTIFY");
  pto_sim::core().require_stored("TNOTIFY");
  if (op == NotifyOp::AtomicAdd) {
    __atomic_fetch_add(cell, value, __ATOMIC_SEQ_CST);
  } else {
    __atomic_store_n(cell, value, __ATOMIC_SEQ_CST);
  }
  pipe_barrier(PIPE_ALL);
}

// Whether a cell compares so now.
template <class S>
bool TTEST(S &signal, int32_t value, WaitCmp cmp) {
  const int32_t actual = __atomic_load_n(pto_sim::cell_of(signal, "TTEST"), __ATOMIC_ACQUIRE);
  const bool holds = [&] {
    switch (cmp) {
      case WaitCmp::EQ: return actual == value;
      case WaitCmp::NE: return actual != value;
      case WaitCmp::GT: return actual > value;
      case WaitCmp::GE: return actual >= value;
      case WaitCmp::LT: return actual < value;
      case WaitCmp::LE: return actual <= value;
    }
    pto_sim::fault("comparison %d", static_cast<int>(cmp));
  }();
  holds ? pto_sim::patience().succeed() : pto_sim::patience().fail();
  return holds;
}

// Returns when it does, and not before.
template <class S>
void TWAIT(S &signal, int32_t value, WaitCmp cmp) {
  while (!TTEST(signal, value, cmp)) {
  }
}

}  // namespace pto::comm
