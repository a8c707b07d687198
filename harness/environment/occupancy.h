// SPDX-License-Identifier: MIT
// How many blocks of a kernel an SM holds at once, and what stops it from holding more.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fa {

/// What one SM can hold: CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability". Sizes in bytes.
struct SmLimits {
  int sm = 0;  ///< compute capability x 10
  int registers = 0;
  int warps = 0;
  int blocks = 0;
  std::size_t shared = 0;
  std::size_t shared_per_block = 0;  ///< most that a block can ask for
};

/// The compute capabilities that are known, ascending.
std::span<const SmLimits> known_sm_limits();

/// Limits of a compute capability; nullptr for one that is not known.
const SmLimits* sm_limits(int sm);

/// What a block needs.
struct BlockNeeds {
  int threads = 0;
  int registers = 0;       ///< of a thread
  std::size_t shared = 0;  ///< static and dynamic, bytes
};

enum class Limit { registers, shared_memory, warps, blocks };

/// Blocks that each resource alone would allow, and what follows.
struct Occupancy {
  int by_registers = 0;
  int by_shared_memory = 0;
  int by_warps = 0;
  int by_blocks = 0;
  int blocks = 0;             ///< the least of the four; 0: a block does not fit at all
  std::vector<Limit> limits;  ///< those that allow no more than that
};

/// Registers that a warp takes: 32 threads' worth, in units of 256.
int allocated_registers(int registers_per_thread);

/// Shared memory that a block takes: its own and 1 KiB for the system, in units of 128 bytes.
std::size_t allocated_shared(std::size_t shared);

Occupancy occupancy(const SmLimits& limits, const BlockNeeds& needs);

/// What limits the blocks of a kernel on this compute capability; empty where that is not known.
std::vector<Limit> limits_of(int sm, const BlockNeeds& needs);

}  // namespace fa
