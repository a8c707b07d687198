// SPDX-License-Identifier: MIT
// Who has seen what: vector clocks of everything that runs on its own in a block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ptxvm::observe {

using Clock = uint32_t;
using Agent = uint16_t;

/// What an agent is. Warps execute; the others are engines that warps start and wait for.
enum class AgentKind : uint8_t {
  kNobody,  ///< Stands for "never written".
  kWarp,
  kCopies,       ///< cp.async of a warp, until a wait.
  kBulkStore,    ///< cp.async.bulk of a warp, shared to global.
  kWgmma,        ///< Of a warpgroup.
  kBulkLoad,     ///< cp.async.bulk into shared memory: one agent for each mbarrier it completes on.
  kTensorLoad,   ///< tcgen05.ld of a warp, until a wait.
  kTensorStore,  ///< tcgen05.st of a warp, until a wait.
  kTensorCore,   ///< tcgen05.mma and cp that a warp has issued, until a commit has arrived.
};

/// Vector clocks of one block, or of the blocks of one cluster, whose warps are numbered one block
/// after the other. A warp's row says up to which clock of each other agent it knows.
/// A second part of the row says the same of what the async proxy may see. The last part is about
/// execution alone: up to which clock each warp has come, whether or not its accesses are visible.
class Clocks {
 public:
  static constexpr Agent kNobody = 0;
  /// Of accesses that no clock covers: in flight, or never made.
  static constexpr Clock kNever = UINT32_MAX;

  /// `tensor`: with agents for tensor memory.
  void reset(uint32_t warps, uint32_t warpgroups, bool tensor);

  Agent warp(uint32_t w) const { return static_cast<Agent>(1 + w); }
  Agent copies(uint32_t w) const { return static_cast<Agent>(1 + warps_ + w); }
  Agent bulk_store(uint32_t w) const { return static_cast<Agent>(1 + 2 * warps_ + w); }
  Agent wgmma(uint32_t group) const { return static_cast<Agent>(1 + 3 * warps_ + group); }
  Agent tensor_load(uint32_t w) const { return static_cast<Agent>(first_tensor_ + w); }
  Agent tensor_store(uint32_t w) const { return static_cast<Agent>(first_tensor_ + warps_ + w); }
  Agent tensor_core(uint32_t w) const { return static_cast<Agent>(first_tensor_ + 2 * warps_ + w); }
  /// Of the bulk copies that complete on the mbarrier at a place.
  Agent bulk_load(uint32_t mbarrier);

  AgentKind kind(Agent a) const;
  /// Index of the warp or warpgroup, place of the mbarrier.
  uint32_t number(Agent a) const;

  const Clock* seen(uint32_t w) const { return rows_.data() + row_of(w); }
  const Clock* published(uint32_t w) const { return seen(w) + width_; }
  /// Length of either.
  uint32_t width() const { return width_; }
  /// Up to which clock another warp has executed.
  Clock reached(uint32_t w, uint32_t other) const {
    return std::max(seen(w)[warp(other)], seen(w)[2 * width_ + other]);
  }
  Clock now(uint32_t w) const { return seen(w)[1 + w]; }
  /// Accesses of other lanes of the warp up to this clock are ordered before the present.
  Clock lanes_synced(uint32_t w) const { return lanes_synced_[w]; }

  /// What a warp makes known to whoever waits for it.
  using Release = std::vector<Clock>;
  /// Adds the warp's knowledge to `to`; later accesses of the warp are not part of it.
  void release(uint32_t w, Release& to);
  void acquire(uint32_t w, const Release& from);
  void know(uint32_t w, Agent a, Clock c);
  /// Later accesses of the warp have a later clock.
  void tick(uint32_t w) { ++row(w)[warp(w)]; }
  static void join(Release& to, const Release& from);
  /// What a warp knows of how far others have come, and how far it is itself: all that a relaxed
  /// operation hands on. Later instructions of the warp are not part of it.
  void release_reached(uint32_t w, Release& to);
  void acquire_reached(uint32_t w, const Release& from);
  /// The same in a release.
  Clock reached(const Release& in, uint32_t w) const;
  /// Sets one agent's clock in a release.
  void know(Release& to, Agent a, Clock c) const;

  /// All lanes of a warp have met.
  void sync_lanes(uint32_t w);
  /// What the warp knows may be seen by the async proxy.
  void publish(uint32_t w);
  /// tcgen05.fence::before_thread_sync: of agents of tensor memory the second half of a row says
  /// what such fences have handed on.
  void publish_tensor(uint32_t w);
  /// What a tcgen05.commit of the warp hands on: that its products are done up to a clock, and
  /// what of other agents came before them.
  Release known_to_core(uint32_t w, Clock done) const;

 private:
  static constexpr uint32_t kMbarriers = 64;

  size_t stride() const { return 2 * size_t{width_} + warps_; }
  size_t row_of(uint32_t w) const { return w * stride(); }
  Clock* row(uint32_t w) { return rows_.data() + row_of(w); }

  uint32_t warps_ = 0, width_ = 0, first_tensor_ = 0, first_mbarrier_ = 0;
  std::vector<Clock> rows_;
  std::vector<Clock> lanes_synced_;
  std::vector<uint32_t> mbarriers_;  // addresses, in order of first use
};

}  // namespace ptxvm::observe
