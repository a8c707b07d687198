// SPDX-License-Identifier: MIT
// What tensormap.replace does to the 128 bytes of a tensor map (PTX ISA 9.7.9.27).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ptxvm/launch.h"

namespace ptxvm {

inline constexpr uint32_t kTensorMapBytes = 128, kTensorMapAlignment = 64;

enum class MapField : uint8_t {
  kBase,
  kRank,
  kBox,
  kDimension,
  kStride,
  kElementStride,
  kElement,
  kInterleave,
  kSwizzle,
  kFill
};

/// Replaces a field of a map, or of 128 bytes of zero, which become one. `ordinal` counts
/// dimensions, or strides from that of the second dimension on. What is wrong, else null.
const char* replace_field(std::span<std::byte> bytes, MapField field, uint32_t ordinal,
                          uint64_t value);

/// Why no copy can use a map; empty when one can.
std::string problem_of(const TensorMap& map);

}  // namespace ptxvm
