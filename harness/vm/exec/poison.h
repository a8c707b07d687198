// SPDX-License-Identifier: MIT
// Values that a shuffle took from lanes that did not take part. They are undefined, which harms
// nobody as long as nobody uses them: arithmetic carries them on, and a store, an address, a branch
// or any other use with an effect is a fault.
#pragma once

#include "exec/warp.h"

namespace ptxvm {

/// What stands in an undefined register: NaN in every floating-point type.
inline constexpr uint32_t kPoisonWord = 0xffffffffu;

/// Carries poison from the sources of an operation, which is about to execute, to its destinations.
/// Raises a fault where it is used.
void follow_poison(Warp& w, const Op& op);

/// The part of a shuffle: `from` is the source of each lane, `absent` are the lanes whose source
/// did not take part.
void shuffle_poison(Warp& w, const Op& op, const uint8_t* from, uint32_t absent);

}  // namespace ptxvm
