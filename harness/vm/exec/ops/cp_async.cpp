// SPDX-License-Identifier: MIT
// Non-bulk asynchronous copies (PTX ISA 9.7.9.25.3). A copy lands as late as allowed: when a wait
// asks for its group.
#include <algorithm>

#include "exec/access.h"
#include "exec/async.h"
#include "exec/ops/lanes.h"

namespace ptxvm::ops {
namespace {

void report_async(const Warp& w, uint32_t instruction, AsyncAction action, uint32_t mask,
                  uint64_t group, bool all, const PendingCopy* copy, bool by_arrival = false) {
  AsyncEvent e;
  e.warp = id_of(w);
  e.instruction = instruction;
  e.action = action;
  e.mask = mask;
  e.group = group;
  e.all = all;
  e.by_arrival = by_arrival;
  if (copy) {
    e.bytes = copy->bytes;
    e.shared = copy->shared.data();
  }
  notify(w, [&](Probe& p) { p.async(e); });
}

// Also an address that is not read must be a multiple of the copy's size.
void require_aligned_sources(Warp& w, const Op& op, uint32_t lanes, uint32_t bytes,
                             const Request& request) {
  for_lanes(lanes, [&](int i) {
    const uint64_t address = request.wide[static_cast<size_t>(i)];
    if (address % bytes == 0) return;
    raise(w, op, FaultKind::kMisaligned, i,
          "misaligned source of a copy, at " + std::to_string(address) +
              ": the address must be a multiple of " + std::to_string(bytes) +
              " also where nothing is read");
  });
}

template <bool kObserved>
Step issue(Warp& w, const Op& op) {
  const uint32_t bytes = op.r[4];
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    raise(w, op, FaultKind::kInvalid, -1,
          "a copy has 4, 8 or 16 bytes, not " + std::to_string(bytes));
  }
  w.copies.pending.emplace_back();
  PendingCopy& copy = w.copies.pending.back();
  copy.number = w.copies.issued++;
  copy.instruction = op.instruction;
  copy.mask = w.mask;
  copy.bytes = bytes;
  // Whether the last operand is not the size of the source but whether it is ignored.
  const auto ignores = op.aux.as<bool>();
  const uint32_t* sizes = ignores || op.r[5] == kNoRef ? nullptr : w.at<uint32_t>(op.r[5]);

  Request request;
  lane_addresses(w, op.r[2], op.r[3], request.wide);
  // Lanes that copy nothing read nothing: their source may be at any multiple of the size.
  uint32_t reading = w.mask;
  if (sizes) {
    for_lanes(w.mask, [&](int i) {
      if (sizes[i] > bytes) {
        raise(w, op, FaultKind::kInvalid, i,
              "the source has " + std::to_string(sizes[i]) + " bytes, the copy only " +
                  std::to_string(bytes));
      }
      copy.source_bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(sizes[i]);
      if (sizes[i] == 0) reading &= ~(1u << i);
    });
  } else {
    copy.source_bytes.fill(static_cast<uint8_t>(bytes));
  }
  if (ignores) {
    reading &= ~w.predicate(op.r[5]);
    for_lanes(w.mask & ~reading, [&](int i) { copy.source_bytes[static_cast<size_t>(i)] = 0; });
  }
  require_aligned_sources(w, op, w.mask & ~reading, bytes, request);
  // Sizes may differ between lanes; each size is checked as one request.
  for (uint32_t rest = reading; rest != 0;) {
    const uint32_t size = copy.source_bytes[static_cast<size_t>(__builtin_ctz(rest))];
    uint32_t same = 0;
    for_lanes(rest, [&](int i) {
      if (copy.source_bytes[static_cast<size_t>(i)] == size) same |= 1u << i;
    });
    resolve(w, op, Space::kGlobal, same, size, bytes, false, request);
    if constexpr (kObserved) {
      report_access(w, op, Space::kGlobal, AccessKind::kCopyRead, same, size, request);
    }
    for_lanes(same, [&](int i) { copy.source[static_cast<size_t>(i)] = request.host[i]; });
    rest &= ~same;
  }

