// SPDX-License-Identifier: MIT
// What the instructions of tensor memory have in common (PTX ISA 9.7.16).
#pragma once

#include <cstdint>
#include <string>

#include "exec/access.h"
#include "exec/bind.h"
#include "exec/ops/tensor_instruction.h"

namespace ptxvm {

inline constexpr uint32_t kGroup = 16;  ///< Lanes of a TensorRange's groups.

inline void report(const Warp& w, TensorEvent e, const Op& op, TensorAction action) {
  if (!w.cta->launch->observed) return;
  e.warp = id_of(w);
  e.instruction = op.instruction;
  e.action = action;
  notify(w, [&](Probe& p) { p.tensor(e); });
}

/// Raises a fault where .cta_group::2 stands in a cluster that has no pairs.
inline void require_pairs(const Warp& w, const Op& op, uint32_t blocks) {
  const size_t all = w.cta->cluster->blocks.size();
  if (all % blocks != 0) {
    invalid(w, op, ".cta_group::2 needs clusters of an even number of blocks, not of ",
            number(all));
  }
}

/// Raises a fault where a block has not allocated the columns.
inline void require_columns(const Warp& w, const Op& op, const Cta& cta, uint32_t column,
                            uint32_t columns) {
  const TensorMemory& t = cta.async.tensor;
  if (t.holds(column, columns)) return;
  std::string have;
  for (const auto& a : t.allocations) {
    have +=
        (have.empty() ? "" : ", ") + number(a.column) + " to " + number(a.column + a.columns - 1);
  }
  raise(w, op, FaultKind::kOutOfBounds, -1,
        "columns " + number(column) + " to " + number(uint64_t{column} + columns - 1) +
            " of tensor memory" + (cta.rank == w.cta->rank ? "" : " of block " + number(cta.rank)) +
            " do not lie in what is allocated: " + (have.empty() ? "nothing" : have));
}

/// Of .cta_group.
inline uint8_t blocks_of(Modifiers& m) {
  return m.choice({"cta_group::1", "cta_group::2"}) == 1 ? 2 : 1;
}

}  // namespace ptxvm
