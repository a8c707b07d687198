// SPDX-License-Identifier: MIT
#include "observe/block_checks.h"

#include <algorithm>
#include <utility>

#include "memory/spaces.h"
#include "observe/instruction.h"

namespace ptxvm::observe {
RaceProbe::RaceProbe(const LaunchInfo& info)
    : kernel_(info.kernel),
      has_tensor_memory_(uses_tensor_memory(info.kernel)),
      shadow_(*this),
      handed_on_(info.kernel.program()),
      fresh_(info),
      carried_(info.kernel.program()) {}

void RaceProbe::cta_begin(const CtaEvent& e) {
  if (e.rank != 0) {
    ctas_[e.rank] = e;
    return;
  }
  ctas_.assign(e.cluster, e);
  warps_ = e.warps;
  warpgroups_ = (e.warps + 3) / 4;
  stride_ = (e.shared_bytes + 15) / 16 * 16;
  const uint32_t warps = blocks() * warps_;
  clocks_.reset(warps, blocks() * warpgroups_, has_tensor_memory_);
  shadow_.reset(blocks() * stride_);
  barriers_.assign(blocks(), {});
  cluster_arriving_.clear();
  cluster_done_.clear();
  cluster_inits_arriving_.assign(warps, 0);
  cluster_inits_done_ = cluster_inits_arriving_;
  cluster_known_.assign(warps, {});
  remote_.assign(blocks(), {});
  exited_.assign(blocks(), 0);
  released_.clear();
  mbarriers_.clear();
  stores_.assign(warps, {});
  copies_.assign(warps, {});
  unwritten_shared_.clear();
  unwritten_tensor_.clear();
  stored_unwritten_.clear();
  const auto& unset = kernel_.program().unset;
  const auto first = static_cast<uint32_t>(kernel_.instructions().size());
  for (uint32_t i = 0; i < unset.size(); ++i) {
    Example example;
    example.unset = unset[i].name;
    for (uint32_t w = 0; w < warps; ++w) unwritten_shared_[{w, first + i}] = {{}, example};
  }
  last_wgmma_.assign(warps, 0);
  wgmma_issued_.assign(warps, {});
  if (has_tensor_memory_) {
    tensor_cells_.clear();
    tensor_allocated_.assign(blocks(), {});
    tensor_warps_.assign(warps, {});
    tensor_fenced_.assign(warps, std::vector<Clock>(clocks_.width()));
    tensor_commits_.clear();
  }
  shuffles_.assign(warps, {});
  const size_t local = size_t{32} * kernel_.local_bytes();
  local_written_.assign(local == 0 ? 0 : warps, std::vector<bool>(local));
  unwritten_.assign(local == 0 ? 0 : warps, {});
}

void RaceProbe::cta_end(const CtaEvent& end) {
  for (uint32_t b = 0; b < barriers_[end.rank].size(); ++b) {
    for (const Party& p : barriers_[end.rank][b].parties) {
      log_.next_request();
      Example e;
      e.address = b;
      add(Problem::kBarrierLeft, p, {}, e);
    }
  }
}

Party RaceProbe::party(Agent a, uint32_t place) const {
  Party p{clocks_.kind(a), clocks_.number(a), Place::lane(place), Place::instruction(place)};
  if (p.kind == AgentKind::kNobody || p.kind == AgentKind::kBulkLoad) return p;
  const uint32_t each = p.kind == AgentKind::kWgmma ? warpgroups_ : warps_;
  p.block = block_number(p.number / each);
  p.number %= each;
  return p;
}

Party RaceProbe::warp_party(uint32_t w, uint32_t instruction) const {
  return {AgentKind::kWarp, w % warps_, Place::kWarp, instruction, block_number(w / warps_)};
}

Actor RaceProbe::warp_actor(uint32_t w) const {
  Actor a;
  a.agent = a.self = clocks_.warp(w);
  a.stamp = clocks_.now(w);
  a.lanes_synced = clocks_.lanes_synced(w);
  a.seen = clocks_.seen(w);
  return a;
}

Actor RaceProbe::async_actor(uint32_t w, Agent agent, Clock stamp) const {
  Actor a;
  a.agent = agent;
  a.stamp = stamp;
  a.seen = clocks_.seen(w);
  a.published = clocks_.published(w);
  a.last_warp = clocks_.warp(blocks() * warps_ - 1);
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
  key.same_warp =
      there.kind != AgentKind::kNobody && here.number == there.number && here.block == there.block;
  const CtaEvent& cta = ctas_[static_cast<size_t>(std::max(here.block, 0))];
  example.cta = cta.cta;
  example.position = cta.position;
  example.here = here;
  example.there = there;
  log_.add(key, example);
}

uint32_t RaceProbe::lanes_at(const Conflict& c) const {
  uint32_t lanes = 0;
  for (uint32_t rest = access_ ? access_->mask : 0; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const uint32_t at = places_->address[lane] - places_->base;
    const uint32_t end = c.address + std::max(c.bytes, 1u);
    if (at < end && c.address < at + access_->bytes) lanes |= 1u << lane;
  }
  return lanes;
}

// Compilers let several warps store what all of them have, also in a part of the lanes, as where
// rows beyond the last one are stored in its place.
bool RaceProbe::writes_the_same(const Conflict& c) const {
  if (c.hazard != Hazard::kWriteAfterWrite || !access_ || clocks_.kind(c.other) != AgentKind::kWarp)
    return false;
  const uint32_t lanes = lanes_at(c);
  return lanes != 0 && (lanes & ~access_->unchanged()) == 0;
}

// A read cannot see the store that depends on it (PTX ISA 8.10.4, no thin air), though a shuffle
// orders no memory.
bool RaceProbe::handed_on(const Conflict& c) {
  if (!c.lanes || c.hazard != Hazard::kWriteAfterRead || !access_) return false;
  const uint32_t reader = Place::lane(c.other_place), writer = Place::lane(c.place);
  if (writer >= Place::kMany) return false;
  uint32_t heard = 1u << writer;  // lanes that the writer may have a value from
  const std::vector<Shuffle>& all = shuffles_[warp(access_->warp)];
  for (auto s = all.rbegin(); s != all.rend() && s->clock >= c.other_clock; ++s) {
    for (uint32_t rest = heard & s->members; rest != 0; rest &= rest - 1)
      heard |= 1u << s->from[static_cast<size_t>(__builtin_ctz(rest))];
  }
  const uint32_t readers = reader < Place::kMany ? 1u << reader : UINT32_MAX;
  return (readers & ~heard) == 0 &&
         handed_on_.reaches(Place::instruction(c.other_place), Place::instruction(c.place));
}

void RaceProbe::conflict(const Conflict& c) {
  Example e;
  e.hazard = c.hazard;
  // What the lane asked for, where that is more than the piece that is in conflict.
  e.bytes = request_bytes_;
  e.address = c.address % stride_ & ~(request_bytes_ - 1);
  e.block = block_number(c.address / stride_);
  e.there_copied = c.other_copied;
  if (c.hazard == Hazard::kUnwritten) {
    if (access_ && access_->unwritten) return note_unwritten(c, e);
    // Engines use what they read.
    if (const Origin* stored = origin(c)) return add_use(*stored, party(c.agent, c.place));
  }
  if (const uint32_t lanes = lanes_at(c); lanes != 0) e.show(*access_, __builtin_ctz(lanes));
  const Problem problem = c.hazard == Hazard::kUnwritten ? Problem::kUnwritten
                          : c.hazard == Hazard::kProxy   ? Problem::kProxy
                          : writes_the_same(c)           ? Problem::kSameValue
                          : handed_on(c)                 ? Problem::kHandedOn
                          : c.lanes                      ? Problem::kLaneRace
                                                         : Problem::kRace;
  add(problem, party(c.agent, c.place), party(c.other, c.other_place), e);
}

// Where somebody has stored what nobody has written: the read that it comes from.
const RaceProbe::Origin* RaceProbe::origin(const Conflict& c) const {
  if (clocks_.kind(c.other) != AgentKind::kWarp) return nullptr;
  const auto found =
      stored_unwritten_.find({clocks_.number(c.other), Place::instruction(c.other_place)});
  return found == stored_unwritten_.end() ? nullptr : &found->second;
}

void RaceProbe::note_unwritten(const Conflict& c, const Example& example) {
  ptxvm::Unwritten& out = *access_->unwritten;
  if (out.lanes == 0) {
    auto& here = unwritten_shared_[{warp(access_->warp), access_->instruction}];
    if (const Origin* stored = origin(c)) {
      here = *stored;
    } else {
      here = {party(c.agent, c.place), example};
    }
    if (access_->kind == AccessKind::kAtomic)
      stored_unwritten_[{warp(access_->warp), access_->instruction}] = here;
  }
  for (uint32_t rest = access_->mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    const uint32_t at = places_->address[lane] - places_->base;
    for (uint32_t b = 0; b < access_->bytes; ++b) {
      if (at + b - c.address >= c.bytes) continue;
      if (!(out.lanes >> lane & 1)) out.bytes[lane] = 0;
      out.lanes |= 1u << lane;
      out.bytes[lane] |= 1u << b;
    }
  }
}

// A store of what nobody has written leaves memory as it was in that respect.
void RaceProbe::keep_unwritten(const AccessEvent& e, const Places& places) {
  const uint32_t w = warp(e.warp);
  const auto load = unwritten_shared_.find({w, e.unwritten->load});
  if (load == unwritten_shared_.end()) return;
  stored_unwritten_[{w, e.instruction}] = load->second;
  for (uint32_t rest = e.unwritten->lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    const uint32_t at = places.address[lane] - places.base, its = e.unwritten->bytes[lane];
    for (uint32_t b = 0; b < e.bytes;) {
      const uint32_t first = b;
      while (b < e.bytes && (its >> b & 1) != 0) ++b;
      if (b != first)
        shadow_.empty(at + first, b - first);
      else
        ++b;
    }
  }
}

void RaceProbe::generic_address(const GenericAddressEvent& e) {
  if (std::exchange(generic_named_, true)) return;
  log_.next_request();
  add(e.shared ? Problem::kSharedAddress : Problem::kGenericAddress,
      warp_party(warp(e.warp), e.instruction), {}, {});
}

void RaceProbe::unwritten_use(const UnwrittenUseEvent& e) {
  if (const auto tensor = unwritten_tensor_.find({warp(e.warp), e.load});
      tensor != unwritten_tensor_.end()) {
    log_.next_request();
    const auto& [access, cell] = tensor->second;
    return add_tensor(Problem::kTensorUnwritten, Hazard::kUnwritten, access, {}, cell);
  }
  const auto found = unwritten_shared_.find({warp(e.warp), e.load});
  if (found == unwritten_shared_.end()) return use_local(e);
  log_.next_request();
  add_use(found->second, warp_party(warp(e.warp), e.instruction));
}

void RaceProbe::add_use(const Origin& origin, const Party& user) {
  Example example = origin.second;
  if (!example.unset.empty()) return add(Problem::kUnset, user, {}, example);
  example.used = user.instruction;
  add(Problem::kUnwritten, origin.first, {}, example);
}

// A shuffle may have brought the value from another lane.
void RaceProbe::use_local(const UnwrittenUseEvent& e) {
  if (unwritten_.empty()) return;
  const LaterLoad& later = unwritten_[warp(e.warp)][e.load];
  const uint32_t own = later.lanes & e.mask, lanes = own != 0 ? own : later.lanes;
  if (lanes == 0) return;
  log_.next_request();
  const auto lane = static_cast<uint32_t>(__builtin_ctz(lanes));
  add_unwritten_local(warp(e.warp), e.load, lane, later.address[lane], e.instruction);
}

void RaceProbe::access(const AccessEvent& e) {
  fresh_.access(e, spelling_of(kernel_, e.instruction).exchanges, ctas_[e.warp.cta_rank]);
  if (e.space == Space::kShared) {
    access_ = &e;
    access_shared(e);
    access_ = nullptr;
  } else if (e.space == Space::kLocal) {
    access_local(e);
  }
  if (e.kind == AccessKind::kStore) store_carried(e);
}

void RaceProbe::access_shared(const AccessEvent& e) {
  log_.next_request();
  request_bytes_ = e.bytes;
  const uint32_t w = warp(e.warp);
  const isa::Spelling& spelling = spelling_of(kernel_, e.instruction);
  const bool strong = spelling.ordering.strong, writes = is_write(e.kind);
  Places at;
  places(e, at);
  places_ = &at;
  if (at.address == at.moved) check_started(e);
  if (strong) access_strong(e, true, at);
  Actor actor = warp_actor(w);
  // All lanes of a warp allocate tensor memory together: each may read the address at once.
  actor.strong = strong || spelling.traits().polls == isa::Polls::kTensorMemory;
  actor.updates = e.kind == AccessKind::kAtomic;
  actor.sets = spelling.exchanges;
  if (e.kind == AccessKind::kCopyWrite) {
    actor.agent = clocks_.copies(w);
    actor.stamp = Clocks::kNever;
  }
  if (e.bytes != 16) {
    access_parts(e, actor, writes, at);
  } else {
    const bool whole = e.kind == AccessKind::kLdMatrix || e.kind == AccessKind::kStMatrix;
    if (writes) {
      shadow_.write_rows(actor, e.instruction, e.mask, at.address, at.base, whole);
    } else {
      shadow_.read_rows(actor, e.instruction, e.mask, at.address, at.base, whole);
    }
  }
  if (writes && e.unwritten && e.kind != AccessKind::kAtomic) keep_unwritten(e, at);
  if (strong) access_strong(e, false, at);
}

void RaceProbe::places(const AccessEvent& e, Places& out) const {
  out.address = e.narrow;
  out.base = ctas_[0].shared_base - e.warp.cta_rank * stride_;
  if (blocks() == 1) return;
  uint32_t all = 0;
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) all |= e.narrow[__builtin_ctz(rest)];
  if (all >> kBlockShift == 0) return;
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    const uint32_t address = e.narrow[lane];
    out.moved[lane] = place(rank_of(address, e.warp.cta_rank), address & kInBlock);
  }
  out.address = out.moved;
  out.base = 0;
}

