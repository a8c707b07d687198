// SPDX-License-Identifier: MIT
// The heap of device malloc and free.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "ptxvm/launch.h"

namespace ptxvm {

/// Every allocation stands alone in a window, as buffers do, so that no wrong index reaches another
/// one. Blocks on several host threads allocate at once, and look addresses up meanwhile.
class Heap {
 public:
  static constexpr uint64_t kWindows = 1 << 16;
  /// What kernels get by default on a card.
  static constexpr size_t kBytes = size_t{8} << 20;

  /// `first` is the first window. Zero when there is no room left.
  Address allocate(size_t bytes, uint64_t first);
  /// False when nothing that is in use begins there.
  bool release(uint64_t window, Address address);
  /// The allocation of a window, be it free again; null when there was none.
  const Buffer* find(uint64_t window) const {
    return slots_[window].load(std::memory_order_acquire);
  }

 private:
  struct Slot {
    Buffer buffer;
    std::unique_ptr<std::byte[]> bytes;
  };

  std::mutex mutex_;
  std::array<std::atomic<const Buffer*>, kWindows> slots_{};
  std::vector<std::unique_ptr<Slot>> made_;  // by window
  std::deque<uint64_t> free_;                // windows, the one that was freed first in front
  size_t used_ = 0, next_ = 0;
};

}  // namespace ptxvm
