// SPDX-License-Identifier: MIT
// How an instruction orders memory, by its modifiers.
#pragma once

#include <string_view>

#include "ptxvm/observer.h"

namespace ptxvm::observe {

struct Ordering {
  bool strong = false;  ///< Atomic, volatile or ordered: not in conflict with others of its kind.
  bool acquire = false, release = false;
  bool block_scope = false;  ///< Only for threads of the same block.
};

inline Ordering ordering_of(std::string_view opcode) {
  auto has = [&](std::string_view word) { return opcode.find(word) != std::string_view::npos; };
  Ordering o;
  const bool both = has(".acq_rel");
  o.acquire = both || has(".acquire");
  o.release = both || has(".release");
  o.strong = o.acquire || o.release || has(".volatile") || has(".relaxed") ||
             opcode.starts_with("atom.") || opcode.starts_with("red.");
  o.block_scope = has(".cta");
  return o;
}

inline bool is_write(AccessKind kind) {
  return kind == AccessKind::kStore || kind == AccessKind::kAtomic ||
         kind == AccessKind::kStMatrix || kind == AccessKind::kCopyWrite;
}

}  // namespace ptxvm::observe
