// SPDX-License-Identifier: MIT
// Bulk stores of one warp. Groups are a thread's: each lane counts, commits and waits for its own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "observe/clocks.h"

namespace ptxvm::observe {

class StoreGroups {
 public:
  struct Store {
    uint32_t lane = 0;
    uint32_t instruction = 0;
    uint64_t group = 0;
    Clock number = 0;
  };

  /// The number of the store among those of the warp, from 1 on.
  Clock issue(uint32_t lane, uint64_t group, uint32_t instruction) {
    open_.push_back({lane, instruction, group, ++last_});
    return last_;
  }
  void commit(uint32_t lane, uint64_t group) { committed_[lane] = group + 1; }
  /// A lane waits for all but its newest groups. Returns up to which number all stores are done.
  Clock wait(uint32_t lane, uint64_t allowed) {
    std::erase_if(open_, [&](const Store& each) {
      return each.lane == lane && each.group + allowed < committed_[lane];
    });
    return open_.empty() ? last_ : open_.front().number - 1;
  }

  /// Those that nothing has waited for.
  const std::vector<Store>& open() const { return open_; }

 private:
  Clock last_ = 0;
  std::array<uint64_t, 32> committed_{};
  std::vector<Store> open_;
};

}  // namespace ptxvm::observe
