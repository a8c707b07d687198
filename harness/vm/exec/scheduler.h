// SPDX-License-Identifier: MIT
// Runs the blocks of a cluster to their end.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "exec/warp.h"

namespace ptxvm {

/// Options::stop was set.
struct Stopped {};

/// Memory and warps of one cluster, reused from one cluster to the next.
class ClusterRunner {
 public:
  /// `probes` live as long as the runner; they may be empty.
  ClusterRunner(LaunchState& launch, const std::vector<std::unique_ptr<Probe>>& probes);
  ~ClusterRunner();
  ClusterRunner(const ClusterRunner&) = delete;
  ClusterRunner& operator=(const ClusterRunner&) = delete;

  /// Makes the blocks of cluster number `index` ready; `position` is its place in launch order.
  void begin(uint64_t index, uint64_t position);

  /// Runs until all blocks have ended (true), or until nobody can go on but those who wait for what
  /// other clusters write to global memory. Throws FaultError and Stopped.
  bool advance();
  /// Whether the last `advance` got anywhere.
  bool moved() const { return moved_; }
  /// Its place in launch order.
  uint64_t position() const { return position_; }

  /// Instructions of this cluster so far.
  uint64_t steps() const { return steps_; }
  /// Its local memory is poisoned when it begins: as long as so many instructions take.
  uint64_t beginning() const { return local_stride_ * order_.size() / 4096; }
  /// A hash of what the warps hold. When it stays the same while they wait, they wait for ever.
  uint64_t fingerprint() const;
  /// Where each warp is, one line each; `named` says of which block.
  void describe(bool named, std::vector<std::string>& out) const;
  /// A fault that lies in no single instruction: it points at the first warp that has not exited.
  Fault fault(FaultKind kind, std::string message, const std::vector<std::string>& notes) const;

 private:
  struct AlignedFree {
    void operator()(std::byte* p) const;
  };
  using Bytes = std::unique_ptr<std::byte, AlignedFree>;
  struct Round {  // every warp's turn
    bool alive = false, progress = false;
    bool spins = false;  // instructions were executed, without getting anywhere
    bool waits_for_grid = false, waits_for_memory = false;
  };

  void begin(Cta& cta, uint64_t cluster, uint32_t rank);
  void begin(Warp& w, Cta& cta, uint16_t index);
  CtaEvent event_of(const Cta& cta) const;
  void end();
  Round run_round();
  void turn(Warp& w, Round& round);
  bool spins_for_ever(const Round& round);
  bool finish_one_pending();
  bool rotate_lanes();
  bool time_out();
  void finish(Warp& w);
  static uint32_t instruction_of(const Warp& w);
  [[noreturn]] void raise_limit(const Warp& w, const std::string& who);
  [[noreturn]] void raise_deadlock();
  static Bytes allocate(size_t bytes);

  LaunchState& launch_;
  const std::vector<std::unique_ptr<Probe>>& probes_;
  std::vector<Cta> ctas_;
  Cluster cluster_;
  std::vector<Warp*> order_;  // of turns
  Bytes registers_, shared_, local_;
  size_t register_stride_ = 0, shared_stride_ = 0, local_stride_ = 0;
  uint32_t warps_per_cta_ = 0;
  uint64_t position_ = 0, steps_ = 0, fingerprint_ = 0;
  uint32_t idle_rounds_ = 0, rotations_ = 0;
  bool moved_ = false;
};

/// Where the first block of a cluster is in the grid.
Dim3 first_block(const LaunchState& launch, uint64_t cluster);

/// Positions of warps for a message: the first ones, and how many more there are.
std::vector<std::string> shortened(std::vector<std::string> positions);

}  // namespace ptxvm
