// SPDX-License-Identifier: MIT
// What wgmma needs to know about the registers of other instructions.
#pragma once

#include <vector>

#include "lower/cfg.h"
#include "program/program.h"

namespace ptxvm {

/// Appends the register lines that operands use: times 2, plus 1 when written. `spelling` says what
/// the entries of `operands` are; null for mov with vectors, where the first `written` entries are
/// written and all are registers or constants.
void append_touches(const isa::Spelling* spelling, const std::vector<uint32_t>& operands,
                    size_t written, std::vector<uint32_t>& out);

/// Finds mma_async instructions that a path reaches on which their registers were used by other
/// instructions after the last wgmma.fence, or without any fence. `touches` holds the registers of
/// all instructions of a body, wgmma included; `begins` the first instruction of each block,
/// counted from that of the body, `first`.
std::vector<bool> find_unfenced(const Program& program, uint32_t first,
                                const std::vector<std::vector<uint32_t>>& touches,
                                const Graph& graph, const std::vector<uint32_t>& begins);

}  // namespace ptxvm
