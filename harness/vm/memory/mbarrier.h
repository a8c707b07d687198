// SPDX-License-Identifier: MIT
// Phases of an mbarrier object (PTX ISA 9.7.13.15.1), without its memory.
#pragma once

#include <cstdint>

namespace ptxvm {

inline constexpr uint32_t kMbarrierMaxCount = (1u << 20) - 1;
inline constexpr int64_t kMbarrierMaxBytes = (1 << 20) - 1;

/// Counts of one barrier. A phase is complete when no arrival and no byte is missing; the next one
/// begins at once.
struct Mbarrier {
  uint64_t phase = 0;     ///< The current one, from 0.
  uint32_t expected = 0;  ///< Arrivals that make a phase, from the next one on.
  uint32_t pending = 0;   ///< Arrivals that the current phase misses.
  int64_t bytes = 0;      ///< tx-count

  bool complete() const { return pending == 0 && bytes == 0; }
  void next_phase() {
    ++phase;
    pending = expected;
  }

  /// What stands in shared memory for it.
  uint64_t word() const {
    return phase << 63 | (uint64_t{expected} & 0xfffff) << 42 |
           (uint64_t{pending} & 0xfffff) << 21 | (static_cast<uint64_t>(bytes) & 0x1fffff);
  }
  /// What mbarrier.arrive returns: the phase, and the pending count before the arrival.
  uint64_t state() const { return (phase + 1) << 20 | pending; }
};

/// Parts of a state value.
inline constexpr uint64_t state_phase(uint64_t state) {
  return (state >> 20) - 1;
}
inline constexpr uint32_t state_pending(uint64_t state) {
  return static_cast<uint32_t>(state & 0xfffff);
}

}  // namespace ptxvm
