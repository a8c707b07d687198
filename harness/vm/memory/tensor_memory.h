// SPDX-License-Identifier: MIT
// Tensor memory (PTX ISA 9.7.16.1): 128 lanes of 512 columns of 32 bits, which a block allocates
// by columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace ptxvm {

struct TensorMemory {
  static constexpr uint32_t kLanes = 128, kColumns = 512;
  static constexpr uint32_t kUnit = 32;  ///< Columns are allocated by so many, or twice as often.

  struct Allocation {
    uint32_t column = 0, columns = 0;
    uint32_t instruction = 0;  ///< That made it.
  };

  std::vector<uint32_t> cells;          ///< The lanes of a column side by side; none at first.
  std::vector<Allocation> allocations;  ///< By column.
  bool relinquished = false;            ///< Nothing more may be allocated.

  /// An address has the lane in its upper half, the column in its lower half.
  static uint32_t lane(uint32_t address) { return address >> 16; }
  static uint32_t column(uint32_t address) { return address & 0xffff; }

  uint32_t* at(uint32_t column, uint32_t lane) {
    return cells.data() + size_t{column} * kLanes + lane;
  }

  /// The first column of the lowest free place for so many; nothing where there is none.
  std::optional<uint32_t> find_free(uint32_t columns) const {
    uint32_t first = 0;
    for (const Allocation& a : allocations) {
      if (a.column - first >= columns) return first;
      first = a.column + a.columns;
    }
    if (kColumns - first < columns) return std::nullopt;
    return first;
  }

  /// The allocation that begins at a column; null when there is none.
  const Allocation* find(uint32_t column) const {
    const auto it = std::find_if(allocations.begin(), allocations.end(),
                                 [&](const Allocation& a) { return a.column == column; });
    return it == allocations.end() ? nullptr : &*it;
  }

  /// Whether columns from `column` on lie in one allocation.
  bool holds(uint32_t column, uint32_t columns) const {
    return std::any_of(allocations.begin(), allocations.end(), [&](const Allocation& a) {
      return column >= a.column && columns <= a.columns && column - a.column <= a.columns - columns;
    });
  }
};

}  // namespace ptxvm
