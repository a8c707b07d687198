// SPDX-License-Identifier: MIT
// Runs the blocks of a cluster to their end.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "exec/warp.h"

namespace ptxvm {

/// Options::stop was set.
struct Stopped {};

/// Memory and warps of one cluster, reused from one cluster to the next by one host thread.
class ClusterRunner {
 public:
  /// `probes` live as long as the runner; they may be empty.
  ClusterRunner(LaunchState& launch, const std::vector<std::unique_ptr<Probe>>& probes);
  ~ClusterRunner();
  ClusterRunner(const ClusterRunner&) = delete;
  ClusterRunner& operator=(const ClusterRunner&) = delete;

  /// Runs the blocks of cluster number `index`. Throws FaultError and Stopped.
  void run(uint64_t index);

  uint64_t steps() const { return steps_; }

 private:
  struct AlignedFree {
    void operator()(std::byte* p) const;
  };
  using Bytes = std::unique_ptr<std::byte, AlignedFree>;

  void begin(Cta& cta, uint64_t cluster, uint32_t rank);
  void begin(Warp& w, uint16_t index);
  CtaEvent event_of(const Cta& cta) const;
  void schedule();
  bool finish_one_pending();
  bool rotate_lanes();
  void finish(Warp& w);
  [[noreturn]] void raise_deadlock();
  static Bytes allocate(size_t bytes);

  LaunchState& launch_;
  const std::vector<std::unique_ptr<Probe>>& probes_;
  std::vector<Cta> ctas_;
  Cluster cluster_;
  Bytes registers_, shared_, local_;
  size_t register_stride_ = 0, shared_stride_ = 0, local_stride_ = 0;
  uint32_t warps_per_cta_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace ptxvm
