// SPDX-License-Identifier: MIT
// Rounding of exact or odd-rounded values to floating-point formats. Pure functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ptxvm::num {

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp, kNearestAway };

/// A binary interchange format, or tf32 as the upper bits of a 32-bit word.
struct Format {
  int mantissa;  ///< Stored fraction bits.
  int exponent;  ///< Exponent bits.
};
inline constexpr Format kHalf{10, 5};
inline constexpr Format kBfloat{7, 8};
inline constexpr Format kTensorFloat{10, 8};
inline constexpr Format kSingle{23, 8};

/// Sum rounded to odd: exact, or the neighbour with an odd last bit. Rounding the result again to a
/// format with at least two bits less gives the correctly rounded sum in every mode.
inline double add_to_odd(double a, double b) {
  const double s = a + b;
  const double t = s - a;
  const double error = (a - (s - t)) + (b - t);
  const auto bits = std::bit_cast<uint64_t>(s);
  const bool inexact = error > 0 || error < 0;  // false for NaN, which an infinite sum gives
  const bool grow = (error > 0) == (s > 0);
  const uint64_t neighbour = grow ? bits + 1 : bits - 1;
  return std::bit_cast<double>(inexact && (bits & 1) == 0 ? neighbour : bits);
}

/// The value rounded to a format, as the format's bits. NaN gives the format's all-ones positive
/// NaN, as the hardware does. Overflow gives infinity or the largest finite value, as the mode
/// asks.
inline uint32_t round_to(double x, Format f, Rounding mode) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (f.mantissa + f.exponent);
  const uint32_t infinity = ((1u << f.exponent) - 1) << f.mantissa;
  if (x != x) return infinity | ((1u << f.mantissa) - 1);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude == uint64_t{0x7ff} << 52) return sign | infinity;
  if (magnitude == 0) return sign;

  const int bias = (1 << (f.exponent - 1)) - 1;
  int exponent = static_cast<int>(magnitude >> 52);
  uint64_t fraction = magnitude & ((uint64_t{1} << 52) - 1);
  if (exponent != 0) {
    fraction |= uint64_t{1} << 52;
  } else {
    exponent = 1;
  }
  // The result keeps the bits of `fraction` above `drop`; below the least normal more are dropped.
  int target = exponent - 1023 + bias;
  int drop = 52 - f.mantissa;
  if (target < 1) {
    drop += 1 - target;
    target = 1;
  }
  uint64_t kept = 0, rest = fraction, half = 0;
  if (drop < 64) {
    kept = fraction >> drop;
    rest = fraction & ((uint64_t{1} << drop) - 1);
    half = uint64_t{1} << (drop - 1);
  } else {
    half = UINT64_MAX;
  }
  bool up = false;
  switch (mode) {
    case Rounding::kNearest:
      up = rest > half || (rest == half && (kept & 1));
      break;
    case Rounding::kNearestAway:
      up = rest >= half;
      break;
    case Rounding::kZero:
      break;
    case Rounding::kDown:
      up = rest != 0 && sign != 0;
      break;
    case Rounding::kUp:
      up = rest != 0 && sign == 0;
      break;
  }
  kept += up;
  // `kept` includes the hidden bit when normal; adding carries into the exponent as it should.
  const uint64_t result = kept + (static_cast<uint64_t>(target - 1) << f.mantissa);
  if (result >= infinity) {
    const bool to_infinity = mode == Rounding::kNearest || mode == Rounding::kNearestAway ||
                             (mode == Rounding::kUp && sign == 0) ||
                             (mode == Rounding::kDown && sign != 0);
    return sign | (to_infinity ? infinity : infinity - 1);
  }
  return sign | static_cast<uint32_t>(result);
}

inline float round_to_single(double x, Rounding mode) {
  return std::bit_cast<float>(round_to(x, kSingle, mode));
}

/// Rounds to an integral value of the same type, as cvt.rni, .rzi, .rmi and .rpi do.
template <class T>
inline T round_integral(T x, Rounding mode) {
  switch (mode) {
    case Rounding::kNearest:
      return std::nearbyint(x);
    case Rounding::kNearestAway:
      return std::round(x);
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    case Rounding::kUp:
      return std::ceil(x);
  }
  return x;
}

}  // namespace ptxvm::num
