// SPDX-License-Identifier: MIT
// One memory request of a warp: addresses, checks, host pointers, event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "exec/fault.h"
#include "exec/warp.h"

namespace ptxvm {

/// Addresses of 32 lanes and where they are on the host.
struct Request {
  alignas(64) uint64_t wide[32];
  alignas(64) uint32_t narrow[32];
  std::byte* host[32];
};

/// base + offset for every lane, whatever the width of the base register.
inline void lane_addresses(Warp& w, Ref base, uint32_t offset, uint64_t* out) {
  const auto displacement =
      static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(offset)));
  if (base & kRefWide) {
    const uint64_t* b = w.at<uint64_t>(base);
    for (int i = 0; i < 32; ++i) out[i] = b[i] + displacement;
  } else {
    const uint32_t* b = w.at<uint32_t>(base);
    for (int i = 0; i < 32; ++i) out[i] = b[i] + static_cast<uint32_t>(displacement);
  }
}

/// Checks bounds and alignment of the lanes in `mask`, each `bytes` long at `request.wide` in
/// `space` (not generic), and fills `request.host`, and `request.narrow` for spaces other than
/// global. Alignment must be `alignment` bytes. Raises a fault that names the buffer.
void resolve(Warp& w, const Op& op, Space space, uint32_t mask, uint32_t bytes, uint32_t alignment,
             bool writes, Request& request);

/// A shared address of the warp's own block loses the rank that it may hold.
void drop_rank(const Warp& w, uint64_t& address);

/// The block of the cluster that holds a shared address. Raises a fault where there is none, or
/// where all its threads have exited.
Cta& block_of(const Warp& w, uint32_t instruction, int lane, uint32_t address);

/// Raises a fault unless the addresses are of the block itself.
void require_own_block(const Warp& w, const Op& op, uint32_t mask, const Request& request,
                       const char* what);

/// What a store is about to write: see AccessEvent::write.
struct Writer {
  void (*write)(const void* store, int lane, std::byte* out) = nullptr;
  const void* store = nullptr;
};

/// An update, whose old value goes to a register or nowhere (kNoRef).
void report_update(Warp& w, const Op& op, Space space, uint32_t mask, uint32_t bytes,
                   const Request& request, Ref old);

/// Reports a request to the probes, before it is carried out. See AccessEvent for `unwritten`.
inline void report_access(const Warp& w, const Op& op, Space space, AccessKind kind, uint32_t mask,
                          uint32_t bytes, const Request& request, const Writer& writer = {},
                          Unwritten* unwritten = nullptr) {
  AccessEvent e;
  e.unwritten = unwritten;
  e.memory = request.host;
  e.write = writer.write;
  e.store = writer.store;
  e.warp = id_of(w);
  e.instruction = op.instruction;
  e.space = space == Space::kSharedCluster ? Space::kShared : space;
  e.kind = kind;
  e.mask = mask;
  e.bytes = bytes;
  if (space == Space::kGlobal) {
    e.wide = request.wide;
  } else {
    e.narrow = request.narrow;
  }
  notify(w, [&](Probe& p) { p.access(e); });
}

/// Calls f(space, lanes) for a request in `space`; for a generic one, for each space that its
/// addresses point into, with the window's base taken off: kSharedCluster for shared memory, which
/// may be another block's.
template <class F>
void for_spaces(Space space, uint32_t mask, Request& request, F f) {
  if (space != Space::kGeneric) {
    f(space, mask);
    return;
  }
  while (mask != 0) {
    const Space first = space_of(request.wide[__builtin_ctz(mask)]);
    uint32_t same = 0;
    for_lanes(mask, [&](int lane) {
      if (space_of(request.wide[lane]) == first) same |= 1u << lane;
    });
    for_lanes(same, [&](int lane) { request.wide[lane] -= window_base(first); });
    f(first == Space::kShared ? Space::kSharedCluster : first, same);
    mask &= ~same;
  }
}

}  // namespace ptxvm
