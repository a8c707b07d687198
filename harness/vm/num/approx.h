// SPDX-License-Identifier: MIT
// Approximate functions (PTX ISA 9.7.3): better than the hardware's bounds, not its bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ptxvm::num {

/// 2^x. The error before the final rounding is below 2^-31. Branch-free.
inline float ex2(float x) {
  float y = x > 160.0f ? 160.0f : x;
  y = y < -160.0f ? -160.0f : y;
  const float shifted = y + 12582912.0f;  // 1.5 * 2^23: the integer part ends up in the low bits
  const int64_t n = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - 0x4b400000u);
  const double t = static_cast<double>(y - (shifted - 12582912.0f)) * 0.693147180559945309417;
  double p = 1.0 / 40320;
  p = p * t + 1.0 / 5040;
  p = p * t + 1.0 / 720;
  p = p * t + 1.0 / 120;
  p = p * t + 1.0 / 24;
  p = p * t + 1.0 / 6;
  p = p * t + 0.5;
  p = p * t + 1.0;
  p = p * t + 1.0;
  // A NaN leaves no sensible n; the product stays NaN whatever the factor.
  const uint64_t scale = static_cast<uint64_t>((n & 0x3ff) - (n & 0x400) + 1023) << 52;
  return static_cast<float>(p * std::bit_cast<double>(scale));
}

inline float rcp(float x) {
  return 1.0f / x;
}
inline float rsqrt(float x) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}
inline float lg2(float x) {
  return static_cast<float>(std::log2(static_cast<double>(x)));
}
/// The hardware reduces an angle by one product in single precision. Far from zero nothing is left
/// but whole turns.
inline double reduced_angle(float x) {
  constexpr float kTurn = 0.159154943091895335769f;
  float turns = x * kTurn;
  if (std::fabs(turns) < 0x1p-126f) turns = std::copysign(0.0f, x);
  return static_cast<double>(std::fmod(turns, 1.0f)) * 6.28318530717958647693;
}
inline float sine(float x) {
  return static_cast<float>(std::sin(reduced_angle(x)));
}
inline float cosine(float x) {
  return static_cast<float>(std::cos(reduced_angle(x)));
}
inline float hyperbolic_tangent(float x) {
  return static_cast<float>(std::tanh(static_cast<double>(x)));
}

/// div.approx: for 2^126 < |b| < 2^128 the hardware's reciprocal is flushed to zero.
inline float divide_approx(float a, float b) {
  const float size = std::fabs(b);
  if (size > 0x1p126f && size <= 0x1.fffffep127f) return a * (b > 0 ? 0.0f : -0.0f);
  return a / b;
}

}  // namespace ptxvm::num