// A block of the cluster may begin late, and its memory goes when it ends.
void RaceProbe::check_started(const AccessEvent& e) {
  const uint32_t w = warp(e.warp);
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    const uint32_t rank = rank_of(e.narrow[__builtin_ctz(rest)], e.warp.cta_rank);
    if (rank == e.warp.cta_rank) continue;
    const Clock* seen = clocks_.seen(w) + clocks_.warp(rank * warps_);
    if (!cluster_known_[w].met &&
        std::all_of(seen, seen + warps_, [](Clock c) { return c == 0; })) {
      Example x;
      x.block = block_number(rank);
      add(Problem::kBlockStart, warp_party(w, e.instruction), {}, x);
    }
    use_remote(rank, clocks_.warp(w), clocks_.now(w), warp_party(w, e.instruction));
  }
}

void RaceProbe::use_remote(uint32_t rank, Agent a, Clock c, const Party& p) {
  Remote& r = remote_[rank][a];
  if (c >= r.clock) r = {c, p};
}

// The last warp of a block has exited: what others did in its memory must have been known.
void RaceProbe::check_exit(uint32_t rank) {
  for (const auto& [agent, use] : remote_[rank]) {
    bool known = false;
    for (uint32_t w = rank * warps_; w < (rank + 1) * warps_; ++w)
      known |= clocks_.seen(w)[agent] >= use.clock;
    if (known) continue;
    log_.next_request();
    Example x;
    x.block = block_number(rank);
    add(Problem::kBlockExit, use.party, {}, x);
  }
}

