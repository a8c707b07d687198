// SPDX-License-Identifier: MIT
// Lanes of a warp that must meet at an instruction with a member mask.
#pragma once

#include "exec/fault.h"
#include "exec/warp.h"

namespace ptxvm {

/// Whether all of `members` that have not exited execute `op` now. Lanes that were parked at the
/// same instruction join the active ones (`w.mask` grows). When some are still elsewhere the
/// operation must return Step::kSwitch: these lanes are parked and the others run on. Raises a
/// fault for members that passed the instruction with a false guard.
bool converge(Warp& w, const Op& op, uint32_t members);

/// The same for instructions with .aligned, which `needed` lanes must execute together: all 32, or
/// all that have not exited. Lanes that are still on their way (in a loop, or before an exit) are
/// waited for.
bool converge_aligned(Warp& w, const Op& op, uint32_t needed);
inline bool converge_all(Warp& w, const Op& op) {
  return w.mask == kAllLanes || converge_aligned(w, op, kAllLanes);
}
inline bool converge_live(Warp& w, const Op& op) {
  return w.mask == w.live || converge_aligned(w, op, w.live);
}

}  // namespace ptxvm
