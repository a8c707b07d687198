// SPDX-License-Identifier: MIT
// State of a block's asynchronous agents: mbarriers, bulk copies, matrix units.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "memory/matrix_descriptor.h"
#include "memory/mbarrier.h"
#include "memory/tensor_memory.h"

namespace ptxvm {

struct Op;

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

/// One tcgen05.mma, cp, shift or commit between its issue and its execution.
struct TensorWork {
  const Op* op = nullptr;
  uint16_t warp = 0;                   ///< That issued it.
  uint32_t destination = 0;            ///< In tensor memory.
  uint32_t a_address = 0;              ///< A in tensor memory.
  uint64_t descriptor[2] = {0, 0};     ///< A or the source of a copy, B.
  uint32_t shape = 0;                  ///< The instruction descriptor.
  bool accumulate = false;             ///< enable-input-d
  uint32_t factors[2] = {0, 0};        ///< Scales of A and of B in tensor memory.
  uint32_t scale = 0;                  ///< The sums that are there are divided by 2 to this power.
  std::array<uint32_t, 8> disabled{};  ///< Lanes of the destination that are not written.
  uint64_t zero_columns = 0;           ///< The zero-column mask descriptor.
  uint64_t commit = 0;                 ///< Number of a commit among those of its warp, from 1.
  uint32_t mbarrier = 0;               ///< Its shared address, in the blocks `homes`.
  uint32_t homes = 0;
};

/// What a block has besides warps and memory.
struct AsyncState {
  std::unordered_map<uint32_t, Mbarrier> mbarriers;  ///< By shared address.
  uint64_t copies = 0;                               ///< Bulk copies so far.
  std::vector<Warpgroup> warpgroups;
  TensorMemory tensor;
  std::deque<TensorWork> tensor_work;                        ///< In order of issue.
  uint32_t free_registers = 0;                               ///< For setmaxnreg.
  std::unordered_map<uint64_t, MatrixFootprint> footprints;  ///< By shape and descriptor.
};

}  // namespace ptxvm
