// SPDX-License-Identifier: MIT
// Registers that a body may read before it has set them.
#pragma once

#include <unordered_set>
#include <vector>

#include "lower/cfg.h"
#include "program/program.h"

namespace ptxvm {

/// What a basic block does to registers, by their places.
struct BlockReads {
  std::vector<Ref> reads;        ///< Before it has set them itself.
  std::unordered_set<Ref> sets;  ///< In all lanes that run it.
};

/// The places that some path from block 0 on reads before it sets them, in ascending order. A text
/// can make this take very long: from some point on the rest counts as set.
std::vector<Ref> read_before_set(const Graph& graph, const std::vector<BlockReads>& blocks);

}  // namespace ptxvm
