// Kernels that do nothing wrong.
#include <cstdint>

#include <pto/pto-inst.hpp>
#include <pto/comm/pto_comm_inst.hpp>

using namespace pto;

#define ENTRY(name, ...)                                             \
  extern "C" void name##_sim(const uint64_t *args, uint32_t block) { \
    cpu_sim::set_execution_context(block, 0, 1);                     \
    name(__VA_ARGS__);                                               \
  }

template <class T>
T *pointer(uint64_t address) {
  return reinterpret_cast<T *>(address);
}

// A row of elements.
template <class T>
using Row = GlobalTensor<T, Shape<1, 1, 1, 1, DYNAMIC>, Stride<1, 1, 1, 1, 1>>;

template <class T>
AICORE Row<T> row(__gm__ T *data, int64_t size) {
  return Row<T>(data, Shape<1, 1, 1, 1, DYNAMIC>(size));
}

AICORE void order(pipe_t from, pipe_t to) {
  set_flag(from, to, EVENT_ID0);
  wait_flag(from, to, EVENT_ID0);
}

// Each block fills its row of `out` with `rank`, its number, and the place: 1000 * rank + 16 * block + place.
extern "C" __global__ AICORE void blocks(__gm__ int32_t *out, int64_t rank) {
  using Tile16 = Tile<TileType::Vec, int32_t, 1, 16>;
  const int64_t block = get_block_idx();
  Tile16 tile;
  TASSIGN(tile, 64);
  for (int place = 0; place < 16; ++place) tile.SetValue(place, 1000 * rank + 16 * block + place);
  order(PIPE_S, PIPE_MTE3);
  Row<int32_t> to = row(out + 16 * block, 16);
  TSTORE(to, tile);
}
ENTRY(blocks, pointer<int32_t>(args[0]), static_cast<int64_t>(args[1]))

// Adds 1 + place % 2 to every element of a peer's row, and 1 to its cell, `times` times.
template <class T>
AICORE void add(__gm__ T *out, __gm__ int32_t *cell, int64_t times) {
  using Tile64 = Tile<TileType::Vec, T, 1, 64>;
  Tile64 tile;
  TASSIGN(tile, 0);
  for (int place = 0; place < 64; ++place) tile.SetValue(place, static_cast<T>(1.0f + place % 2));
  order(PIPE_S, PIPE_MTE3);
  Row<T> to = row(out, 64);
  comm::Signal signal(cell);
  for (int64_t i = 0; i < times; ++i) {
    TSTORE<Tile64, Row<T>, AtomicType::AtomicAdd>(to, tile);
    pipe_barrier(PIPE_ALL);
    comm::TNOTIFY(signal, 1, comm::NotifyOp::AtomicAdd);
  }
}

#define ADD(name, T)                                                                                               \
  extern "C" __global__ AICORE void name(__gm__ T *out, __gm__ int32_t *cell, int64_t n) { add<T>(out, cell, n); } \
  ENTRY(name, pointer<T>(args[0]), pointer<int32_t>(args[1]), static_cast<int64_t>(args[2]))
ADD(add_float, float)
ADD(add_half, half)
ADD(add_bfloat16, bfloat16_t)
ADD(add_int32, int32_t)
ADD(add_int16, int16_t)
ADD(add_int8, int8_t)

// `epochs` times: puts rows x cols elements, each raised by the epoch, into the peer's window, tells it, and waits
// until the peer has done so here; then takes what came, raised by what is there, to `out`.
extern "C" __global__ AICORE void exchange(__gm__ float *in, __gm__ float *there, __gm__ float *here,
                                           __gm__ int32_t *cell_there, __gm__ int32_t *cell_here, __gm__ float *out,
                                           int64_t rows, int64_t cols, int64_t epochs) {
  using Chunk = Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
  using Matrix = GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, DYNAMIC>, Stride<1, 1, 1, DYNAMIC, 1>>;
  const Shape<1, 1, 1, DYNAMIC, DYNAMIC> shape(rows, cols);
  const Stride<1, 1, 1, DYNAMIC, 1> stride(cols);
  Matrix source(in, shape, stride), target(there, shape, stride), arrived(here, shape, stride), sum(out, shape, stride);
  comm::Signal signal(cell_there), own(cell_here);
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    Chunk ping(8, 16), pong(8, 16), one(8, 16);
    TASSIGN(ping, 0x0);
    TASSIGN(pong, 0x200);
    TASSIGN(one, 0x400);
    comm::TPUT(target, source, ping, pong);
    pipe_barrier(PIPE_ALL);
    comm::TNOTIFY(signal, 1, comm::NotifyOp::AtomicAdd);
    comm::TWAIT(own, static_cast<int32_t>(2 * epoch - 1), comm::WaitCmp::GE);
    comm::TGET(sum, arrived, one);
    pipe_barrier(PIPE_ALL);
    // Nobody overwrites what the other has not read.
    comm::TNOTIFY(signal, 1, comm::NotifyOp::AtomicAdd);
    comm::TWAIT(own, static_cast<int32_t>(2 * epoch), comm::WaitCmp::GE);
    for (int64_t first = 0; first < rows; ++first) {
      Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, DYNAMIC> line(cols);
      TASSIGN(line, 0x600);
      Row<float> next = row(in + first * cols, cols);
      TLOAD(line, next);
      order(PIPE_MTE2, PIPE_V);
      TADDS(line, line, static_cast<float>(epoch));
      order(PIPE_V, PIPE_MTE3);
      TSTORE(next, line);
      pipe_barrier(PIPE_ALL);
    }
  }
}
ENTRY(exchange, pointer<float>(args[0]), pointer<float>(args[1]), pointer<float>(args[2]), pointer<int32_t>(args[3]),
      pointer<int32_t>(args[4]), pointer<float>(args[5]), static_cast<int64_t>(args[6]), static_cast<int64_t>(args[7]),
      static_cast<int64_t>(args[8]))
