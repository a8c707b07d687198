#include "observe/block_checks.h"

#include <string_view>

namespace ptxvm::observe {
namespace {

bool is_strong(std::string_view opcode) {
  for (std::string_view s : {".volatile", ".relaxed", ".acquire", ".release", ".acq_rel"}) {
    if (opcode.find(s) != std::string_view::npos) return true;
  }
  return opcode.starts_with("atom.") || opcode.starts_with("red.");
}

bool is_write(AccessKind kind) {
  return kind == AccessKind::kStore || kind == AccessKind::kAtomic ||
         kind == AccessKind::kStMatrix || kind == AccessKind::kCopyWrite;
}

}  // namespace

RaceProbe::RaceProbe(const Kernel& kernel) : kernel_(kernel), shadow_(*this) {
  for (const InstructionInfo& i : kernel.instructions()) strong_.push_back(is_strong(i.opcode));
}

void RaceProbe::cta_begin(const CtaEvent& e) {
  cta_ = e;
  clocks_.reset(e.warps);
  shadow_.reset(e.shared_bytes);
  barriers_ = {};
  released_.clear();
  mbarriers_.clear();
  stores_.assign(e.warps, {});
  last_wgmma_.assign(e.warps, 0);
  const size_t local = size_t{32} * kernel_.local_bytes();
  local_written_.assign(local == 0 ? 0 : e.warps, std::vector<bool>(local));
}

void RaceProbe::cta_end(const CtaEvent&) {
  for (uint32_t b = 0; b < barriers_.size(); ++b) {
    for (const Party& p : barriers_[b].parties) {
      log_.next_request();
      Example e;
      e.address = b;
      add(Problem::kBarrierLeft, p, {}, e);
    }
  }
}

Party RaceProbe::party(Agent a, uint32_t place) const {
  return {clocks_.kind(a), clocks_.number(a), Place::lane(place), Place::instruction(place)};
}

Party RaceProbe::warp_party(uint32_t w, uint32_t instruction) const {
  return {AgentKind::kWarp, w, Place::kWarp, instruction};
}

Actor RaceProbe::warp_actor(uint32_t w) const {
  Actor a;
  a.agent = a.self = clocks_.warp(w);
  a.stamp = clocks_.now(w);
  a.lanes_synced = clocks_.lanes_synced(w);
  a.seen = clocks_.seen(w);
  return a;
}

void RaceProbe::add(Problem problem, const Party& here, const Party& there, Example example) {
  FindingKey key;
  key.problem = problem;
  key.hazard = example.hazard;
  key.instruction = here.instruction;
  key.other = there.instruction;
  key.kind = here.kind;
  key.other_kind = there.kind;
  key.same_warp = there.kind != AgentKind::kNobody && here.number == there.number;
  example.cta = cta_.cta;
  example.position = cta_.position;
  example.here = here;
  example.there = there;
  log_.add(key, example);
}

void RaceProbe::conflict(const Conflict& c) {
  Example e;
  e.hazard = c.hazard;
  // What the lane asked for, where that is more than the piece that is in conflict.
  e.bytes = request_bytes_;
  e.address = c.address & ~(request_bytes_ - 1);
  e.there_copied = c.other_copied;
  const Problem problem = c.hazard == Hazard::kUnwritten ? Problem::kUnwritten
                          : c.hazard == Hazard::kProxy   ? Problem::kProxy
                          : c.lanes                      ? Problem::kLaneRace
                                                         : Problem::kRace;
  add(problem, party(c.agent, c.place), party(c.other, c.other_place), e);
}

void RaceProbe::access(const AccessEvent& e) {
  if (e.space == Space::kShared) {
    access_shared(e);
  } else if (e.space == Space::kLocal) {
    access_local(e);
  }
}

void RaceProbe::access_shared(const AccessEvent& e) {
  log_.next_request();
  request_bytes_ = e.bytes;
  const uint32_t w = e.warp.warp;
  const bool strong = strong_[e.instruction], writes = is_write(e.kind);
  if (strong) access_strong(e, true);
  Actor actor = warp_actor(w);
  actor.strong = strong;
  if (e.kind == AccessKind::kCopyWrite) {
    actor.agent = clocks_.copies(w);
    actor.stamp = Clocks::kNever;
  }
  // A granule cannot tell the lanes of its two bytes apart.
  if (e.bytes == 1) actor.self = Clocks::kNobody;
  if (e.bytes != 16) {
    access_parts(e, actor, writes);
  } else {
    const bool whole = e.kind == AccessKind::kLdMatrix || e.kind == AccessKind::kStMatrix;
    if (writes) {
      shadow_.write_rows(actor, e.instruction, e.mask, e.narrow, cta_.shared_base, whole);
    } else {
      shadow_.read_rows(actor, e.instruction, e.mask, e.narrow, cta_.shared_base, whole);
    }
  }
  if (strong) access_strong(e, false);
}

// Lanes side by side are one piece of memory, and so are lanes at one place.
void RaceProbe::access_parts(const AccessEvent& e, const Actor& actor, bool writes) {
  struct Run {
    uint32_t begin = 0, end = 0, lane = 0, next = 0;
    bool open = false;
  } run;
  const auto width = static_cast<uint32_t>(__builtin_ctz(e.bytes));
  auto flush = [&] {
    if (!run.open) return;
    if (writes) {
      shadow_.write(actor, e.instruction, run.begin, run.end - run.begin, run.lane, width);
    } else {
      shadow_.read(actor, e.instruction, run.begin, run.end - run.begin, run.lane, width);
    }
  };
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    const uint32_t at = e.narrow[lane] - cta_.shared_base;
    const bool alone = run.open && run.end - run.begin == e.bytes;
    if (alone && at == run.begin) {
      run.lane = Place::kMany;
    } else if (run.open && at == run.end && lane == run.next && run.lane < Place::kMany) {
      run.end += e.bytes;
      ++run.next;
    } else {
      flush();
      run = {at, at + e.bytes, lane, lane + 1, true};
    }
  }
  flush();
}

