// SPDX-License-Identifier: MIT
// What setp and set make of a comparison and a further predicate.
#pragma once

#include "exec/bind.h"

namespace ptxvm::ops {

using isa::Combine;

inline Combine combine_of(Modifiers& m) {
  m.choice({"and", "or", "xor"});
  return m.spelling().combine;
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
