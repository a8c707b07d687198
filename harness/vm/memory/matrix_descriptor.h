// SPDX-License-Identifier: MIT
// Matrices in shared memory as wgmma reads them (PTX ISA 9.7.15.5.1).
#pragma once

#include <cstdint>
#include <vector>

#include "ptxvm/launch.h"
#include "ptxvm/observer.h"

namespace ptxvm {

/// The 64-bit descriptor of a matrix.
struct MatrixDescriptor {
  uint32_t start = 0;        ///< Shared address.
  uint32_t leading = 0;      ///< Leading-dimension byte offset.
  uint32_t stride = 0;       ///< Stride-dimension byte offset.
  uint32_t base_offset = 0;  ///< Where the swizzle pattern begins, in units of 128 bytes.
  Swizzle swizzle = Swizzle::kNone;

  explicit MatrixDescriptor(uint64_t bits);
};

/// Which index of an operand is contiguous.
enum class Major : uint8_t {
  kK,     ///< tnsp 0
  kMn,    ///< tnsp 1
  kMn32,  ///< The same of tcgen05 and elements of 32 bits, which k128BAtom32B swizzles.
};

/// Where the 16-byte chunks of an operand of `extent` x 16 elements of 16 bits stand.
///
/// K-major, chunk 2r + h holds row r, elements 8h to 8h+7 of k. MN-major, chunk 16g + k holds
/// elements 8g to 8g+7 of row k; of elements of 32 bits chunk 8g + k holds 4g to 4g+3. The pattern
/// repeats when the start moves by 1024 bytes, so places are relative to the start rounded down to
/// a multiple of that.
struct MatrixFootprint {
  std::vector<uint32_t> chunks;     ///< Byte offsets.
  std::vector<SharedRange> ranges;  ///< The same, sorted and merged.
  uint32_t end = 0;                 ///< Behind the last byte.
};

inline constexpr uint32_t kFootprintPeriod = 1024;

MatrixFootprint footprint(const MatrixDescriptor& descriptor, Major major, uint32_t extent);

/// The same number for descriptors, majors and extents that have the same footprint.
uint64_t footprint_key(uint64_t descriptor, Major major, uint32_t extent);

}  // namespace ptxvm
