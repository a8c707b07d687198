// mov with a vector on one side, which the mnemonic does not show.
#pragma once

#include "exec/bind.h"

namespace ptxvm {

/// `mov.bN {a, b}, r` (unpack: `destinations` > 0) or `mov.bN r, {a, b}` (pack: `sources` > 0), or
/// both, N bits in all. PTX ISA 9.7.9.2.
Bound bind_pack(int bits, int destinations, int sources);

}  // namespace ptxvm
