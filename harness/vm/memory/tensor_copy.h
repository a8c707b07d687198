// SPDX-License-Identifier: MIT
// Boxes of a tensor and where they stand in shared memory (PTX ISA 5.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ptxvm/launch.h"

namespace ptxvm {

/// Shared address of a 16-byte chunk whose place without swizzle is `address`. The pattern is fixed
/// to addresses: it repeats every 256, 512 or 1024 bytes, from `first_row` times 128 bytes on.
inline constexpr uint32_t swizzled(uint32_t address, Swizzle swizzle, uint32_t first_row = 0) {
  const uint32_t row = (address >> 7) - first_row;
  switch (swizzle) {
    case Swizzle::k32B:
      return address ^ ((row & 1) << 4);
    case Swizzle::k64B:
      return address ^ ((row & 3) << 4);
    case Swizzle::k128B:
      return address ^ ((row & 7) << 4);
    case Swizzle::k128BAtom32B:
      return address ^ ((row & 3) << 5);
    case Swizzle::kNone:
      break;
  }
  return address;
}

/// Bits of an element that is no whole number of bytes; else 0.
inline constexpr uint32_t part_bits(MapElement element) {
  if (element == MapElement::kU6Gaps) return 6;
  return element == MapElement::kPackedU4 || element == MapElement::kU4Gaps ? 4 : 0;
}
/// How many of 16 bytes of shared memory are from the tensor.
inline constexpr uint32_t bytes_of_16(MapElement element) {
  if (element == MapElement::kU4Gaps) return 8;
  return element == MapElement::kU6Gaps ? 12 : 16;
}

/// Consecutive bytes of a box, with the innermost coordinate running.
struct BoxRow {
  uint32_t box_offset = 0;     ///< Of the whole row, in the box without swizzle.
  uint32_t first = 0;          ///< Bytes of the row before the tensor begins: zero, or not stored.
  uint32_t inside = 0;         ///< Bytes that the tensor has.
  uint64_t global_offset = 0;  ///< Of the first of them, from the tensor's base.
};

/// A copy between a box and shared memory.
struct BoxCopy {
  static constexpr uint32_t kGathered = 4;  ///< Rows of a copy with `four_rows`.

  TensorMap map;
  int32_t at[5] = {0, 0, 0, 0, 0};
  bool four_rows = false;  ///< Four rows of a matrix, at[1] to at[4], from column at[0] on.

  uint32_t row_bytes() const { return map.box[0] * map.element_bytes; }
  uint32_t shared_row_bytes() const { return row_bytes() / bytes_of_16(map.element) * 16; }
  uint64_t bytes() const;  ///< In shared memory.
  std::vector<BoxRow> rows() const;
};

/// Bytes between a row of the box and shared memory: f(offset in the row, shared offset, bytes),
/// chunk by chunk where there is a swizzle or gaps. `shared` is the address of the box.
template <class F>
void for_chunks(const BoxCopy& copy, const BoxRow& row, uint32_t shared, F f) {
  const uint32_t each = bytes_of_16(copy.map.element);
  if (copy.map.swizzle == Swizzle::kNone && each == 16) {
    f(0u, shared + row.box_offset, copy.row_bytes());
    return;
  }
  for (uint32_t i = 0; i * each < copy.row_bytes(); ++i) {
    f(i * each, swizzled(shared + row.box_offset + i * 16, copy.map.swizzle), each);
  }
}

/// 32-byte sectors of global memory that rows touch; each counts once, also when it is shared by
/// two rows that follow one another.
uint64_t sectors_of(const BoxCopy& copy, const std::vector<BoxRow>& rows);

}  // namespace ptxvm
