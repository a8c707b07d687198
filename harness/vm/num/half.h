// SPDX-License-Identifier: MIT
// f16 and bf16 to and from f32. Branch-free, so that loops over lanes vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace ptxvm::num {

inline float half_to_float(uint16_t h) {
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7fff) << 13;
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  // 2^112 moves the bias from 15 to 127 and normalises subnormals on the way.
  const float scaled = std::bit_cast<float>(magnitude) * std::bit_cast<float>(0x77800000u);
  uint32_t bits = std::bit_cast<uint32_t>(scaled);
  bits = magnitude >= 0x0f800000u ? (magnitude | 0x7f800000u) : bits;
  bits = magnitude > 0x0f800000u ? 0x7fffffffu : bits | sign;
  return std::bit_cast<float>(bits);
}

/// Round to nearest even; NaN gives 0x7fff.
inline uint16_t float_to_half(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1)) >> 13;
  // Adding 0.5 leaves the subnormal's bits, rounded, at the bottom of the sum.
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;
  result |= sign;
  result = magnitude > 0x7f800000u ? 0x7fffu : result;
  return static_cast<uint16_t>(result);
}

inline float bfloat_to_float(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

/// Round to nearest even; NaN gives 0x7fff.
inline uint16_t float_to_bfloat(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}

}  // namespace ptxvm::num
