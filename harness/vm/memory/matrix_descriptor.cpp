// SPDX-License-Identifier: MIT
#include "memory/matrix_descriptor.h"

#include <algorithm>

#include "memory/tensor_copy.h"

namespace ptxvm {
namespace {

constexpr uint32_t field(uint64_t bits, int at) {
  return static_cast<uint32_t>(bits >> at & 0x3fff) << 4;
}

// Bytes of a row of the swizzle pattern; without swizzle one chunk.
uint32_t span(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::k128B:
    case Swizzle::k128BAtom32B:
      return 128;
    case Swizzle::k64B:
      return 64;
    case Swizzle::k32B:
      return 32;
    case Swizzle::kNone:
      break;
  }
  return 16;
}

}  // namespace

MatrixDescriptor::MatrixDescriptor(uint64_t bits)
    : start(field(bits, 0)),
      leading(field(bits, 16)),
      stride(field(bits, 32)),
      base_offset(static_cast<uint32_t>(bits >> 49 & 7)) {
  constexpr Swizzle kModes[] = {Swizzle::kNone, Swizzle::k128B, Swizzle::k64B, Swizzle::k32B};
  swizzle = kModes[bits >> 62];
}

uint64_t footprint_key(uint64_t descriptor, Major major, uint32_t extent) {
  constexpr uint64_t kUnused = 0x3ff1c000c000c000u | uint64_t{0x3fc0};
  return (descriptor & ~kUnused) | uint64_t{extent} << 52 | uint64_t{major == Major::kMn} << 61 |
         uint64_t{major == Major::kMn32} << 14;
}

MatrixFootprint footprint(const MatrixDescriptor& d, Major major, uint32_t extent) {
  const Swizzle swizzle = major == Major::kMn32 ? Swizzle::k128BAtom32B : d.swizzle;
  const uint32_t row = span(swizzle), per_row = row / 16;
  const bool plain = swizzle == Swizzle::kNone;
  const uint32_t start = d.start % kFootprintPeriod;
  MatrixFootprint out;
  out.chunks.reserve(extent * 2);
  auto add = [&](uint32_t offset) {
    out.chunks.push_back(swizzled(start + offset, swizzle, d.base_offset));
  };
  if (major == Major::kK) {
    // Groups of eight rows are `stride` apart; without swizzle the halves of k `leading`.
    for (uint32_t r = 0; r < extent; ++r) {
      for (uint32_t h = 0; h < 2; ++h) {
        add(r / 8 * d.stride + r % 8 * row + h * (plain ? d.leading : 16));
      }
    }
  } else {
    // Groups of `per_row` chunks are `leading` apart, groups of eight rows of k (of four, where
    // elements have 32 bits) `stride`; without swizzle the two change places.
    const bool wide = major == Major::kMn32;
    const uint32_t next_columns = plain ? d.stride : d.leading;
    const uint32_t next_k = plain ? d.leading : d.stride, rows = wide ? 4 : 8;
    for (uint32_t g = 0; g < extent / rows; ++g) {
      for (uint32_t k = 0; k < 2 * rows; ++k) {
        add(g / per_row * next_columns + g % per_row * 16 + k / rows * next_k + k % rows * row);
      }
    }
  }
  std::vector<uint32_t> sorted = out.chunks;
  std::sort(sorted.begin(), sorted.end());
  for (uint32_t at : sorted) {
    SharedRange* last = out.ranges.empty() ? nullptr : &out.ranges.back();
    if (last && at < last->address + last->bytes) continue;  // read twice
    if (last && at == last->address + last->bytes) {
      last->bytes += 16;
    } else {
      out.ranges.push_back({at, 16});
    }
  }
  out.end = sorted.back() + 16;
  return out;
}

}  // namespace ptxvm
