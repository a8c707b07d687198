// SPDX-License-Identifier: MIT
// 8-bit floating point: e4m3 (no infinity, one NaN) and e5m2 (the upper half of an f16).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "num/half.h"
#include "num/rounding.h"

namespace ptxvm::num {

enum class Float8 : uint8_t { kE4m3, kE5m2 };

inline double float8_to_double(uint8_t bits, Float8 format) {
  if (format == Float8::kE5m2) {
    return static_cast<double>(half_to_float(static_cast<uint16_t>(bits << 8)));
  }
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  double x = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  if ((bits & 0x7f) == 0x7f) x = std::numeric_limits<double>::quiet_NaN();
  return bits & 0x80 ? -x : x;
}

/// To nearest even; what is too large becomes the largest finite value, NaN 0x7f.
inline uint8_t double_to_float8(double x, Float8 format) {
  if (x != x) return 0x7f;
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  if (format == Float8::kE5m2) {
    constexpr uint32_t kLargest = 0x7b;
    const uint32_t bits = round_to(std::fabs(x), {2, 5}, Rounding::kNearest);
    return static_cast<uint8_t>(sign | (bits > kLargest ? kLargest : bits));
  }
  constexpr double kLargest = 448;
  constexpr int kLeastExponent = -6;
  const double magnitude = std::fabs(x);
  if (magnitude >= kLargest) return sign | 0x7e;
  if (magnitude == 0) return sign;
  int exponent = std::ilogb(magnitude);
  if (exponent < kLeastExponent) exponent = kLeastExponent;
  // In units of the last place the value has at most four bits; a carry moves the exponent.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
  return static_cast<uint8_t>(sign | ((exponent - kLeastExponent) * 8 + units));
}

}  // namespace ptxvm::num
