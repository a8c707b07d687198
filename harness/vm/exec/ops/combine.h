// SPDX-License-Identifier: MIT
// What setp and set make of a comparison and a further predicate.
#pragma once

#include "exec/bind.h"

namespace ptxvm::ops {

enum class Combine : uint64_t { kNone, kAnd, kOr, kXor };

inline Combine combine_of(Modifiers& m) {
  return static_cast<Combine>(m.choice({"and", "or", "xor"}) + 1);
}

/// Of all lanes at once.
inline uint32_t combine(Combine how, uint32_t result, uint32_t other) {
  switch (how) {
    case Combine::kAnd:
      return result & other;
    case Combine::kOr:
      return result | other;
    case Combine::kXor:
      return result ^ other;
    default:
      return result;
  }
}

}  // namespace ptxvm::ops
