// SPDX-License-Identifier: MIT
// Special registers (PTX ISA 10).
#pragma once

#include "exec/warp.h"

namespace ptxvm {

/// Writes the special registers that the kernel reads and that stay as they are while the block
/// runs.
void fill_specials(Warp& w);

}  // namespace ptxvm
