// SPDX-License-Identifier: MIT
// What is remembered of global memory: the last write of each word, and two of the reads since.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "observe/global_clocks.h"

namespace ptxvm::observe {

/// One access.
struct Mark {
  static constexpr uint32_t kNobody = UINT32_MAX;
  uint32_t block = kNobody;
  Clock clock = 0;
  uint32_t instruction = 0;
  uint16_t agent = 0;   ///< See BlockClocks.
  bool strong = false;  ///< Atomic, volatile or ordered.

  bool there() const { return block != kNobody; }
};

struct GlobalCell {
  Mark write;
  std::array<Mark, 2> reads;
};

/// Cells of the buffers that a launch has accessed. A page has a cell for each word until an access
/// of less than a word makes it one for each byte.
class GlobalShadow {
 public:
  /// Calls f(cell, address) for the cells of some bytes.
  template <class F>
  void for_cells(uint64_t address, uint32_t bytes, F f) {
    for (uint64_t at = address, end = address + bytes; at < end;) {
      Page& page = page_of(at / kPage);
      const bool whole = (at & 3) == 0 && end - at >= 4;
      if (!whole && page.cells.size() != kPage) refine(page);
      if (page.cells.empty()) page.cells.resize(kPage / 4);
      const bool fine = page.cells.size() == kPage;
      f(page.cells[at % kPage / (fine ? 1 : 4)], at);
      at += fine ? 1 : 4;
    }
  }

 private:
  static constexpr uint64_t kPage = 1024;  // bytes
  struct Page {
    std::vector<GlobalCell> cells;
  };
  static void refine(Page& page);
  Page& page_of(uint64_t number) {
    if (!last_ || number != last_number_) {
      last_ = &pages_[number];
      last_number_ = number;
    }
    return *last_;
  }

  std::unordered_map<uint64_t, Page> pages_;
  Page* last_ = nullptr;
  uint64_t last_number_ = 0;
};

}  // namespace ptxvm::observe
