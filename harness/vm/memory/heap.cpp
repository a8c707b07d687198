// SPDX-License-Identifier: MIT
#include "memory/heap.h"

#include <cstring>

#include "memory/spaces.h"

namespace ptxvm {

Address Heap::allocate(size_t bytes, uint64_t first) {
  constexpr size_t kLeast = 16;
  const std::lock_guard lock(mutex_);
  const size_t room = std::max(bytes, kLeast);
  if (room > kBytes - used_) return 0;
  uint64_t window = made_.size();
  if (window == kWindows) {
    // A window is used again as late as possible: until then its addresses are known to be free.
    if (free_.empty()) return 0;
    window = free_.front();
    free_.pop_front();
  } else {
    made_.push_back(std::make_unique<Slot>());
  }
  Slot& slot = *made_[window];
  slot.bytes.reset(new std::byte[room]);
  std::memset(slot.bytes.get(), 0xff, room);  // NaN, as in a fresh buffer
  slot.buffer = {"malloc " + std::to_string(next_++),
                 ((first + window) << kWindowShift) + kBufferOffset, bytes, slot.bytes.get()};
  slots_[window].store(&slot.buffer, std::memory_order_release);
  used_ += room;
  return slot.buffer.address;
}

bool Heap::release(uint64_t window, Address address) {
  const std::lock_guard lock(mutex_);
  if (window >= made_.size()) return false;
  Slot& slot = *made_[window];
  if (!slot.buffer.host || slot.buffer.address != address) return false;
  used_ -= std::max<size_t>(slot.buffer.bytes, 16);
  slot.buffer.host = nullptr;
  slot.buffer.bytes = 0;
  slot.bytes.reset();
  free_.push_back(window);
  return true;
}

}  // namespace ptxvm
