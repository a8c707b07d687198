// SPDX-License-Identifier: MIT
// Floating point of 4 and 6 bits, without infinities and NaN, and exponents of 8 bits (ue8m0).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace ptxvm::num {

/// A sign, an exponent and a fraction; subnormal numbers begin where the exponent is 0.
struct SmallFormat {
  int exponent_bits, fraction_bits, bias;

  constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
  constexpr uint32_t largest() const { return (1u << (exponent_bits + fraction_bits)) - 1; }
};
inline constexpr SmallFormat kE2m1{2, 1, 1}, kE2m3{2, 3, 1}, kE3m2{3, 2, 3};

/// Of the low bits; exact.
inline float small_to_float(uint32_t bits, SmallFormat f) {
  const int exponent = static_cast<int>(bits >> f.fraction_bits) & ((1 << f.exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << f.fraction_bits) - 1);
  const int whole = exponent == 0 ? fraction : fraction + (1 << f.fraction_bits);
  const float x = std::ldexp(static_cast<float>(whole),
                             (exponent == 0 ? 1 : exponent) - f.bias - f.fraction_bits);
  return bits >> (f.bits() - 1) & 1 ? -x : x;
}

/// To nearest even; what is too large becomes the largest value, NaN the positive one.
inline uint32_t float_to_small(float x, SmallFormat f) {
  if (x != x) return f.largest();
  const uint32_t sign = std::signbit(x) ? f.largest() + 1 : 0;
  const float size = std::fabs(x);
  if (size >= small_to_float(f.largest(), f)) return sign | f.largest();
  const int least = 1 - f.bias;
  const int exponent = size == 0 ? least : std::max(std::ilogb(size), least);
  // In units of the last place; a carry moves the exponent.
  const auto units =
      static_cast<uint32_t>(std::nearbyint(std::ldexp(size, f.fraction_bits - exponent)));
  return sign | ((static_cast<uint32_t>(exponent - least) << f.fraction_bits) + units);
}

/// The exponent of |x|, 127 for 1, down or (`up`) up to a power of two; 0xff for NaN and for what
/// is too large, which `saturates` to 0xfe.
inline uint8_t float_to_exponent(float x, bool up, bool saturates) {
  constexpr uint32_t kInfinity = 0x7f800000, kLeast = 0x00400000;  // 2^-127
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffff;
  uint32_t exponent = bits >> 23;
  if (up && (bits & 0x7fffff) != 0 && bits > kLeast && bits < kInfinity) ++exponent;
  if (saturates && bits <= kInfinity && exponent == 0xff) --exponent;
  return static_cast<uint8_t>(exponent);
}

/// As bf16: 2^(x - 127), NaN for 0xff.
inline uint16_t exponent_to_bfloat(uint8_t x) {
  if (x == 0xff) return 0x7fff;
  return static_cast<uint16_t>(x == 0 ? 0x40 : x << 7);
}

}  // namespace ptxvm::num
