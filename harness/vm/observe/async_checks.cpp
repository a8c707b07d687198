// mbarriers, bulk copies and wgmma: engines that a warp starts and waits for.
#include <algorithm>

#include "observe/block_checks.h"

namespace ptxvm::observe {

void RaceProbe::check_init(const Mbarrier& m, const MbarrierEvent& e) {
  const uint32_t w = e.warp.warp;
  if (!m.known || m.init_clock <= clocks_.seen(w)[clocks_.warp(m.init.number)]) return;
  log_.next_request();
  Example x;
  x.address = e.address - cta_.shared_base;
  add(Problem::kMbarrierInit, warp_party(w, e.instruction), m.init, x);
}

void RaceProbe::mbarrier(const MbarrierEvent& e) {
  const uint32_t w = e.warp.warp;
  Mbarrier& m = mbarriers_[e.address];
  switch (e.action) {
    case MbarrierAction::kInit:
      m.first_clock += static_cast<Clock>(m.phase) + 1;
      m.phase = 0;
      m.arriving.clear();
      m.done.clear();
      m.init = warp_party(w, e.instruction);
      m.init_clock = clocks_.now(w);
      m.known = true;
      m.fenced = false;
      break;
    case MbarrierAction::kInvalidate:
      m.known = false;
      break;
    case MbarrierAction::kArrive:
      check_init(m, e);
      if (e.ordered) clocks_.release(w, m.arriving);
      break;
    case MbarrierAction::kExpect:
    case MbarrierAction::kMiss:
      check_init(m, e);
      break;
    case MbarrierAction::kComplete:
      break;
    case MbarrierAction::kPhase:
      clocks_.know(m.arriving, clocks_.bulk_load(e.address),
                   m.first_clock + static_cast<Clock>(e.phase) + 1);
      m.done.swap(m.arriving);
      m.arriving.clear();
      m.phase = e.phase + 1;
      break;
    case MbarrierAction::kWait:
      check_init(m, e);
      if (e.ordered) clocks_.acquire(w, m.done);
      clocks_.sync_lanes(w);
      break;
  }
}

void RaceProbe::load_bulk(const BulkEvent& e) {
  const uint32_t w = e.warp.warp;
  const Mbarrier& m = mbarriers_[e.mbarrier];
  if (m.known && !m.fenced) {
    Example x;
    x.address = e.mbarrier - cta_.shared_base;
    add(Problem::kMbarrierFence, warp_party(w, e.instruction), m.init, x);
  }
  Actor a;
  a.agent = clocks_.bulk_load(e.mbarrier);
  a.stamp = m.first_clock + static_cast<Clock>(m.phase) + 1;
  a.seen = clocks_.seen(w);
  for (const SharedRange& r : e.shared) {
    shadow_.write(a, e.instruction, r.address - cta_.shared_base, r.bytes, Place::kWarp, 4);
  }
}

void RaceProbe::bulk(const BulkEvent& e) {
  const uint32_t w = e.warp.warp;
  log_.next_request();
  request_bytes_ = 16;
  Stores& stores = stores_[w];
  if (e.action == BulkAction::kIssue && e.kind == BulkKind::kLoad) load_bulk(e);
  if (e.action == BulkAction::kIssue && e.kind == BulkKind::kStore) {
    stores.issued = e.group + 1;
    stores.instruction = e.instruction;
    Actor a;
    a.agent = clocks_.bulk_store(w);
    a.stamp = static_cast<Clock>(e.group) + 1;
    a.seen = clocks_.seen(w);
    a.published = clocks_.published(w);
    a.last_warp = clocks_.warp(cta_.warps - 1);
    for (const SharedRange& r : e.shared) {
      shadow_.read(a, e.instruction, r.address - cta_.shared_base, r.bytes, Place::kWarp, 4);
    }
  }
  if (e.action == BulkAction::kCommit) stores.committed = e.group + 1;
  if (e.action == BulkAction::kWait && stores.committed > e.group) {
    stores.waited = std::max(stores.waited, stores.committed - e.group);
    clocks_.know(w, clocks_.bulk_store(w), static_cast<Clock>(stores.waited));
  }
}

void RaceProbe::wgmma(const WgmmaEvent& e) {
  const uint32_t w = e.warp.warp;
  if (e.action == WgmmaAction::kIssue) {
    log_.next_request();
    request_bytes_ = 16;
    last_wgmma_[w] = e.instruction;
    Actor a;
    a.agent = clocks_.wgmma(e.warpgroup);
    a.stamp = static_cast<Clock>(e.group) + 1;
    a.seen = clocks_.seen(w);
    a.published = clocks_.published(w);
    a.last_warp = clocks_.warp(cta_.warps - 1);
    for (const SharedRange& r : e.shared) {
      shadow_.read(a, e.instruction, r.address - cta_.shared_base, r.bytes, Place::kWarp, 4);
    }
  }
  if (e.action == WgmmaAction::kUnfenced) {
    log_.next_request();
    add(Problem::kUnfenced, warp_party(w, e.instruction), {}, {});
  }
  if (e.action == WgmmaAction::kComplete) {
    const uint32_t first = e.warpgroup * 4;
    for (uint32_t i = first; i < first + 4 && i < cta_.warps; ++i) {
      clocks_.know(i, clocks_.wgmma(e.warpgroup), static_cast<Clock>(e.group));
    }
  }
}

}  // namespace ptxvm::observe
