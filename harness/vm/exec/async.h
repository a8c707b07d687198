// SPDX-License-Identifier: MIT
// State of a block's asynchronous agents: mbarriers, bulk copies, warpgroup matrix units.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/matrix_descriptor.h"
#include "memory/mbarrier.h"
#include "ptxvm/observer.h"

namespace ptxvm {

struct Cta;
struct Op;
struct Warp;

/// One wgmma.mma_async of a warpgroup, from its first issue to its execution.
struct PendingMma {
  const Op* op = nullptr;
  uint64_t group = 0;
  uint64_t descriptor[2] = {0, 0};  ///< A (unused when it is in registers), B.
  bool accumulate = false;          ///< scale-d
  uint32_t issued = 0;              ///< Warps that have issued it.
  std::array<std::array<std::array<uint32_t, 32>, 4>, 4> a{};  ///< [warp][register][lane]
};

/// Four consecutive warps and their matrix unit.
struct Warpgroup {
  std::deque<PendingMma> pending;  ///< In order of issue.
  uint64_t executed = 0;           ///< Sequence number of pending[0].
  std::array<uint64_t, 4> issued{}, committed{};
  const Op* wait = nullptr;  ///< The wait_group that warps have arrived at.
  uint64_t target = 0;       ///< Groups below it are asked for.
  uint32_t arrived = 0;      ///< Warps at the wait.
  uint32_t released = 0;     ///< Warps that may leave it.
};

/// What a block has besides warps and memory.
struct AsyncState {
  std::unordered_map<uint32_t, Mbarrier> mbarriers;  ///< By shared address.
  uint64_t copies = 0;                               ///< Bulk copies so far.
  std::vector<Warpgroup> warpgroups;
  uint32_t free_registers = 0;                               ///< For setmaxnreg.
  std::unordered_map<uint64_t, MatrixFootprint> footprints;  ///< By shape and descriptor.
};

/// The largest number of registers that a setmaxnreg of the program asks for; 0 if there is none.
uint32_t most_registers(const Program& program);

/// Clears everything for a new block.
void begin_async(Cta& cta);

/// What a warp that polls waits for, for the message about a deadlock; empty for other operations.
std::string describe_poll(const Cta& cta, const Warp& w);

/// Copies of a bulk load have landed. Raises a fault when the barrier is gone.
void complete_transaction(Cta& cta, const WarpId& by, uint32_t instruction, uint32_t address,
                          uint32_t bytes);

/// Raises a fault unless a barrier has been initialised at an address of a block.
void require_mbarrier(const Warp& w, const Op& op, int lane, Cta& home, uint32_t address);

/// cp.async: makes the copies of some lanes land whose requests have smaller numbers than `end`.
void land_copies(Warp& w, uint32_t lanes, uint64_t end, bool observed);

/// Entries of Warp::busy: 0, operand A, or accumulators and which.
inline constexpr uint32_t kUseA = 1;
uint32_t accumulator_use(const Op& op, uint32_t sums);

/// Marks the registers of one wgmma as in use.
void mark_registers(Warp& w, const Op& op, uint32_t sums, bool a_in_registers);

/// Marks registers that wgmma in flight uses anew, after the queue of its warpgroup has changed.
void mark_busy_registers(Warp& w);

/// Raises a fault when an operation touches a register that wgmma in flight uses.
void check_busy_registers(Warp& w, const Op& op);

}  // namespace ptxvm
