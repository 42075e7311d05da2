// Words and types of PTO-ISA. What says where code and data live means nothing on a CPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#define AICORE
#define __global__
#define __aicore__
#define __gm__
#define __ubuf__
#define PTO_INST AICORE inline
#define PTO_INTERNAL AICORE inline

using half = _Float16;

// The upper half of a float; numbers become the nearest one, of two the even one.
struct bfloat16_t {
  uint16_t bits;

  bfloat16_t() = default;
  explicit bfloat16_t(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const bool is_nan = (wide & 0x7fffffff) > 0x7f800000;
    bits = static_cast<uint16_t>(is_nan ? wide >> 16 | 0x40 : (wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  operator float() const {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};

// The units of a core that run beside each other.
enum pipe_t { PIPE_S, PIPE_V, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_M, PIPE_ALL, PIPE_FIX };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace pto {

constexpr int DYNAMIC = -1;

enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class PadValue : uint64_t { Null, Zero, Max, Min };
enum class CompactMode { Null, Normal };
enum class Layout { ND, DN, NZ };
enum class AtomicType : uint8_t { AtomicNone, AtomicAdd };
enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class SaturationMode : uint8_t { ON, OFF };

namespace TileConfig {
constexpr int fractalABSize = 512;
}
namespace GlobalTensorDim {
constexpr int DIM_0 = 0, DIM_1 = 1, DIM_2 = 2, DIM_3 = 3, DIM_4 = 4, TOTAL_DIM = 5;
}

// What an instruction returns for others to wait for; here it has ended then.
struct RecordEvent {};

}  // namespace pto

namespace pto_sim {

// 2 for A2/A3, 5 for A5.
#ifndef PTO_SIM_GENERATION
#define PTO_SIM_GENERATION 2
#endif
constexpr bool is_a5 = PTO_SIM_GENERATION == 5;

template <class T, class... Types>
constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

template <class T>
constexpr bool is_float = is_one_of<T, float, half, bfloat16_t>;

// The type in which elements are computed with: narrow floats in float, of which the result is rounded once.
template <class T>
using Wide = std::conditional_t<is_float<T>, float, T>;

}  // namespace pto_sim
