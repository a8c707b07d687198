// SPDX-License-Identifier: MIT
// Values that a shuffle took from lanes that did not take part, a load from memory that nobody has
// written, or a register that nothing has set. They are undefined, which harms nobody as long as
// nobody uses them: arithmetic carries them on. A store, an address, a branch or any other use with
// an effect is a fault for those of a shuffle; of the others the probes are told, once.
#pragma once

#include <span>

#include "exec/warp.h"

namespace ptxvm {

/// What stands in an undefined register: NaN in every floating-point type.
inline constexpr uint32_t kPoisonWord = 0xffffffffu;

Poison poison_of(const Warp& w, Ref ref);

/// Of some lanes of a register: that and no other.
void set_poison(Warp& w, Ref ref, uint32_t lanes, const Poison& p);

/// Registers of a function, or of the entry (UnsetRegister::kEntry), that nothing has set yet.
void poison_unset(Warp& w, uint32_t function, uint32_t lanes);

/// Carries poison from the sources of an operation, which is about to execute, to its destinations.
/// Raises a fault where it is used.
void follow_poison(Warp& w, const Op& op);

/// The part of a shuffle: `from` is the source of each lane, `absent` are the lanes whose source
/// did not take part.
void shuffle_poison(Warp& w, const Op& op, const uint8_t* from, uint32_t absent);

/// The part of a load whose destinations are `count` registers of `bytes` bytes of memory each.
void poison_loaded(Warp& w, const Op& op, const Unwritten& unwritten, uint32_t count,
                   uint32_t bytes);

/// What a store of the lanes takes along from its registers, of `bytes` each. In shared and local
/// memory poison stays poison; anywhere else this is its use.
Unwritten poison_stored(Warp& w, const Op& op, Space space, uint32_t lanes,
                        std::span<const Ref> values, uint32_t bytes, const uint32_t* addresses);

/// The part of a load from local memory: what poison_stored has left there.
void poison_from_local(Warp& w, const Op& op, uint32_t lanes, uint32_t count, uint32_t bytes,
                       const uint32_t* addresses);

/// In place of an address: none.
inline constexpr uint64_t kNoSource = UINT64_MAX;

/// A call writes bytes of a lane's local memory: copies of those at `from`.
void move_local_poison(Warp& w, int lane, uint64_t from, uint64_t to, uint32_t bytes);

/// The same as poison_loaded for ldmatrix, of as many matrices as there are rows for.
void poison_matrices(Warp& w, const Op& op, const Unwritten& unwritten, bool transposed);

/// The same as poison_stored for stmatrix.
Unwritten poison_stored_matrices(Warp& w, const Op& op, uint32_t count, bool transposed);

}  // namespace ptxvm