// Lanes side by side are one piece of memory, and so are lanes at one place.
void RaceProbe::access_parts(const AccessEvent& e, const Actor& actor, bool writes,
                             const Places& places) {
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
    const uint32_t at = places.address[lane] - places.base;
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
void RaceProbe::access_strong(const AccessEvent& e, bool before, const Places& places) {
  const bool reads = e.kind == AccessKind::kAtomic || e.kind == AccessKind::kLoad;
  const bool writes = is_write(e.kind);
  if (before ? !reads : !writes) return;
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    const uint32_t at = places.address[__builtin_ctz(rest)] - places.base;
    if (before) {
      const auto found = released_.find(at);
      if (found != released_.end()) clocks_.acquire(warp(e.warp), found->second);
    } else {
      clocks_.release(warp(e.warp), released_[at]);
    }
  }
}

// A copy of a struct reads what lies between its members, too: as a part of a wider load, or byte
// by byte beside what is written, in the eight that the largest alignment of a member spans.
bool RaceProbe::is_padding(const AccessEvent& e, const std::vector<bool>& written,
                           size_t lane_begin, size_t address) const {
  constexpr size_t kAlignment = 8;
  constexpr uint32_t kNarrow = 2;
  if (spelling_of(kernel_, e.instruction).operands[0].kind == isa::OperandKind::kVector)
    return false;
  size_t first = address, end = address + e.bytes;
  if (e.bytes <= kNarrow) {
    first = address / kAlignment * kAlignment;
    end = std::min<size_t>(first + kAlignment, kernel_.local_bytes());
  }
  const auto place = [&](size_t i) {
    return written.begin() + static_cast<std::ptrdiff_t>(lane_begin + i);
  };
  return std::find(place(first), place(end), true) != place(end);
}

