// SPDX-License-Identifier: MIT
// Values that a shuffle took from lanes that did not take part, or a load from memory that nobody
// has written. They are undefined, which harms nobody as long as nobody uses them: arithmetic
// carries them on. A store, an address, a branch or any other use with an effect is a fault for
// those of a shuffle; of those of a load the probes are told, once.
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

/// The part of a load whose destinations are `count` registers of `bytes` bytes of memory each.
void poison_loaded(Warp& w, const Op& op, const Unwritten& unwritten, uint32_t count,
                   uint32_t bytes);

/// The same for ldmatrix, of as many matrices as there are rows for.
void poison_matrices(Warp& w, const Op& op, const Unwritten& unwritten, bool transposed);

}  // namespace ptxvm
