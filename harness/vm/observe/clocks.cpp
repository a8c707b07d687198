// SPDX-License-Identifier: MIT
#include "observe/clocks.h"

#include <algorithm>

namespace ptxvm::observe {

void Clocks::reset(uint32_t warps, uint32_t warpgroups, bool tensor) {
  warps_ = warps;
  first_tensor_ = 1 + 3 * warps + warpgroups;
  first_mbarrier_ = first_tensor_ + (tensor ? 3 * warps : 0);
  width_ = first_mbarrier_ + kMbarriers;
  rows_.assign(warps * stride(), 0);
  lanes_synced_.assign(warps, 0);
  mbarriers_.clear();
  for (uint32_t w = 0; w < warps; ++w) row(w)[warp(w)] = 1;
}

Agent Clocks::bulk_load(uint32_t mbarrier) {
  const auto found = std::find(mbarriers_.begin(), mbarriers_.end(), mbarrier);
  size_t index = static_cast<size_t>(found - mbarriers_.begin());
  if (found == mbarriers_.end()) {
    // More barriers than agents for them (those of a large cluster) share the last; that only makes
    // reports coarser.
    if (mbarriers_.size() < kMbarriers) mbarriers_.push_back(mbarrier);
    index = mbarriers_.size() - 1;
  }
  return static_cast<Agent>(first_mbarrier_ + index);
}

AgentKind Clocks::kind(Agent a) const {
  if (a == kNobody) return AgentKind::kNobody;
  if (a <= warps_) return AgentKind::kWarp;
  if (a <= 2 * warps_) return AgentKind::kCopies;
  if (a <= 3 * warps_) return AgentKind::kBulkStore;
  if (a < first_tensor_) return AgentKind::kWgmma;
  if (a >= first_mbarrier_) return AgentKind::kBulkLoad;
  constexpr AgentKind kTensor[] = {AgentKind::kTensorLoad, AgentKind::kTensorStore,
                                   AgentKind::kTensorCore};
  return kTensor[(a - first_tensor_) / warps_];
}

uint32_t Clocks::number(Agent a) const {
  switch (kind(a)) {
    case AgentKind::kNobody:
      return 0;
    case AgentKind::kWarp:
    case AgentKind::kCopies:
    case AgentKind::kBulkStore:
      return (a - 1u) % warps_;
    case AgentKind::kWgmma:
      return a - 1 - 3 * warps_;
    case AgentKind::kTensorLoad:
    case AgentKind::kTensorStore:
    case AgentKind::kTensorCore:
      return (a - first_tensor_) % warps_;
    case AgentKind::kBulkLoad:
      return mbarriers_[a - first_mbarrier_];
  }
  return 0;
}

void Clocks::release(uint32_t w, Release& to) {
  Clock* own = row(w);
  to.resize(stride(), 0);
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], own[i]);
  ++own[warp(w)];
}

void Clocks::acquire(uint32_t w, const Release& from) {
  Clock* own = row(w);
  for (size_t i = 0; i < from.size(); ++i) own[i] = std::max(own[i], from[i]);
}

void Clocks::know(uint32_t w, Agent a, Clock c) {
  Clock& known = row(w)[a];
  known = std::max(known, c);
}

void Clocks::join(Release& to, const Release& from) {
  to.resize(std::max(to.size(), from.size()), 0);
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

void Clocks::know(Release& to, Agent a, Clock c) const {
  to.resize(stride(), 0);
  to[a] = std::max(to[a], c);
}

void Clocks::release_reached(uint32_t w, Release& to) {
  to.resize(stride(), 0);
  for (uint32_t i = 0; i < warps_; ++i) {
    Clock& known = to[2 * size_t{width_} + i];
    known = std::max(known, reached(w, i));
  }
  tick(w);
}

void Clocks::acquire_reached(uint32_t w, const Release& from) {
  if (from.empty()) return;
  Clock* own = row(w) + 2 * size_t{width_};
  for (uint32_t i = 0; i < warps_; ++i) own[i] = std::max(own[i], reached(from, i));
}

Clock Clocks::reached(const Release& in, uint32_t w) const {
  return in.empty() ? 0 : std::max(in[warp(w)], in[2 * size_t{width_} + w]);
}

void Clocks::sync_lanes(uint32_t w) {
  Clock& own = row(w)[warp(w)];
  lanes_synced_[w] = own++;
}

void Clocks::publish(uint32_t w) {
  Clock* own = row(w);
  for (uint32_t i = 0; i < width_; ++i) own[width_ + i] = std::max(own[width_ + i], own[i]);
  ++own[warp(w)];
}

void Clocks::publish_tensor(uint32_t w) {
  Clock* own = row(w);
  for (uint32_t a = first_tensor_; a < first_mbarrier_; ++a)
    own[width_ + a] = std::max(own[width_ + a], own[a]);
}

Clocks::Release Clocks::known_to_core(uint32_t w, Clock done) const {
  Release out(seen(w), seen(w) + stride());
  out[2 * size_t{width_} + w] = now(w);
  for (const size_t half : {size_t{0}, size_t{width_}}) {
    out[half + warp(w)] = 0;
    out[half + tensor_core(w)] = done;
  }
  return out;
}

}  // namespace ptxvm::observe