void RaceProbe::access_local(const AccessEvent& e) {
  const bool writes = e.kind == AccessKind::kStore || e.kind == AccessKind::kPassed;
  if (!writes && e.kind != AccessKind::kLoad) return;
  log_.next_request();
  const uint32_t w = warp(e.warp);
  std::vector<bool>& written = local_written_[w];
  if (!writes && carried_.only_stored(e.instruction)) unwritten_[w][e.instruction].lanes &= ~e.mask;
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    const size_t begin = size_t{lane} * kernel_.local_bytes();
    const auto first = written.begin() + static_cast<std::ptrdiff_t>(begin + e.narrow[lane]);
    if (writes) {
      std::fill_n(first, e.bytes, true);
    } else if (std::find(first, first + e.bytes, false) != first + e.bytes &&
               !is_padding(e, written, begin, e.narrow[lane])) {
      load_unwritten_local(e, lane, first);
    }
  }
}

// What nobody has written is an error where it is used: a thread may load and then select another
// value. The machine follows it, but for what is only copied.
void RaceProbe::load_unwritten_local(const AccessEvent& e, uint32_t lane,
                                     std::vector<bool>::const_iterator written) {
  uint32_t bytes = 0;
  for (uint32_t b = 0; b < e.bytes; ++b) bytes |= written[b] ? 0u : 1u << b;
  const uint32_t address = e.narrow[lane] + static_cast<uint32_t>(__builtin_ctz(bytes));
  const bool carried = carried_.only_stored(e.instruction);
  if (!carried && !e.unwritten)
    return add_unwritten_local(warp(e.warp), e.instruction, lane, address);
  LaterLoad& later = unwritten_[warp(e.warp)][e.instruction];
  later.lanes |= 1u << lane;
  later.address[lane] = address;
  if (carried) return;
  e.unwritten->lanes |= 1u << lane;
  e.unwritten->bytes[lane] = bytes;
}

