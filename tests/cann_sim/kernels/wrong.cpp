// Kernels that do one thing wrong each. The first argument is device memory, of 4096 bytes; the second host memory.
#include <cstdint>

#include <pto/pto-inst.hpp>
#include <pto/comm/pto_comm_inst.hpp>

using namespace pto;

using Line = Tile<TileType::Vec, float, 1, 32>;
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 32>, Stride<1, 1, 1, 1, 1>>;

struct Args {
  float *memory, *host;
};

// The lines of a kernel, behind two tiles and a row.
#define KERNEL(name, ...)                                            \
  static void name(Args args) {                                      \
    Line a, b;                                                       \
    TASSIGN(a, 0);                                                   \
    TASSIGN(b, 128);                                                 \
    Row row(args.memory);                                            \
    __VA_ARGS__                                                      \
  }                                                                  \
  extern "C" void name##_sim(const uint64_t *args, uint32_t block) { \
    cpu_sim::set_execution_context(block, 0, 1);                     \
    name(*reinterpret_cast<const Args *>(args));                     \
  }

KERNEL(beyond, row.SetAddr(args.memory + 1000); TLOAD(a, row);)
KERNEL(of_the_host, row.SetAddr(args.host); TLOAD(a, row);)
KERNEL(null_pointer, TLOAD(a, row); *reinterpret_cast<volatile int *>(8) = 1;)
KERNEL(notify_the_host, comm::Signal cell(reinterpret_cast<int32_t *>(args.host)); comm::TNOTIFY(cell, 1, comm::NotifyOp::Set);)
KERNEL(division, volatile int zero = 0; a.SetValue(0, 7 / zero);)
KERNEL(no_place, Line nowhere; TLOAD(nowhere, row);)
KERNEL(behind_ub, TASSIGN(a, PTO_SIM_UB_BYTES - 96); TLOAD(a, row);)
KERNEL(unaligned, TASSIGN(a, 16); TLOAD(a, row);)
KERNEL(never_written, TSTORE(row, a);)
KERNEL(no_flag, TLOAD(a, row); TADDS(b, a, 1.0f);)
KERNEL(no_barrier, TEXPANDS(a, 1.0f); TADDS(b, a, 1.0f);)
KERNEL(overwritten, TLOAD(a, row); pipe_barrier(PIPE_ALL); TSTORE(row, a); TLOAD(a, row);)
KERNEL(stale_memory, TLOAD(a, row); pipe_barrier(PIPE_ALL); TSTORE(row, a); TLOAD(b, row);)
KERNEL(scalar_too_soon, TLOAD(a, row); b.SetValue(0, a.GetValue(0));)
KERNEL(early_notify, TLOAD(a, row); pipe_barrier(PIPE_ALL); TSTORE(row, a);
       comm::Signal cell(reinterpret_cast<int32_t *>(args.memory) + 512); comm::TNOTIFY(cell, 1, comm::NotifyOp::Set);)
KERNEL(flag_left, set_flag(PIPE_MTE2, PIPE_V, EVENT_ID3);)
KERNEL(flag_twice, set_flag(PIPE_MTE2, PIPE_V, EVENT_ID3); set_flag(PIPE_MTE2, PIPE_V, EVENT_ID3);)
KERNEL(flag_unset, wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID3);)
KERNEL(shapes, Tile<TileType::Vec, float, 2, 32> c; TASSIGN(c, 0); TLOAD(c, row);)
KERNEL(valid_parts, Tile<TileType::Vec, float, 1, 32, BLayout::RowMajor, 1, DYNAMIC> c(8); TASSIGN(c, 256); TEXPANDS(a, 1.0f);
       TEXPANDS(c, 1.0f); pipe_barrier(PIPE_V); TADD(b, a, c);)
