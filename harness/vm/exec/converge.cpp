// SPDX-License-Identifier: MIT
#include "exec/converge.h"

namespace ptxvm {
namespace {

// Lanes that were parked at the operation become active.
void join_parked(Warp& w, const Op& op) {
  const auto pc = static_cast<uint32_t>(&op - w.code);
  for (size_t i = 0; i < w.fragments.size();) {
    if (w.fragments[i].pc == pc) {
      w.active |= w.fragments[i].mask;
      w.fragments.erase(w.fragments.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  w.mask = op.guard >= kNoRef ? w.active : w.active & w.predicate(op.guard);
}

}  // namespace

bool converge_aligned(Warp& w, const Op& op, uint32_t needed) {
  if ((needed & ~w.live) == 0) join_parked(w, op);
  const uint32_t missing = needed & ~w.mask;
  if (missing == 0) return true;
  if (missing & (w.active | ~w.live)) raise_not_converged(w, op, needed);
  return false;
}

bool converge(Warp& w, const Op& op, uint32_t members) {
  if ((members & w.live & ~w.mask) == 0) [[likely]]
    return true;
  join_parked(w, op);
  const uint32_t missing = members & w.live & ~w.mask;
  if (missing == 0) return true;
  if (missing & w.active) {
    raise(w, op, FaultKind::kDivergence, __builtin_ctz(missing & w.active),
          "lanes " + hex(missing & w.active, 8) + " are in the member mask " + hex(members, 8) +
              ", but their guard is false");
  }
  return false;
}

}  // namespace ptxvm
