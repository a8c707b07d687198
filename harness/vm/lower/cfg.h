// SPDX-License-Identifier: MIT
// Order of basic blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptxvm {

/// Successors of each block.
using Graph = std::vector<std::vector<uint32_t>>;

/// Lays reachable blocks out so that lanes at a lower position never wait for lanes at a higher one
/// to reconverge: a topological order in which the blocks of every loop are contiguous, its header
/// first and its exits behind it (Bourdoncle's weak topological order). With it, always running the
/// lanes with the smallest program counter merges them at the earliest point where their paths
/// meet. Among blocks that are free to choose from, the order of the text is kept.
std::vector<uint32_t> order_blocks(const Graph& successors);

}  // namespace ptxvm
