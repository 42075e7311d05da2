// Tiles of one type become tiles of another.
#pragma once

#include "compute.hpp"

namespace pto_sim {

// What the vector unit converts in one step.
template <class To, class From>
constexpr bool converts() {
  if constexpr (std::is_same_v<From, float>) return is_one_of<To, float, half, bfloat16_t, int64_t, int32_t, int16_t>;
  if constexpr (std::is_same_v<From, half>) return is_one_of<To, float, int32_t, int16_t, int8_t, uint8_t>;
  if constexpr (std::is_same_v<From, bfloat16_t>)
    return is_one_of<To, float, int32_t> || (is_a5 && std::is_same_v<To, half>);
  if constexpr (is_one_of<From, int8_t, uint8_t>)
    return std::is_same_v<To, half> || (is_a5 && is_one_of<To, int16_t, uint16_t, int32_t, uint32_t>);
  if constexpr (std::is_same_v<From, int16_t>)
    return is_one_of<To, half, float> || (is_a5 && is_one_of<To, int32_t, uint32_t, uint8_t>);
  if constexpr (std::is_same_v<From, int32_t>)
    return is_one_of<To, float, int64_t, int16_t> || (is_a5 && is_one_of<To, uint16_t, uint8_t>);
  if constexpr (std::is_same_v<From, int64_t>) return is_one_of<To, float, int32_t>;
  return false;
}

// A number without a fraction, or, from CAST_NONE, the nearest one.
inline double round_to(double value, pto::RoundMode mode) {
  using pto::RoundMode;
  switch (mode) {
    case RoundMode::CAST_ROUND: return std::round(value);
    case RoundMode::CAST_FLOOR: return std::floor(value);
    case RoundMode::CAST_CEIL: return std::ceil(value);
    case RoundMode::CAST_TRUNC: return std::trunc(value);
    case RoundMode::CAST_ODD: {
      const double low = std::floor(value);
      return value == low || std::fmod(low, 2) != 0 ? low : low + 1;
    }
    default: return std::nearbyint(value);
  }
}

// Saturated to a type of integers; what is no number becomes 0.
template <class To>
To saturate(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (value >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <class To, class From>
To convert(From from, pto::RoundMode mode, bool saturates) {
  if constexpr (is_float<From> && is_float<To>) {
    if (mode != pto::RoundMode::CAST_RINT && mode != pto::RoundMode::CAST_NONE && sizeof(To) <= sizeof(From))
      fault("TCVT between floats: only CAST_RINT is here");
    return static_cast<To>(static_cast<float>(from));
  } else if constexpr (is_float<From>) {
    const double value = round_to(static_cast<float>(from), mode);
    return saturates ? saturate<To>(value)
                     : static_cast<To>(saturate<std::conditional_t<sizeof(To) == 8, int64_t, int32_t>>(value));
  } else if constexpr (is_float<To>) {
    return static_cast<To>(static_cast<float>(from));
  } else {
    if (!saturates) return static_cast<To>(from);
    const __int128 value = from;
    if (value < std::numeric_limits<To>::min()) return std::numeric_limits<To>::min();
    if (value > std::numeric_limits<To>::max()) return std::numeric_limits<To>::max();
    return static_cast<To>(from);
  }
}

// Narrowing conversions whose default is to keep the lower bits.
template <class To, class From>
constexpr bool wraps_by_default = (std::is_same_v<From, half> && is_one_of<To, uint8_t, int8_t, int16_t>) ||
                                  (std::is_same_v<From, float> && std::is_same_v<To, int16_t>) ||
                                  (std::is_same_v<From, int64_t> && std::is_same_v<To, int32_t>) ||
                                  (std::is_same_v<From, int32_t> && std::is_same_v<To, int16_t>);

}  // namespace pto_sim

namespace pto {

template <class D, class A>
RecordEvent TCVT(D &to, A &from, RoundMode mode, SaturationMode saturation) {
  using To = typename D::DType;
  static_assert(pto_sim::converts<To, typename A::DType>(), "the vector unit does not convert these types in one step");
  static_assert(D::isRowMajor && A::isRowMajor, "only rows of elements are here");
  pto_sim::same_valid(to, from, "TCVT");
  pto_sim::core().issue(PIPE_V, "TCVT");
  pto_sim::touch(from, pto_sim::How::Read);
  pto_sim::touch(to, pto_sim::How::Write);
  // Only those that narrow can be told not to saturate.
  const bool saturates = saturation == SaturationMode::ON || !pto_sim::wraps_by_default<To, typename A::DType>;
  pto_sim::each(to, [&](unsigned r, unsigned c) {
    to.data()[D::at(r, c)] = pto_sim::convert<To>(from.data()[A::at(r, c)], mode, saturates);
  });
  return {};
}

template <class D, class A>
RecordEvent TCVT(D &to, A &from, RoundMode mode) {
  constexpr bool wraps = pto_sim::wraps_by_default<typename D::DType, typename A::DType>;
  return TCVT(to, from, mode, wraps ? SaturationMode::OFF : SaturationMode::ON);
}

}  // namespace pto