// Atomic, volatile and ordered accesses: reads acquire what writes to the same address released.
void RaceProbe::access_strong(const AccessEvent& e, bool before) {
  const bool reads = e.kind == AccessKind::kAtomic || e.kind == AccessKind::kLoad;
  const bool writes = is_write(e.kind);
  if (before ? !reads : !writes) return;
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    const uint32_t at = e.narrow[__builtin_ctz(rest)];
    if (before) {
      const auto found = released_.find(at);
      if (found != released_.end()) clocks_.acquire(e.warp.warp, found->second);
    } else {
      clocks_.release(e.warp.warp, released_[at]);
    }
  }
}

void RaceProbe::access_local(const AccessEvent& e) {
  if (e.kind != AccessKind::kStore && e.kind != AccessKind::kLoad) return;
  log_.next_request();
  std::vector<bool>& written = local_written_[e.warp.warp];
  const size_t stride = kernel_.local_bytes();
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    for (uint32_t b = 0; b < e.bytes; ++b) {
      const size_t at = lane * stride + e.narrow[lane] + b;
      if (e.kind == AccessKind::kStore) {
        written[at] = true;
      } else if (!written[at]) {
        Example x;
        x.address = e.narrow[lane] + b;
        x.bytes = 1;
        Party p = warp_party(e.warp.warp, e.instruction);
        p.lane = lane;
        add(Problem::kUnwrittenLocal, p, {}, x);
        break;
      }
    }
  }
}

void RaceProbe::barrier(const BarrierEvent& e) {
  Arrivals& a = barriers_[e.barrier];
  if (e.action != BarrierAction::kComplete) {
    clocks_.release(e.warp.warp, a.release);
    a.parties.push_back(warp_party(e.warp.warp, e.instruction));
    return;
  }
  for (uint16_t w : e.waiters) {
    clocks_.acquire(w, a.release);
    clocks_.sync_lanes(w);
  }
  a.release.assign(a.release.size(), 0);
  a.parties.clear();
}

void RaceProbe::async(const AsyncEvent& e) {
  if (e.action != AsyncAction::kLand) return;
  const uint32_t w = e.warp.warp;
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    shadow_.land(clocks_.copies(w), e.instruction, clocks_.warp(w), clocks_.now(w),
                 e.shared[__builtin_ctz(rest)] - cta_.shared_base, e.bytes);
  }
}

// Partial masks count as the whole warp: which lanes were ordered is not remembered.
void RaceProbe::warp_sync(const WarpSyncEvent& e) {
  clocks_.sync_lanes(e.warp.warp);
}

void RaceProbe::fence(const FenceEvent& e) {
  if (e.kind == FenceKind::kProxyAsync) clocks_.publish(e.warp.warp);
  if (e.kind != FenceKind::kProxyAsync && e.kind != FenceKind::kMbarrierInit) return;
  for (auto& [address, m] : mbarriers_) {
    if (m.init_clock <= clocks_.seen(e.warp.warp)[clocks_.warp(m.init.number)]) m.fenced = true;
  }
}

void RaceProbe::exit(const ExitEvent& e) {
  for (const ExitEvent::Pending& p : e.pending) {
    log_.next_request();
    add(p.committed ? Problem::kCopyNotWaited : Problem::kCopyNotCommitted,
        warp_party(e.warp.warp, p.instruction), {}, {});
  }
  const Stores& stores = stores_[e.warp.warp];
  if (stores.issued > stores.waited) {
    log_.next_request();
    add(stores.issued > stores.committed ? Problem::kCopyNotCommitted : Problem::kCopyNotWaited,
        warp_party(e.warp.warp, stores.instruction), {}, {});
  }
  if (e.wgmma_pending != 0) {
    log_.next_request();
    add(Problem::kWgmmaNotWaited, warp_party(e.warp.warp, last_wgmma_[e.warp.warp]), {}, {});
  }
}

}  // namespace ptxvm::observe
