// SPDX-License-Identifier: MIT
// Bit-exact conversion between float and IEEE 754 binary16, bfloat16 or e4m3, without compiler or
// CPU support.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/types.h"

namespace fa {

/// The float with exactly the value of the binary16 pattern; NaN payloads are kept.
constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  // Aligned like this the exponent is 112 short. A multiplication repairs it for subnormals too,
  // which no exponent arithmetic would.
  const std::uint32_t finite =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude | 0x7f800000u;
  return std::bit_cast<float>(sign | ((half & 0x7c00u) == 0x7c00u ? special : finite));
}

/// The nearest binary16 pattern, ties to even; overflow gives infinity, NaN stays a quiet NaN.
constexpr std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520, halfway between the largest half and 2^16
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, counted in units of 2^-24
    // One ulp of [0.5, 1) is 2^-24, so the addition itself rounds to the grid.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    half = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// The value rounded to binary16 and back.
constexpr float round_to_half(float value) {
  return half_to_float(float_to_half(value));
}

/// The float with exactly the value of the bfloat16 pattern: its upper half.
constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The nearest bfloat16 pattern, ties to even; overflow gives infinity, NaN stays a quiet NaN.
constexpr std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// The value rounded to a 16-bit type and back; to any other it is not rounded.
constexpr float rounded_to(Dtype dtype, float value) {
  if (dtype == Dtype::bf16) return bf16_to_float(float_to_bf16(value));
  return dtype == Dtype::f16 ? round_to_half(value) : value;
}

inline constexpr float kLargestE4m3 = 448;

/// The float with exactly the value of the e4m3 pattern; 0x7f and 0xff are NaN, and there is no
/// infinity.
constexpr float e4m3_to_float(std::uint8_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80u) << 24;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fu) << 20;
  // As above: aligned like this the exponent is 120 short.
  const std::uint32_t finite =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p120f);
  return std::bit_cast<float>(sign | ((bits & 0x7fu) == 0x7fu ? 0x7fc00000u : finite));
}

/// The nearest e4m3 pattern, ties to even; what is larger than 448, infinity too, gives 448, and
/// NaN stays NaN: cvt.rn.satfinite of PTX.
constexpr std::uint8_t float_to_e4m3(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000u) {
    result = 0x7fu;
  } else if (magnitude >= 0x43e00000u) {  // 448
    result = 0x7eu;
  } else if (magnitude < 0x3c800000u) {  // below 2^-6: subnormal, counted in units of 2^-9
    // One ulp of [2^14, 2^15) is 2^-9, so the addition itself rounds to the grid.
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    result = std::bit_cast<std::uint32_t>(shifted) - 0x46800000u;
  } else {
    const std::uint32_t odd = (magnitude >> 20) & 1u;
    result = (magnitude - 0x3c000000u + 0x7ffffu + odd) >> 20;
  }
  return static_cast<std::uint8_t>(sign | result);
}

}  // namespace fa
