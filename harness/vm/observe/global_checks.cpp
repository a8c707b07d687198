// SPDX-License-Identifier: MIT
#include "observe/global_checks.h"

#include <algorithm>
#include <utility>

namespace ptxvm::observe {

GlobalChecks::GlobalChecks(const LaunchInfo& info, Sums sums)
    : kernel_(info.kernel), memory_(*info.memory), sums_(sums) {
  for (const auto& buffer : memory_.buffers()) {
    if (buffer->fresh) fresh_.insert(buffer.get());
  }
}

void GlobalChecks::begin(const CtaEvent& e) {
  if (e.rank == 0) cluster_ = std::make_shared<std::vector<uint32_t>>();
  cluster_->push_back(e.cta);
  Meetings& m = meetings_[e.cta];
  m.position = e.position;
  m.cluster = cluster_;
  m.stores.assign(e.warps, {});
  clocks_.begin(e.cta, e.warps);
}

void GlobalChecks::end(const CtaEvent& e) {
  meetings_.erase(e.cta);
  clocks_.end(e.cta);
}

void GlobalChecks::access(const AccessEvent& e) {
  if (e.space == Space::kGlobal) {
    access_global(e);
  } else if (e.space == Space::kShared && spelling_of(kernel_, e.instruction).ordering.strong) {
    access_shared(e);
  }
}

void GlobalChecks::access_global(const AccessEvent& e) {
  log_.next_request();
  const isa::Ordering& o = spelling_of(kernel_, e.instruction).ordering;
  const bool writes = is_write(e.kind), reads = !writes || e.kind == AccessKind::kAtomic;
  auto for_addresses = [&](auto f) {
    for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) f(e.wide[__builtin_ctz(rest)]);
  };
  if (o.strong && reads) {
    for_addresses([&](uint64_t address) { clocks_.read(e.warp, address, o.acquire); });
  }
  const Mark mark{e.warp.cta, clocks_.now(e.warp), e.instruction, e.warp.warp, o.strong};
  access_ = &e;
  for_addresses([&](uint64_t address) { piece(e.warp, mark, address, e.bytes, reads, writes); });
  access_ = nullptr;
  if (o.strong && writes) {
    for_addresses([&](uint64_t address) {
      clocks_.write(e.warp, address, o.release, o.block_scope, e.kind == AccessKind::kAtomic);
    });
  }
}

// A flag in shared memory: taken at its word, as Races does.
void GlobalChecks::access_shared(const AccessEvent& e) {
  std::map<uint32_t, Handover>& words = meetings_.at(e.warp.cta).words;
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    Handover& word = words[e.narrow[__builtin_ctz(rest)]];
    if (e.kind == AccessKind::kLoad || e.kind == AccessKind::kAtomic) clocks_.take(e.warp, word);
    if (is_write(e.kind)) clocks_.leave(e.warp, word);
  }
}

void GlobalChecks::piece(const WarpId& w, const Mark& mark, uint64_t address, uint32_t bytes,
                         bool reads, bool writes) {
  const bool fresh = reads && !fresh_.empty() && fresh_.contains(memory_.find(address));
  shadow_.for_cells(address, bytes, [&](GlobalCell& cell, uint64_t) {
    if (cell.write.there()) {
      check(w, mark, cell.write, reads ? Hazard::kReadAfterWrite : Hazard::kWriteAfterWrite,
            address, bytes);
    } else if (fresh) {
      add(Problem::kGlobalUnwritten, mark, {}, Hazard::kUnwritten, address, bytes);
    }
    if (writes) {
      for (const Mark& read : cell.reads) {
        if (read.there()) check(w, mark, read, Hazard::kWriteAfterRead, address, bytes);
      }
      cell.write = mark;
      cell.reads = {};
      return;
    }
    // The first place is for the oldest read that nothing orders before this one.
    const Mark& oldest = cell.reads[0];
    const bool replaces = !oldest.there() || clocks_.order(w, oldest.block, oldest.agent,
                                                           oldest.clock) == GridClocks::Order::kYes;
    cell.reads[replaces ? 0 : 1] = mark;
  });
}

// The lanes of the access that use some bytes.
uint32_t GlobalChecks::lanes_at(uint64_t address, uint32_t bytes) const {
  uint32_t lanes = 0;
  for (uint32_t rest = access_ ? access_->mask : 0; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const uint64_t at = access_->wide[lane];
    if (at < address + bytes && address < at + access_->bytes) lanes |= 1u << lane;
  }
  return lanes;
}

// All lanes that write some bytes write what is there already.
bool GlobalChecks::writes_the_same(uint64_t address, uint32_t bytes) const {
  const uint32_t lanes = lanes_at(address, bytes);
  return lanes != 0 && (lanes & ~access_->unchanged()) == 0;
}

