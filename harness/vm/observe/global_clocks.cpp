// SPDX-License-Identifier: MIT
#include "observe/global_clocks.h"

#include <algorithm>

namespace ptxvm::observe {
namespace {

/// Where a block's entry is, or would be.
auto place(auto& entries, uint32_t block) {
  return std::lower_bound(entries.begin(), entries.end(), block,
                          [](const auto& e, uint32_t wanted) { return e.first < wanted; });
}

}  // namespace

void join(BlockClocks& to, const BlockClocks& from) {
  to.resize(std::max(to.size(), from.size()), 0);
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

uint32_t Known::of(uint32_t block) const {
  const auto at = place(entries_, block);
  return at != entries_.end() && at->first == block ? at->second : 0;
}

void Known::raise(uint32_t block, uint32_t releases) {
  const auto at = place(entries_, block);
  if (at != entries_.end() && at->first == block) {
    at->second = std::max(at->second, releases);
  } else {
    entries_.insert(at, {block, releases});
  }
}

void Known::join(const Known& o) {
  if (o.entries_.empty()) return;
  if (entries_.empty()) {
    entries_ = o.entries_;
    return;
  }
  std::vector<std::pair<uint32_t, uint32_t>> all;
  all.reserve(entries_.size() + o.entries_.size());
  auto a = entries_.begin();
  for (const auto& b : o.entries_) {
    while (a != entries_.end() && a->first < b.first) all.push_back(*a++);
    const bool both = a != entries_.end() && a->first == b.first;
    all.emplace_back(b.first, both ? std::max(a->second, b.second) : b.second);
    if (both) ++a;
  }
  all.insert(all.end(), a, entries_.end());
  entries_ = std::move(all);
}

void GridClocks::reset() {
  blocks_.clear();
  flags_.clear();
}

void GridClocks::begin(uint32_t block, uint32_t warps) {
  Block& b = blocks_[block];
  b.warps = warps;
  b.states.assign(warps, {});
  for (uint32_t w = 0; w < warps; ++w) {
    b.states[w].own.assign(2 * size_t{warps}, 0);
    b.states[w].own[w] = 1;
  }
}

// What its releases covered is still asked for.
void GridClocks::end(uint32_t block) {
  blocks_.at(block).states.clear();
}

GridClocks::Order GridClocks::order(const WarpId& now, uint32_t block, uint32_t agent,
                                    Clock clock) const {
  const Warp& w = warp(now);
  if (block == now.cta && w.own[agent] >= clock) return Order::kYes;
  const auto found = blocks_.find(block);
  auto covers = [&](uint32_t releases) {
    return releases != 0 && found->second.releases[releases - 1][agent] >= clock;
  };
  if (block != now.cta && covers(w.others.of(block))) return Order::kYes;
  return covers(w.unfenced.of(block)) ? Order::kUnfenced : Order::kNo;
}

// A new release of the warp's block. Each also covers what the earlier ones did: a warp that has
// seen the later one is taken to have seen both.
Known GridClocks::release(const WarpId& w) {
  Block& b = blocks_.at(w.cta);
  Warp& own = b.states[w.warp];
  b.releases.push_back(b.releases.empty() ? BlockClocks{} : b.releases.back());
  join(b.releases.back(), own.own);
  Known known = own.others;
  known.raise(w.cta, static_cast<uint32_t>(b.releases.size()));
  ++own.own[w.warp];
  return known;
}

void GridClocks::acquire(const WarpId& w, const Known& known) {
  Warp& own = warp(w);
  own.others.join(known);
  if (const uint32_t mine = known.of(w.cta); mine != 0) {
    join(own.own, blocks_.at(w.cta).releases[mine - 1]);
  }
}

void GridClocks::fence(const WarpId& w, bool block_scope) {
  Warp& own = warp(w);
  if (block_scope) {
    own.fenced_block = own.own;
    ++own.own[w.warp];
    return;
  }
  acquire(w, own.unfenced);
  own.unfenced.clear();
  own.fenced = release(w);
}

void GridClocks::leave(const WarpId& w, Handover& at) {
  Warp& own = warp(w);
  join(at.own, own.own);
  at.others.join(own.others);
  at.unfenced.join(own.unfenced);
  at.fenced.join(own.fenced);
  ++own.own[w.warp];
}

void GridClocks::leave_for_others(const WarpId& w, Handover& at) {
  at.others.join(release(w));
}

void GridClocks::take(const WarpId& w, const Handover& at) {
  Warp& own = warp(w);
  join(own.own, at.own);
  acquire(w, at.others);
  own.unfenced.join(at.unfenced);
  own.fenced.join(at.fenced);
}

void GridClocks::read(const WarpId& w, uint64_t address, bool acquires) {
  const auto flag = flags_.find(address);
  if (flag == flags_.end()) return;
  const auto own = flag->second.in_block.find(w.cta);
  if (own != flag->second.in_block.end()) join(warp(w).own, own->second);
  if (acquires) {
    acquire(w, flag->second.known);
  } else {
    warp(w).unfenced.join(flag->second.known);
  }
  warp(w).unfenced.join(flag->second.unfenced);
}

void GridClocks::write(const WarpId& w, uint64_t address, bool releases, bool block_scope,
                       bool keeps) {
  Warp& own = warp(w);
  if (!keeps) flags_.erase(address);
  if (!releases && own.fenced.empty() && own.fenced_block.empty() && own.unfenced.empty()) return;
  Flag& flag = flags_[address];
  flag.unfenced.join(own.unfenced);
  BlockClocks& near = flag.in_block[w.cta];
  join(near, own.fenced_block);
  if (releases && block_scope) {
    join(near, own.own);
    ++own.own[w.warp];
  } else {
    flag.known.join(releases ? release(w) : own.fenced);
  }
}

void GridClocks::know_stores(const WarpId& w, Clock clock) {
  Warp& own = warp(w);
  Clock& known = own.own[blocks_.at(w.cta).warps + w.warp];
  known = std::max(known, clock);
}

}  // namespace ptxvm::observe
