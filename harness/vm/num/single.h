// SPDX-License-Identifier: MIT
// Conventions of f32 instructions: flushing, saturation, the canonical NaN, and exact fma.
#pragma once

#include <bit>
#include <cstdint>

#include "num/rounding.h"

namespace ptxvm::num {

inline constexpr uint32_t kCanonicalNan = 0x7fffffffu;

/// Subnormals become zeros of the same sign.
inline float flush(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}

template <bool kFtz>
inline float input(float x) {
  return kFtz ? flush(x) : x;
}

/// Every NaN that arithmetic makes is the same on the hardware.
inline float canonical(float x) {
  return x != x ? std::bit_cast<float>(kCanonicalNan) : x;
}

inline double quiet(double x) {
  return x != x ? std::bit_cast<double>(std::bit_cast<uint64_t>(x) | uint64_t{1} << 51) : x;
}

/// Double precision hands a NaN operand on, made quiet: of several the last one listed here. The
/// hardware prefers b, then (of an fma) c, then a.
template <class... T>
inline double with_nan(double result, T... operands) {
  ((result = operands != operands ? quiet(operands) : result), ...);
  return result;
}

/// [0, 1]; NaN and -0 become +0.
inline float saturate(float x) {
  x = x > 0.0f ? x : 0.0f;
  return x < 1.0f ? x : 1.0f;
}

template <bool kFtz, bool kSat>
inline float output(float x) {
  if constexpr (kSat) x = saturate(x);
  if constexpr (kFtz) x = flush(x);
  return canonical(x);
}

/// One rounding of a*b + c. The product of two singles is exact in double.
inline float fused(float a, float b, float c) {
  return static_cast<float>(add_to_odd(static_cast<double>(a) * b, c));
}

}  // namespace ptxvm::num