void RaceProbe::add_unwritten_local(uint32_t w, uint32_t load, uint32_t lane, uint32_t address,
                                    std::optional<uint32_t> use) {
  Example x;
  x.address = address;
  x.bytes = 1;
  x.used = use;
  Party p = warp_party(w, load);
  p.lane = lane;
  add(Problem::kUnwrittenLocal, p, {}, x);
}

// Within local memory a value without meaning may be copied; what leaves it is seen by others.
void RaceProbe::store_carried(const AccessEvent& e) {
  const uint32_t w = warp(e.warp);
  const std::vector<uint32_t>* const loads = carried_.loads_of(e.instruction);
  if (!loads || e.space == Space::kLocal) return;
  for (const uint32_t load : *loads) {
    const auto found = unwritten_[w].find(load);
    if (found == unwritten_[w].end()) continue;
    for (uint32_t rest = found->second.lanes & e.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
      add_unwritten_local(w, load, lane, found->second.address[lane]);
    }
  }
}

void RaceProbe::barrier(const BarrierEvent& e) {
  Arrivals& a = barriers_[e.warp.cta_rank][e.barrier];
  if (e.action != BarrierAction::kComplete) {
    clocks_.release(warp(e.warp), a.release);
    a.parties.push_back(warp_party(warp(e.warp), e.instruction));
    return;
  }
  for (uint16_t local : e.waiters) {
    const uint32_t w = e.warp.cta_rank * warps_ + local;
    clocks_.acquire(w, a.release);
    clocks_.sync_lanes(w);
  }
  a.release.assign(a.release.size(), 0);
  a.parties.clear();
}

