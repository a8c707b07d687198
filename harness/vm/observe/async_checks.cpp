// SPDX-License-Identifier: MIT
// mbarriers, bulk copies and wgmma: engines that a warp starts and waits for.
#include <algorithm>

#include "observe/block_checks.h"

namespace ptxvm::observe {

void RaceProbe::check_init(const Mbarrier& m, const MbarrierEvent& e) {
  if (!m.known) return;
  check_init(m.init, e);
  for (const Mbarrier::Init& each : m.earlier) check_init(each, e);
}

void RaceProbe::check_init(const Mbarrier::Init& init, const MbarrierEvent& e) {
  const uint32_t w = warp(e.warp);
  if (init.clock <= clocks_.seen(w)[clocks_.warp(init.warp)]) return;
  const std::vector<Clock>& inits = cluster_known_[w].inits;
  if (!inits.empty() && init.clock <= inits[init.warp]) return;
  log_.next_request();
  Example x;
  x.address = offset(e.address);
  x.block = block_number(e.home);
  add(Problem::kMbarrierInit, warp_party(w, e.instruction), init.party, x);
}

void RaceProbe::init_again(Mbarrier& m, const MbarrierEvent& e) {
  const uint32_t w = warp(e.warp);
  const Party here = warp_party(w, e.instruction);
  if (m.init.warp != w) m.earlier.push_back(m.init);
  log_.next_request();
  Example x;
  x.address = offset(e.address);
  x.block = block_number(e.home);
  add(Problem::kMbarrierAgain, here, m.init.party, x);
}

void RaceProbe::check_waits(const Mbarrier& m, const MbarrierEvent& e) {
  for (uint32_t w = 0; w < m.waits.size(); ++w) {
    const Mbarrier::Wait& wait = m.waits[w];
    if (wait.clock == 0 || wait.phase + 1 != e.phase) continue;
    if (wait.clock <= clocks_.reached(m.arriving, w)) continue;
    log_.next_request();
    Example x;
    x.address = offset(e.address);
    x.block = block_number(e.home);
    x.phase = e.phase;
    add(Problem::kMbarrierLate, warp_party(w, wait.instruction),
        warp_party(warp(e.warp), e.instruction), x);
  }
}

void RaceProbe::mbarrier(const MbarrierEvent& e) {
  const uint32_t w = warp(e.warp), at = place(e.home, e.address);
  Mbarrier& m = mbarriers_[at];
  switch (e.action) {
    case MbarrierAction::kInit:
      if (m.known) {
        init_again(m, e);
      } else {
        m.earlier.clear();
      }
      m.first_clock += static_cast<Clock>(m.phase) + 1;
      m.phase = 0;
      m.arriving.clear();
      m.done.clear();
      m.waits.assign(blocks() * warps_, {});
      m.init = {warp_party(w, e.instruction), w, clocks_.now(w)};
      m.known = true;
      m.fenced = false;
      break;
    case MbarrierAction::kInvalidate:
      m.known = false;
      break;
    case MbarrierAction::kArrive:
      check_init(m, e);
      if (e.commit != 0) arrive_commit(e, m.arriving);
      if (e.by_copy) clocks_.know(m.arriving, clocks_.copies(w), copies_[w].clock);
      if (!e.ordered) {
        // A commit arrives when the warp has gone on.
        if (e.commit == 0) clocks_.release_reached(w, m.arriving);
        break;
      }
      if (e.home != e.warp.cta_rank)
        use_remote(e.home, clocks_.warp(w), clocks_.now(w), warp_party(w, e.instruction));
      clocks_.release(w, m.arriving);
      break;
    case MbarrierAction::kExpect:
    case MbarrierAction::kMiss:
      check_init(m, e);
      break;
    case MbarrierAction::kComplete:
      // A copy has handed on at its issue what its warp knew then.
      if (kernel_.instructions()[e.instruction].count_class == CountClass::kMbarrier)
        clocks_.release_reached(w, m.arriving);
      break;
    case MbarrierAction::kPhase:
      check_waits(m, e);
      clocks_.know(m.arriving, clocks_.bulk_load(at),
                   m.first_clock + static_cast<Clock>(e.phase) + 1);
      m.done.swap(m.arriving);
      m.arriving.clear();
      m.phase = e.phase + 1;
      break;
    case MbarrierAction::kWait:
      check_init(m, e);
      if (e.ordered) clocks_.acquire(w, m.done);
      if (!e.ordered) clocks_.acquire_reached(w, m.done);
      m.waits[w] = {clocks_.now(w), e.phase, e.instruction};
      clocks_.sync_lanes(w);
      break;
  }
}

void RaceProbe::load_bulk(const BulkEvent& e) {
  const uint32_t w = warp(e.warp), at = place(e.mbarrier_home, e.mbarrier);
  Mbarrier& m = mbarriers_[at];
  clocks_.release_reached(w, m.arriving);
  // st.async and red.async are none of the async proxy's: the barrier of the cluster is enough.
  const CountClass count = kernel_.instructions()[e.instruction].count_class;
  if (m.known && !m.fenced && count == CountClass::kBulkCopy) {
    Example x;
    x.address = offset(e.mbarrier);
    x.block = block_number(e.mbarrier_home);
    add(Problem::kMbarrierFence, warp_party(w, e.instruction), m.init.party, x);
  }
  Actor a = async_actor(w, clocks_.bulk_load(at), m.first_clock + static_cast<Clock>(m.phase) + 1);
  if (e.mbarrier_home != e.warp.cta_rank) {
    MbarrierEvent use;
    use.warp = e.warp;
    use.instruction = e.instruction;
    use.home = e.mbarrier_home;
    use.address = e.mbarrier;
    check_init(m, use);
    use_remote(e.mbarrier_home, a.agent, a.stamp, warp_party(w, e.instruction));
  }
  if (e.home != e.warp.cta_rank && e.home != e.mbarrier_home)
    use_remote(e.home, a.agent, a.stamp, warp_party(w, e.instruction));
  // Reductions of several threads may go to one place.
  a.strong = e.combines;
  for (const SharedRange& r : e.shared) {
    shadow_.write(a, e.instruction, place(e.home, r.address), r.bytes, Place::kWarp, 4);
  }
  if (e.source.bytes == 0) return;
  a.strong = false;
  shadow_.read(a, e.instruction, place(e.warp.cta_rank, e.source.address), e.source.bytes,
               Place::kWarp, 4);
}

void RaceProbe::bulk(const BulkEvent& e) {
  fresh_.bulk(e, ctas_[e.warp.cta_rank]);
  const uint32_t w = warp(e.warp);
  log_.next_request();
  request_bytes_ = 16;
  StoreGroups& stores = stores_[w];
  if (e.action == BulkAction::kIssue && e.kind == BulkKind::kLoad) load_bulk(e);
  if (e.action == BulkAction::kIssue && e.kind == BulkKind::kStore) {
    const Actor a =
        async_actor(w, clocks_.bulk_store(w), stores.issue(e.lane, e.group, e.instruction));
    for (const SharedRange& r : e.shared) {
      shadow_.read(a, e.instruction, place(e.warp.cta_rank, r.address), r.bytes, Place::kWarp, 4);
    }
  }
  if (e.action == BulkAction::kCommit) stores.commit(e.lane, e.group);
  if (e.action == BulkAction::kWait) {
    const Clock done = stores.wait(e.lane, e.group);
    if (done > 0) clocks_.know(w, clocks_.bulk_store(w), done);
  }
}

void RaceProbe::wgmma(const WgmmaEvent& e) {
  const uint32_t w = warp(e.warp);
  if (e.action == WgmmaAction::kIssue) {
    std::vector<Issued>& issued = wgmma_issued_[w];
    if (issued.empty() || issued.back().group != e.group) issued.push_back({e.group, {}});
    clocks_.release_reached(w, issued.back().reached);
    log_.next_request();
    request_bytes_ = 16;
    last_wgmma_[w] = e.instruction;
    const Actor a = async_actor(w, clocks_.wgmma(warpgroup(e)), static_cast<Clock>(e.group) + 1);
    for (const SharedRange& r : e.shared) {
      shadow_.read(a, e.instruction, place(e.warp.cta_rank, r.address), r.bytes, Place::kWarp, 4);
    }
  }
  if (e.action == WgmmaAction::kUnfenced) {
    log_.next_request();
    add(Problem::kUnfenced, warp_party(w, e.instruction), {}, {});
  }
  if (e.action == WgmmaAction::kComplete) {
    const uint32_t block = e.warp.cta_rank * warps_, first = e.warpgroup * 4;
    const uint32_t begin = block + first, end = block + std::min(first + 4, warps_);
    // A product is done only when all four warps have issued it.
    Clocks::Release reached;
    for (uint32_t i = begin; i < end; ++i) {
      std::erase_if(wgmma_issued_[i], [&](const Issued& each) {
        if (each.group >= e.group) return false;
        Clocks::join(reached, each.reached);
        return true;
      });
    }
    for (uint32_t i = begin; i < end; ++i) {
      clocks_.know(i, clocks_.wgmma(warpgroup(e)), static_cast<Clock>(e.group));
      clocks_.acquire_reached(i, reached);
    }
  }
}

}  // namespace ptxvm::observe
