// Barriers of a block.
#pragma once

#include "exec/warp.h"

namespace ptxvm {

/// Wakes the waiters of every barrier that became complete because a warp has exited.
void recheck_barriers(Cta& cta);

}  // namespace ptxvm
