// SPDX-License-Identifier: MIT
// Blocks that see what other blocks do in global memory.
#pragma once

#include "exec/access.h"

namespace ptxvm {

/// Whether what a block does may depend on when another one runs: the kernel has volatile or
/// acquiring loads of global memory, or atomics whose result or order matters.
bool communicates(const Program& program);

/// Whether clusters of the kernel may take the place of others.
bool cancels_clusters(const Program& program);

/// After an atomic or ordered access: a warp that gets the same answer as a moment ago is waiting
/// for others, and ends its turn.
void note_poll(Warp& w, const Op& op, Space space, uint32_t lanes, uint32_t bytes,
               const Request& request);

}  // namespace ptxvm
