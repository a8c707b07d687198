// SPDX-License-Identifier: MIT
// What wgmma needs to know about the registers of other instructions.
#pragma once

#include <vector>

#include "lower/cfg.h"
#include "program/program.h"

namespace ptxvm {

/// Appends the lines of an operand that is a register: times 2, plus 1 when it is written.
void append_touch(Ref ref, bool written, std::vector<uint32_t>& out);

/// Finds mma_async instructions that a path reaches on which their registers were used by other
/// instructions after the last wgmma.fence, or without any fence. `touches` holds the registers of
/// all instructions of a body, wgmma included; `begins` the first instruction of each block,
/// counted from that of the body, `first`.
std::vector<bool> find_unfenced(const Program& program, uint32_t first,
                                const std::vector<std::vector<uint32_t>>& touches,
                                const Graph& graph, const std::vector<uint32_t>& begins);

}  // namespace ptxvm