void GlobalChecks::check(const WarpId& w, const Mark& mark, const Mark& other, Hazard hazard,
                         uint64_t address, uint32_t bytes) {
  const bool sums = sums_ == Sums::kOneOrder && hazard == Hazard::kReadAfterWrite &&
                    spelling_of(kernel_, mark.instruction).ordering.rounds &&
                    spelling_of(kernel_, other.instruction).ordering.rounds;
  if (mark.strong && other.strong && !sums) return;
  const GridClocks::Order order = clocks_.order(w, other.block, other.agent, other.clock);
  if (sums && order != GridClocks::Order::kYes)
    return add(Problem::kGlobalOrder, mark, other, hazard, address, bytes);
  switch (order) {
    case GridClocks::Order::kYes:
      return;
    case GridClocks::Order::kUnfenced:
      return add(Problem::kGlobalUnfenced, mark, other, hazard, address, bytes);
    case GridClocks::Order::kNo: {
      const bool same = hazard == Hazard::kWriteAfterWrite && writes_the_same(address, bytes);
      return add(same ? Problem::kGlobalSameValue : Problem::kGlobalRace, mark, other, hazard,
                 address, bytes);
    }
  }
}

Party GlobalChecks::party(const Mark& mark) const {
  Party p;
  if (!mark.there()) return p;
  const uint32_t warps = clocks_.warps(mark.block);
  p.kind = mark.agent < warps ? AgentKind::kWarp : AgentKind::kBulkStore;
  p.number = mark.agent % warps;
  p.instruction = mark.instruction;
  p.block = static_cast<int>(mark.block);
  return p;
}

void GlobalChecks::add(Problem problem, const Mark& here, const Mark& there, Hazard hazard,
                       uint64_t address, uint32_t bytes) {
  Example e;
  e.here = party(here);
  e.there = party(there);
  e.hazard = hazard;
  e.cta = here.block;
  e.position = meetings_.at(here.block).position;
  if (const Buffer* buffer = memory_.find(address)) {
    e.buffer = buffer->name;
    e.address = address - buffer->address;
  }
  e.bytes = bytes;
  if (const uint32_t lanes = lanes_at(address, bytes); lanes != 0)
    e.show(*access_, __builtin_ctz(lanes));
  FindingKey key;
  key.problem = problem;
  key.hazard = hazard;
  key.instruction = here.instruction;
  key.other = there.instruction;
  key.kind = e.here.kind;
  key.other_kind = e.there.kind;
  key.same_warp = there.there() && e.here.number == e.there.number && here.block == there.block;
  log_.add(key, e);
}

void GlobalChecks::barrier(const BarrierEvent& e) {
  Handover& at = meetings_.at(e.warp.cta).barriers[e.barrier];
  if (e.action != BarrierAction::kComplete) {
    clocks_.leave(e.warp, at);
    return;
  }
  WarpId waiter = e.warp;
  for (const uint16_t w : e.waiters) {
    waiter.warp = w;
    clocks_.take(waiter, at);
  }
  at = {};
}

void GlobalChecks::cluster(const ClusterEvent& e) {
  Meetings& first = of_rank(e.warp, 0);
  if (e.action == ClusterAction::kArrive && e.ordered) {
    clocks_.leave_for_others(e.warp, first.cluster_arriving);
  } else if (e.action == ClusterAction::kComplete) {
    first.cluster_done = std::exchange(first.cluster_arriving, {});
  } else if (e.action == ClusterAction::kPass) {
    clocks_.take(e.warp, first.cluster_done);
  }
}

void GlobalChecks::fence(const FenceEvent& e) {
  if (e.kind == FenceKind::kMemory) {
    clocks_.fence(e.warp, spelling_of(kernel_, e.instruction).ordering.block_scope);
  }
}

void GlobalChecks::mbarrier(const MbarrierEvent& e) {
  auto& [arriving, done] = of_rank(e.warp, e.home).mbarriers[e.address];
  if (e.action == MbarrierAction::kInit) {
    arriving = done = {};
  } else if (e.action == MbarrierAction::kArrive && e.ordered) {
    if (e.home == e.warp.cta_rank) {
      clocks_.leave(e.warp, arriving);
    } else {
      clocks_.leave_for_others(e.warp, arriving);
    }
  } else if (e.action == MbarrierAction::kPhase) {
    done = std::exchange(arriving, {});
  } else if (e.action == MbarrierAction::kWait && e.ordered) {
    clocks_.take(e.warp, done);
  }
}

// A load counts as a read of the warp that issues it; a store is made by an engine, which is done
// when a wait that is not only for reading says so.
void GlobalChecks::bulk(const BulkEvent& e) {
  StoreGroups& stores = meetings_.at(e.warp.cta).stores[e.warp.warp];
  if (e.action == BulkAction::kCommit) stores.commit(e.lane, e.group);
  if (e.action == BulkAction::kWait && !e.read_only) {
    const Clock done = stores.wait(e.lane, e.group);
    if (done > 0) clocks_.know_stores(e.warp, done);
  }
  if (e.action != BulkAction::kIssue || e.kind == BulkKind::kPrefetch) return;
  log_.next_request();
  const bool store = e.kind == BulkKind::kStore;
  Mark mark{e.warp.cta, clocks_.now(e.warp), e.instruction, e.warp.warp, false};
  if (store) {
    mark.agent = static_cast<uint16_t>(clocks_.warps(e.warp.cta) + e.warp.warp);
    mark.clock = stores.issue(e.lane, e.group, e.instruction);
  }
  mark.strong = e.combines;
  for (const GlobalRange& r : e.global) {
    piece(e.warp, mark, r.address, r.bytes, !store || e.combines, store);
  }
}

}  // namespace ptxvm::observe
