// SPDX-License-Identifier: MIT
// Part of the machine's project, which stands alone.
#pragma once

#include "harness/vm/io/memory.h"

namespace fa::io {
using namespace ptxvm::io;
}
