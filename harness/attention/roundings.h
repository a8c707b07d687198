// SPDX-License-Identifier: MIT
// How tensor cores add, and loads of rows, for the references.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "harness/attention/host_tensor.h"

namespace fa {

/// Products that a tensor core adds before it truncates the sum to float.
inline constexpr std::int64_t kTruncateEvery = 8;

/// The float sum rounded towards zero: the error of the rounded sum (Knuth's TwoSum) tells whether
/// rounding went away from zero.
inline float add_truncated(float a, float b) {
  const float sum = a + b;
  const float b_seen = sum - a;
  const float error = (a - (sum - b_seen)) + (b - b_seen);
  const std::uint32_t sum_bits = std::bit_cast<std::uint32_t>(sum);
  const std::uint32_t opposite = (sum_bits ^ std::bit_cast<std::uint32_t>(error)) >> 31;
  return std::bit_cast<float>(sum_bits - (error != 0.0f ? opposite : 0u));
}

/// Copies `count` elements from a tensor as floats.
inline void load_row(const HostTensor& tensor, std::int64_t offset, std::int64_t count,
                     float* out) {
  if (tensor.dtype == Dtype::e4m3) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = tensor.at(offset + i);
  } else if (tensor.dtype == Dtype::bf16) {
    const std::uint16_t* in = tensor.halfs().data() + offset;
    for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(in[i]);
  } else if (tensor.dtype == Dtype::f16) {
    const std::uint16_t* in = tensor.halfs().data() + offset;
    for (std::int64_t i = 0; i < count; ++i) out[i] = half_to_float(in[i]);
  } else {
    std::copy_n(tensor.floats().data() + offset, count, out);
  }
}

}  // namespace fa
