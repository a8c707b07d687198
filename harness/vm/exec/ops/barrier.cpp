// SPDX-License-Identifier: MIT
// bar, barrier, membar and fence (PTX ISA 9.7.13.1 to 9.7.13.4).
#include "exec/barrier.h"

#include <algorithm>

#include "exec/converge.h"
#include "exec/ops/lanes.h"

namespace ptxvm {
namespace {

// What the warp does at the barrier.
enum class Arrival : uint8_t { kSync, kArrive, kReduceAnd, kReduceOr, kReducePopc };

bool complete(const Cta& cta, const Barrier& b) {
  if (b.warps.empty()) return false;
  if (b.expected != 0) return b.warps.size() * 32 >= b.expected;
  size_t live = 0;
  for (const Warp& w : cta.warps) live += w.status != WarpStatus::kExited && w.live != 0;
  return b.warps.size() >= live;
}

// bar.red: the result goes to the destination that each waiter named.
void write_result(Warp& w, const Op& op, const Barrier& b) {
  const uint32_t saved = w.mask;
  w.mask = w.live;
  switch (op.aux.as<Arrival>()) {
    case Arrival::kReduceAnd:
      w.set_predicate(op.r[0], b.votes == b.voters ? kAllLanes : 0);
      break;
    case Arrival::kReduceOr:
      w.set_predicate(op.r[0], b.votes != 0 ? kAllLanes : 0);
      break;
    case Arrival::kReducePopc: {
      uint32_t* d = w.at<uint32_t>(op.r[0]);
      for_lanes(w.live, [&](int i) { d[i] = b.votes; });
      break;
    }
    default:
      break;
  }
  w.mask = saved;
}

void release(Cta& cta, uint32_t id, const Warp& last, uint32_t instruction) {
  Barrier& b = cta.barriers[id];
  if (cta.launch->observed) {
    BarrierEvent e;
    e.warp = id_of(last);
    e.instruction = instruction;
    e.action = BarrierAction::kComplete;
    e.barrier = id;
    e.expected = b.expected != 0 ? b.expected : static_cast<uint32_t>(b.warps.size() * 32);
    e.warps = b.warps;
    e.waiters = b.waiters;
    notify(last, [&](Probe& p) { p.barrier(e); });
  }
  for (size_t i = 0; i < b.waiters.size(); ++i) {
    Warp& w = cta.warps[b.waiters[i]];
    w.status = WarpStatus::kReady;
    write_result(w, *b.waiter_ops[i], b);
  }
  b.warps.clear();
  b.waiters.clear();
  b.waiter_ops.clear();
  b.expected = b.votes = b.voters = 0;
}

// The value of an operand that must be the same in all lanes.
uint32_t uniform(Warp& w, const Op& op, Ref ref, const char* what) {
  const uint32_t* v = w.at<uint32_t>(ref);
  const uint32_t first = v[__builtin_ctz(w.mask)];
  for_lanes(w.mask, [&](int i) {
    if (v[i] != first)
      raise(w, op, FaultKind::kInvalid, i, std::string(what) + " differs between lanes");
  });
  return first;
}

template <bool kObserved, Arrival kArrival, bool kAligned>
Step arrive(Warp& w, const Op& op) {
  if constexpr (kAligned) {
    if (!converge_live(w, op)) return Step::kSwitch;
  } else if (!converge(w, op, w.live)) {
    return Step::kSwitch;
  }
  constexpr bool kReduces = kArrival != Arrival::kSync && kArrival != Arrival::kArrive;
  const uint32_t* const operands = op.r + (kReduces ? 1 : 0);
  const uint32_t id = uniform(w, op, operands[0], "the number of the barrier");
  if (id >= kBarriers) {
    raise(w, op, FaultKind::kInvalid, -1,
          "there is no barrier " + std::to_string(id) + "; they are 0 to 15");
  }
  uint32_t expected = 0;
  if (operands[1] != kNoRef) {
    expected = uniform(w, op, operands[1], "the number of threads");
    if (expected == 0 || expected % 32 != 0) {
      raise(w, op, FaultKind::kInvalid, -1,
            "a barrier for " + std::to_string(expected) +
                " threads; the number must be a multiple of 32");
    }
  }
  Cta& cta = *w.cta;
  Barrier& b = cta.barriers[id];
  if (!b.warps.empty() && b.expected != expected) {
    auto text = [](uint32_t n) { return n == 0 ? std::string("all") : std::to_string(n); };
    raise(w, op, FaultKind::kInvalid, -1,
          "barrier " + std::to_string(id) + " is used for " + text(expected) +
              " threads here, for " + text(b.expected) + " by a warp that has arrived");
  }
  // bar.arrive and then bar.sync is how a ring of turns is begun: hardware counts both.
  if (kArrival == Arrival::kArrive &&
      std::find(b.warps.begin(), b.warps.end(), w.index) != b.warps.end()) {
    raise(w, op, FaultKind::kInvalid, -1,
          "the warp arrives at barrier " + std::to_string(id) + " twice in one phase");
  }
  if (kObserved) {
    BarrierEvent e;
    e.warp = id_of(w);
    e.instruction = op.instruction;
    e.action = kArrival == Arrival::kArrive ? BarrierAction::kArrive : BarrierAction::kWait;
    e.barrier = id;
    e.expected = expected;
    notify(w, [&](Probe& p) { p.barrier(e); });
  }
  b.expected = expected;
  b.warps.push_back(w.index);
  if constexpr (kReduces) {
    b.votes += static_cast<uint32_t>(__builtin_popcount(w.predicate(operands[2]) & w.mask));
    b.voters += static_cast<uint32_t>(__builtin_popcount(w.mask));
  }
  if constexpr (kArrival != Arrival::kArrive) {
    b.waiters.push_back(w.index);
    b.waiter_ops.push_back(&op);
    w.status = WarpStatus::kAtBarrier;
    w.barrier = static_cast<uint8_t>(id);
  }
  if (complete(cta, b)) release(cta, id, w, op.instruction);
  return w.status == WarpStatus::kAtBarrier ? Step::kBlocked : Step::kNext;
}

template <Arrival kArrival>
Bound arrival_code(bool aligned) {
  if (aligned) return {arrive<false, kArrival, true>, arrive<true, kArrival, true>, kArrival};
  return {arrive<false, kArrival, false>, arrive<true, kArrival, false>, kArrival};
}

// `bar` is always aligned, `barrier` when it says so.
bool aligned(Modifiers& m) {
  m.flag("cta");
  return m.flag("aligned") || m.base() == "bar";
}

struct Fence {
  FenceKind kind;
  Space space;
};

template <bool kObserved>
Step pass_fence(Warp& w, const Op& op) {
  if constexpr (kObserved) {
    const auto fence = op.aux.as<Fence>();
    const FenceEvent e{id_of(w), op.instruction, w.mask, fence.kind, fence.space};
    notify(w, [&](Probe& p) { p.fence(e); });
  }
  return Step::kNext;
}

Bound fence_code(FenceKind kind, Space space) {
  return {pass_fence<false>, pass_fence<true>, Fence{kind, space}};
}

}  // namespace

void recheck_barriers(Cta& cta) {
  for (uint32_t id = 0; id < kBarriers; ++id) {
    Barrier& b = cta.barriers[id];
    if (b.expected == 0 && !b.waiters.empty() && complete(cta, b)) {
      release(cta, id, cta.warps[b.waiters.back()], b.waiter_ops.back()->instruction);
    }
  }
}

namespace ops {

Bound bar_sync(Modifiers& m) {
  return arrival_code<Arrival::kSync>(aligned(m));
}
Bound bar_arrive(Modifiers& m) {
  return arrival_code<Arrival::kArrive>(aligned(m));
}

Bound bar_red(Modifiers& m) {
  const bool a = aligned(m);
  switch (m.choice({"and", "or", "popc"})) {
    case 0:
      m.type();
      return arrival_code<Arrival::kReduceAnd>(a);
    case 1:
      m.type();
      return arrival_code<Arrival::kReduceOr>(a);
    default:
      return arrival_code<Arrival::kReducePopc>(a);
  }
}

// A fence that is restricted to one way and to shared memory is taken for a whole one.
void read_restriction(Modifiers& m) {
  m.choice({"acquire", "release"});
  m.choice({"sync_restrict::shared::cluster", "sync_restrict::shared::cta"});
}

Bound fence(Modifiers& m) {
  // All accesses of a block are made in order by one thread of the host.
  m.choice({"sc", "acq_rel"});
  read_restriction(m);
  m.choice({"cta", "cluster", "gpu", "sys", "gl"});
  return fence_code(FenceKind::kMemory, Space::kGeneric);
}

Bound fence_proxy(Modifiers& m) {
  read_restriction(m);
  const int space = m.choice({"global", "shared::cta", "shared::cluster"});
  return fence_code(FenceKind::kProxyAsync, space < 0    ? Space::kGeneric
                                            : space == 0 ? Space::kGlobal
                                                         : Space::kShared);
}

// Maps are read when a copy is issued, after all that the warp has done: only other checkers of
// memory want to know.
Bound fence_tensormap(Modifiers& m) {
  m.choice({"acquire", "release"});
  m.choice({"cta", "cluster", "gpu", "sys"});
  return fence_code(FenceKind::kMemory, Space::kGeneric);
}

Bound fence_mbarrier_init(Modifiers&) {
  return fence_code(FenceKind::kMbarrierInit, Space::kShared);
}

}  // namespace ops
}  // namespace ptxvm
