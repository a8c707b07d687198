// SPDX-License-Identifier: MIT
// Runs one warp for one turn.
#pragma once

#include "exec/warp.h"

namespace ptxvm {

/// Runs a ready warp until it waits, exits, or has used its turn. Sets its status.
void run_turn(Warp& w);

/// At the start of a block at `pc`: takes in the fragments that are there too; when lanes at a
/// lower position exist they become the active ones, `w.pc` is set, and the result is true.
bool merge_or_yield(Warp& w, uint32_t pc);

/// Makes the fragment with the lowest position active; the active lanes must be gone. Raises a
/// fault when all are parked.
void run_lowest_fragment(Warp& w);

/// The turn is over at `w.pc`: rotates fragments so that a lane that spins does not keep the others
/// of its warp from running.
Step end_turn(Warp& w);

/// Makes other lanes of the warp active, and keeps them so for a turn. False when there are none
/// that can run.
bool rotate_fragments(Warp& w);

/// Basic blocks of a turn.
inline constexpr uint32_t kBlocksPerTurn = 1u << 14;

}  // namespace ptxvm
