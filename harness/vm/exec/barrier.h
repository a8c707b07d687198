// SPDX-License-Identifier: MIT
// Barriers of a block and of a cluster.
#pragma once

#include "exec/warp.h"

namespace ptxvm {

/// Wakes the waiters of every barrier that became complete because a warp has exited.
void recheck_barriers(Cta& cta);

/// Ends the phase of barrier.cluster when only a warp that has exited was missing.
void recheck_cluster_barrier(Cta& cta, const Warp& exited);

}  // namespace ptxvm
