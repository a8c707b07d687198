// SPDX-License-Identifier: MIT
// From a mnemonic as compilers and people write it to a spelling of the table.
#pragma once

#include <string_view>

#include "isa/table.h"

namespace ptxvm::isa {

/// What a mnemonic stands for.
struct Decoded {
  const Spelling* spelling = nullptr;  ///< Null when it stands for nothing in the table.
  bool policy = false;                 ///< `.L2::cache_hint`: a last operand of 64 bits more.
  int sm = 0;                          ///< Least target: the spelling's, or that of a hint.
};

/// The spelling of that text; else the one with the same modifiers in another order, which ptxas
/// takes too (among themselves types, state spaces and layouts keep theirs, as it means something);
/// else without the cache hints that any access to global memory may have and that change nothing
/// here: `.L1::evict_last`, `.L2::128B`, `.L2::cache_hint` and so on.
Decoded decode(std::string_view mnemonic);

}  // namespace ptxvm::isa
