// SPDX-License-Identifier: MIT
// What bounds a kernel, from its counts and the limits of a card.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/cli/count.h"

namespace fa::cli {

/// FLOP of one warp instruction mma.sync or wgmma.mma_async: 2 m n k, of wgmma a quarter for each
/// of the four warps that execute it. 0 for an opcode that is neither.
double tensor_flops(std::string_view opcode);

/// The clocks of each SM that every resource needs for what was counted, at the rate that its bare
/// loop reaches on the card of the limits (limits::card_name()); the largest is the bound.
/// Everything is spread evenly over the SMs, and each resource works as if it were alone.
/// - Tensor cores: FLOP of mma.sync and of wgmma, each at its own rate.
/// - Exponentials: ex2, rcp and the like. FP32: a multiply-add for each instruction.
/// - Shared memory: wavefronts of 128 bytes; of cp.async one for each instruction, as hardware
///   counts.
/// - L2: sectors of global memory, as if L1 served none.
/// - Device memory: the buffers that a launch names, once, or what it requests where that is less.
/// - Issue slots: PTX instructions without moves and parameters, which become operands; four a
/// clock.
/// None for code that the card of the limits does not run.
std::optional<RowBound> bound_of(const Counted& counted);

/// The result row: status, check, counts.
Row counted_row(const Counted& counted, const std::string& run);

/// A sentence or two for people: "bound by ...", after a name if there is one.
std::string to_string(const std::optional<RowBound>& bound, const LaunchPlan& plan,
                      std::string_view name = {});
/// A line for each launch of a plan with several.
std::string to_string(const RowLaunchBound& launch);

}  // namespace fa::cli
