// SPDX-License-Identifier: MIT
// The checks of global memory over a whole grid: events of all blocks in, findings out.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "observe/conflicts.h"
#include "observe/global_clocks.h"
#include "observe/global_shadow.h"
#include "observe/instruction.h"
#include "observe/store_groups.h"
#include "ptxvm/launch.h"
#include "ptxvm/races.h"

namespace ptxvm::observe {

/// What all blocks have in common. They run on one host thread.
class GlobalChecks {
 public:
  GlobalChecks(const LaunchInfo& info, Sums sums);

  void begin(const CtaEvent& e);
  void end(const CtaEvent& e);
  void access(const AccessEvent& e);
  void barrier(const BarrierEvent& e);
  void cluster(const ClusterEvent& e);
  void fence(const FenceEvent& e);
  void mbarrier(const MbarrierEvent& e);
  void bulk(const BulkEvent& e);

  const FindingLog& log() const { return log_; }

 private:
  // Barriers and words of shared memory that threads hand over at.
  struct Meetings {
    Dim3 position;
    std::shared_ptr<std::vector<uint32_t>> cluster;  // its blocks, by rank
    std::array<Handover, 16> barriers;
    std::map<uint32_t, Handover> words;
    std::map<uint32_t, std::pair<Handover, Handover>> mbarriers;  // arriving, done
    Handover cluster_arriving, cluster_done;                      // in the first block of a cluster
    std::vector<StoreGroups> stores;                              // by warp
  };

  void access_global(const AccessEvent& e);
  void access_shared(const AccessEvent& e);
  void piece(const WarpId& w, const Mark& mark, uint64_t address, uint32_t bytes, bool reads,
             bool writes);
  uint32_t lanes_at(uint64_t address, uint32_t bytes) const;
  bool writes_the_same(uint64_t address, uint32_t bytes) const;
  void check(const WarpId& w, const Mark& mark, const Mark& other, Hazard hazard, uint64_t address,
             uint32_t bytes);
  void add(Problem problem, const Mark& here, const Mark& there, Hazard hazard, uint64_t address,
           uint32_t bytes);
  Party party(const Mark& mark) const;
  Meetings& of_rank(const WarpId& w, uint32_t rank) {
    return meetings_.at(meetings_.at(w.cta).cluster->at(rank));
  }

  const Kernel kernel_;
  const Memory& memory_;
  const Sums sums_;
  std::set<const Buffer*> fresh_;
  GridClocks clocks_;
  GlobalShadow shadow_;
  FindingLog log_;
  std::map<uint32_t, Meetings> meetings_;           // by block
  std::shared_ptr<std::vector<uint32_t>> cluster_;  // whose blocks are beginning
  const AccessEvent* access_ = nullptr;             // that is being looked at
};

}  // namespace ptxvm::observe
