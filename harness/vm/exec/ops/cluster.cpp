// SPDX-License-Identifier: MIT
// Blocks of a cluster: addresses in each other's shared memory (PTX ISA 9.7.9.23 and 24), and the
// barrier of all their threads (9.7.13.4).
#include <algorithm>

#include "exec/access.h"
#include "exec/barrier.h"
#include "exec/converge.h"
#include "exec/ops/lanes.h"

namespace ptxvm {
namespace {

void report(const Warp& w, uint32_t instruction, ClusterAction action, bool ordered) {
  const ClusterEvent e{id_of(w), instruction, action, ordered};
  notify(w, [&](Probe& p) { p.cluster(e); });
}

// Whether all warps of the cluster that have not exited have arrived in this phase.
bool complete(const Cluster& cluster) {
  bool any = false;
  for (const Cta& cta : cluster.blocks) {
    for (const Warp& w : cta.warps) {
      if (w.status == WarpStatus::kExited || w.live == 0) continue;
      if (!w.cluster_arrived || w.cluster_phase != cluster.phase) return false;
      any = true;
    }
  }
  return any;
}

void settle(Cta& cta, const Warp& last, uint32_t instruction) {
  if (!complete(*cta.cluster)) return;
  if (cta.launch->observed) report(last, instruction, ClusterAction::kComplete, true);
  ++cta.cluster->phase;
}

// All lanes that have not exited take part; without .aligned they may come one by one.
bool gather(Warp& w, const Op& op, bool aligned) {
  return aligned ? converge_live(w, op) : converge(w, op, w.live);
}

template <bool kObserved, bool kAligned>
Step arrive(Warp& w, const Op& op) {
  if (!gather(w, op, kAligned)) return Step::kSwitch;
  if (w.cluster_arrived) {
    raise(w, op, FaultKind::kInvalid, -1,
          "the warp arrives at the barrier of the cluster twice, without a wait between");
  }
  w.cluster_arrived = true;
  w.cluster_phase = w.cta->cluster->phase;
  if constexpr (kObserved) {
    report(w, op.instruction, ClusterAction::kArrive, op.aux.as<bool>());
  }
  settle(*w.cta, w, op.instruction);
  return Step::kNext;
}

template <bool kObserved, bool kAligned>
Step wait(Warp& w, const Op& op) {
  if (!gather(w, op, kAligned)) return Step::kSwitch;
  if (!w.cluster_arrived) {
    raise(w, op, FaultKind::kInvalid, -1,
          "the warp waits at the barrier of the cluster without having arrived");
  }
  if (w.cta->cluster->phase == w.cluster_phase) return Step::kRetry;
  w.cluster_arrived = false;
  if constexpr (kObserved) report(w, op.instruction, ClusterAction::kPass, true);
  return Step::kNext;
}

constexpr uint32_t kLastRank = (~0u >> kBlockShift) - 2;  // that an address can hold

// Where the window of addresses begins.
uint64_t base_of(Modifiers& m) {
  return m.flag("shared::cluster") ? 0 : window_base(Space::kShared);
}

// Operands: destination, address in the own block, rank.
template <class T>
Step map_address(Warp& w, const Op& op) {
  const T* address = w.at<T>(op.r[1]);
  const uint32_t* rank = w.at<uint32_t>(op.r[2]);
  T* d = w.at<T>(op.r[0]);
  const auto base = op.aux.as<uint64_t>();
  for_lanes(w.mask, [&](int lane) {
    uint64_t local = uint64_t{address[lane]} - base;
    drop_rank(w, local);
    if (local > kInBlock) {
      raise(w, op, FaultKind::kInvalid, lane,
            hex(address[lane], 2 * sizeof(T)) + " is no address of this block's shared memory");
    }
    // CuTe DSL's kernels make the addresses of blocks that the cluster does not have, and use none
    // of them.
    const uint32_t block = std::min(rank[lane], kLastRank);
    d[lane] = static_cast<T>(base + cluster_address(block, static_cast<uint32_t>(local)));
  });
  return Step::kNext;
}

template <class T>
Step block_rank(Warp& w, const Op& op) {
  const T* address = w.at<T>(op.r[1]);
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  const auto base = op.aux.as<uint64_t>();
  for_lanes(w.mask, [&](int lane) {
    d[lane] = rank_of(static_cast<uint32_t>(uint64_t{address[lane]} - base), w.cta->rank);
  });
  return Step::kNext;
}

}  // namespace

void recheck_cluster_barrier(Cta& cta, const Warp& exited) {
  settle(cta, exited, exited.code[exited.pc].instruction);
}

namespace ops {

Bound cluster_arrive(Modifiers& m) {
  const bool ordered = m.choice({"release", "relaxed"}) != 1;
  if (m.flag("aligned")) return {arrive<false, true>, arrive<true, true>, ordered};
  return {arrive<false, false>, arrive<true, false>, ordered};
}

Bound cluster_wait(Modifiers& m) {
  m.flag("acquire");
  if (m.flag("aligned")) return {wait<false, true>, wait<true, true>};
  return {wait<false, false>, wait<true, false>};
}

Bound mapa(Modifiers& m) {
  const uint64_t base = base_of(m);
  return code(m.type() == Type::kU64 ? map_address<uint64_t> : map_address<uint32_t>, base);
}

Bound getctarank(Modifiers& m) {
  const uint64_t base = base_of(m);
  return code(m.type() == Type::kU64 ? block_rank<uint64_t> : block_rank<uint32_t>, base);
}

}  // namespace ops
}  // namespace ptxvm
