// SPDX-License-Identifier: MIT
// Where state spaces lie in the generic address space (PTX ISA 5.1).
#pragma once

#include <cstdint>

#include "ptxvm/launch.h"

namespace ptxvm {

// The top 24 bits of an address select a window of a terabyte: one for each space that is not
// global, then one for each buffer. The low 32 bits of a shared, local, parameter or constant
// address are its offset in the space, as code that truncates a generic address expects.
inline constexpr int kWindowShift = 40;
inline constexpr uint64_t kSharedWindow = 1;
inline constexpr uint64_t kLocalWindow = 2;
inline constexpr uint64_t kParamWindow = 3;
inline constexpr uint64_t kConstWindow = 4;
inline constexpr uint64_t kFunctionWindow = 5;  // code; nothing can be read there
/// Buffers that the host reaches at the same address: below the places of Linux for programs,
/// libraries and stacks, so that no pointer of the host is taken for one of them.
inline constexpr uint64_t kFirstMappedWindow = 16;
inline constexpr uint64_t kMappedWindows = 64;
/// Above what Linux gives a process: there the host has no memory at the address of a buffer.
inline constexpr uint64_t kFirstBufferWindow = 128;
inline constexpr uint64_t kFirstHeapWindow = uint64_t{1} << 19;
inline constexpr uint64_t kFirstModuleWindow = uint64_t{1} << 20;
/// Buffers begin in the middle of their window.
inline constexpr uint64_t kBufferOffset = uint64_t{1} << 39;

inline constexpr uint64_t window_of(Address a) {
  return a >> kWindowShift;
}

inline constexpr uint64_t window_base(Space space) {
  switch (space) {
    case Space::kShared:
      return kSharedWindow << kWindowShift;
    case Space::kLocal:
      return kLocalWindow << kWindowShift;
    case Space::kParam:
      return kParamWindow << kWindowShift;
    case Space::kConst:
      return kConstWindow << kWindowShift;
    default:
      return 0;
  }
}

/// The space that a generic address belongs to.
inline constexpr Space space_of(Address a) {
  switch (window_of(a)) {
    case kSharedWindow:
      return Space::kShared;
    case kLocalWindow:
      return Space::kLocal;
    case kParamWindow:
      return Space::kParam;
    case kConstWindow:
      return Space::kConst;
    default:
      return Space::kGlobal;
  }
}

// A shared address of another block of the cluster has its rank plus two in the upper bits; without
// them an address is of the block that uses it. As on the card, clearing the lowest of these bits
// gives the address in the first block of a pair: of the blocks 2i and 2i + 1.
inline constexpr int kBlockShift = 24;
inline constexpr uint32_t kInBlock = (1u << kBlockShift) - 1;

inline constexpr uint32_t cluster_address(uint32_t rank, uint32_t address) {
  return (rank + 2) << kBlockShift | (address & kInBlock);
}
/// Rank of the block that holds an address that block `own` uses.
inline constexpr uint32_t rank_of(uint32_t address, uint32_t own) {
  return address >> kBlockShift == 0 ? own : (address >> kBlockShift) - 2;
}

/// A pointer to the n-th function of a module.
inline constexpr Address function_address(uint64_t n) {
  return (kFunctionWindow << kWindowShift) + (n + 1) * 16;
}

/// Address of the n-th `.global` variable of this process.
inline constexpr Address module_variable_address(uint64_t n) {
  return ((kFirstModuleWindow + n) << kWindowShift) + kBufferOffset;
}

}  // namespace ptxvm
