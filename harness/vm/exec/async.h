// SPDX-License-Identifier: MIT
// What the asynchronous agents of a block do: mbarriers, bulk copies, warpgroup matrix units.
#pragma once

#include <cstdint>
#include <string>

#include "exec/warp.h"

namespace ptxvm {

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

/// An arrival at the mbarrier at an address of a block: by what a tcgen05.commit of the warp, its
/// `number`th, has waited for.
void arrive_for_commit(const Warp& w, uint32_t instruction, Cta& home, uint32_t address,
                       uint64_t number);

/// The warp has exited: raises a fault where it was the last of its block and tensor memory is
/// still allocated.
void check_tensor_memory_freed(const Warp& w);

/// Entries of Warp::busy: 0, operand A, the destination of a tcgen05.ld, or accumulators and which.
inline constexpr uint32_t kUseA = 1;
inline constexpr uint32_t kUseLoaded = 3;
uint32_t accumulator_use(const Op& op, uint32_t sums);

/// Marks the registers of one wgmma as in use.
void mark_registers(Warp& w, const Op& op, uint32_t sums, bool a_in_registers);

/// Marks registers that wgmma in flight uses anew, after the queue of its warpgroup has changed.
void mark_busy_registers(Warp& w);

/// No register is the destination of a tcgen05.ld any more.
void finish_loads(Warp& w);

/// Raises a fault when an operation touches a register that wgmma in flight uses. One that a
/// tcgen05.ld loads is reported.
void check_busy_registers(Warp& w, const Op& op);

}  // namespace ptxvm