void RaceProbe::cluster(const ClusterEvent& e) {
  const uint32_t w = warp(e.warp);
  switch (e.action) {
    case ClusterAction::kArrive:
      // What fences covered a relaxed arrival hands on (PTX ISA 8.8, release patterns).
      if (e.ordered) clocks_.release(w, cluster_arriving_);
      if (!e.ordered) {
        Clocks::join(cluster_arriving_, cluster_known_[w].fenced);
        clocks_.release_reached(w, cluster_arriving_);
      }
      cluster_inits_arriving_[w] = cluster_known_[w].inits_fenced;
      break;
    case ClusterAction::kComplete:
      cluster_done_.swap(cluster_arriving_);
      cluster_arriving_.clear();
      cluster_inits_done_ = cluster_inits_arriving_;
      break;
    case ClusterAction::kPass:
      cluster_known_[w].met = true;
      cluster_known_[w].inits = cluster_inits_done_;
      clocks_.acquire(w, cluster_done_);
      clocks_.sync_lanes(w);
      break;
  }
}

void RaceProbe::async(const AsyncEvent& e) {
  const uint32_t w = warp(e.warp);
  Copies& copies = copies_[w];
  if (e.action == AsyncAction::kCommit) copies.committed = std::max(copies.committed, e.group + 1);
  if (e.action == AsyncAction::kWait) {
    // A wait also covers what an arrival has landed before.
    std::erase_if(copies.landed, [&](const std::pair<uint64_t, Clock>& c) {
      const bool covered = e.all || c.first + e.group < copies.committed;
      if (covered) clocks_.know(w, clocks_.copies(w), c.second);
      return covered;
    });
  }
  if (e.action != AsyncAction::kLand) return;
  if (e.by_arrival) copies.landed.emplace_back(e.group, ++copies.clock);
  const Agent by = e.by_arrival ? clocks_.copies(w) : clocks_.warp(w);
  const Clock at = e.by_arrival ? copies.clock : clocks_.now(w);
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    shadow_.land(clocks_.copies(w), e.instruction, by, at,
                 place(e.warp.cta_rank, e.shared[__builtin_ctz(rest)]), e.bytes);
  }
}

// Partial masks count as the whole warp: which lanes were ordered is not remembered.
void RaceProbe::warp_sync(const WarpSyncEvent& e) {
  const uint32_t w = warp(e.warp);
  if (!e.from) return clocks_.sync_lanes(w);
  constexpr size_t kRemembered = 64;
  std::vector<Shuffle>& all = shuffles_[w];
  if (all.size() == kRemembered) all.erase(all.begin(), all.begin() + kRemembered / 2);
  Shuffle& s = all.emplace_back(Shuffle{clocks_.now(w), e.members, {}});
  for (uint32_t rest = e.members; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<size_t>(__builtin_ctz(rest));
    s.from[lane] = e.from[lane];
  }
  clocks_.tick(w);
}

void RaceProbe::fence(const FenceEvent& e) {
  const uint32_t w = warp(e.warp);
  if (e.kind == FenceKind::kProxyAsync) clocks_.publish(w);
  if (blocks() > 1 && e.kind == FenceKind::kMemory &&
      !spelling_of(kernel_, e.instruction).ordering.block_scope) {
    clocks_.release(w, cluster_known_[w].fenced);
  }
  if (blocks() > 1 && e.kind == FenceKind::kMbarrierInit) {
    cluster_known_[w].inits_fenced = clocks_.now(w);
    Clocks::Release later;
    clocks_.release(w, later);
  }
  if (e.kind != FenceKind::kProxyAsync && e.kind != FenceKind::kMbarrierInit) return;
  for (auto& [address, m] : mbarriers_) {
    if (m.init.clock <= clocks_.seen(w)[clocks_.warp(m.init.warp)]) m.fenced = true;
  }
}

void RaceProbe::exit(const ExitEvent& e) {
  const uint32_t w = warp(e.warp);
  for (const ExitEvent::Pending& p : e.pending) {
    log_.next_request();
    add(p.committed ? Problem::kCopyNotWaited : Problem::kCopyNotCommitted,
        warp_party(w, p.instruction), {}, {});
  }
  const StoreGroups& stores = stores_[w];
  if (!stores.open().empty()) {
    log_.next_request();
    add(Problem::kStoreNotWaited, warp_party(w, stores.open().back().instruction), {}, {});
  }
  if (e.wgmma_pending != 0) {
    log_.next_request();
    add(Problem::kWgmmaNotWaited, warp_party(w, last_wgmma_[w]), {}, {});
  }
  if (has_tensor_memory_) exit_tensor(w);
  if (++exited_[e.warp.cta_rank] == warps_) check_exit(e.warp.cta_rank);
}

}  // namespace ptxvm::observe