  lane_addresses(w, op.r[0], op.r[1], request.wide);
  resolve(w, op, Space::kShared, w.mask, bytes, bytes, true, request);
  for_lanes(w.mask, [&](int i) { copy.shared[static_cast<size_t>(i)] = request.narrow[i]; });
  if constexpr (kObserved) {
    report_access(w, op, Space::kShared, AccessKind::kCopyWrite, w.mask, bytes, request);
    const uint64_t group = w.copies.committed[static_cast<size_t>(__builtin_ctz(w.mask))];
    report_async(w, op.instruction, AsyncAction::kIssue, w.mask, group, false, &copy);
  }
  return Step::kNext;
}

// Lanes may commit at different times: what one part of a request does, the rest does not.
void split(std::vector<PendingCopy>& pending, size_t i, uint32_t lanes) {
  PendingCopy rest = pending[i];
  rest.mask &= ~lanes;
  pending[i].mask &= lanes;
  pending.insert(pending.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
}

template <bool kObserved>
Step commit(Warp& w, const Op& op) {
  CopyQueue& q = w.copies;
  const uint64_t first = q.committed[static_cast<size_t>(__builtin_ctz(w.mask))];
  for (size_t i = 0; i < q.pending.size(); ++i) {
    PendingCopy& copy = q.pending[i];
    if (copy.committed || (copy.mask & w.mask) == 0) continue;
    uint32_t same = 0;  // lanes whose open group has the same number
    const int lane = __builtin_ctz(copy.mask & w.mask);
    const uint64_t group = q.committed[static_cast<size_t>(lane)];
    for_lanes(copy.mask & w.mask, [&](int l) {
      if (q.committed[static_cast<size_t>(l)] == group) same |= 1u << l;
    });
    if (same != copy.mask) split(q.pending, i, same);
    q.pending[i].committed = true;
    q.pending[i].group = group;
  }
  for_lanes(w.mask, [&](int l) { ++q.committed[static_cast<size_t>(l)]; });
  if constexpr (kObserved) {
    report_async(w, op.instruction, AsyncAction::kCommit, w.mask, first, false, nullptr);
  }
  return Step::kNext;
}

void land(Warp& w, const PendingCopy& copy) {
  const Cta& cta = *w.cta;
  for_lanes(copy.mask, [&](int lane) {
    const auto i = static_cast<size_t>(lane);
    std::byte* to = cta.shared + (copy.shared[i] - cta.shared_base);
    const uint32_t have = copy.source_bytes[i];
    if (have == 16) {
      std::memcpy(to, copy.source[i], 16);  // the usual size, inlined
    } else if (have != 0) {
      std::memcpy(to, copy.source[i], have);
    }
    if (have < copy.bytes) std::memset(to + have, 0, copy.bytes - have);
  });
}

}  // namespace
}  // namespace ptxvm::ops

void ptxvm::land_copies(Warp& w, uint32_t lanes, uint64_t end, bool observed) {
  auto& pending = w.copies.pending;
  for (size_t i = 0; i < pending.size();) {
    const uint32_t done = pending[i].number < end ? pending[i].mask & lanes : 0;
    if (done == 0) {
      ++i;
      continue;
    }
    if (done != pending[i].mask) ops::split(pending, i, done);
    ops::land(w, pending[i]);
    if (observed) {
      const PendingCopy& copy = pending[i];
      const auto lane = static_cast<size_t>(__builtin_ctz(copy.mask));
      ops::report_async(w, copy.instruction, AsyncAction::kLand, copy.mask,
                        copy.committed ? copy.group : w.copies.committed[lane], false, &copy,
                        /*by_arrival=*/true);
    }
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

namespace ptxvm::ops {
namespace {

template <bool kObserved>
Step wait(Warp& w, const Op& op) {
  CopyQueue& q = w.copies;
  const auto all = op.aux.as<bool>();  // also copies of the open group
  const uint64_t allowed = all ? 0 : op.r[0];
  size_t kept = 0;
  for (size_t i = 0; i < q.pending.size(); ++i) {
    uint32_t done = 0;
    for_lanes(q.pending[i].mask & w.mask, [&](int lane) {
      const PendingCopy& copy = q.pending[i];
      const uint64_t committed = q.committed[static_cast<size_t>(lane)];
      if (copy.committed ? copy.group + allowed < committed : all) done |= 1u << lane;
    });
    if (done != 0 && done != q.pending[i].mask) split(q.pending, i, done);
    if (done != 0) {
      const PendingCopy& copy = q.pending[i];
      land(w, copy);
      if constexpr (kObserved) {
        report_async(w, copy.instruction, AsyncAction::kLand, copy.mask,
                     copy.committed ? copy.group
                                    : q.committed[static_cast<size_t>(__builtin_ctz(copy.mask))],
                     all, &copy);
      }
    } else {
      if (kept != i) q.pending[kept] = q.pending[i];
      ++kept;
    }
  }
  q.pending.resize(kept);
  if constexpr (kObserved) {
    report_async(w, op.instruction, AsyncAction::kWait, w.mask, allowed, all, nullptr);
  }
  return Step::kNext;
}

}  // namespace

Bound cp_async(Modifiers& m) {
  m.ignore_cache_hints();
  return {issue<false>, issue<true>, m.spelling().operands[3].type == Type::kPred};
}

Bound cp_async_commit(Modifiers&) {
  return {commit<false>, commit<true>};
}

Bound cp_async_wait(Modifiers& m) {
  return {wait<false>, wait<true>, m.flag("wait_all")};
}

}  // namespace ptxvm::ops
