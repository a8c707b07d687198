// SPDX-License-Identifier: MIT
// The checks of one block, or of the blocks of one cluster: events in, findings out.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "observe/carried.h"
#include "observe/clocks.h"
#include "observe/conflicts.h"
#include "observe/fresh_buffers.h"
#include "observe/handed_on.h"
#include "observe/shadow.h"
#include "observe/store_groups.h"
#include "ptxvm/observer.h"

namespace ptxvm::observe {

/// Whether a kernel has instructions of tensor memory.
bool uses_tensor_memory(const Kernel& kernel);

/// Probe of `Races`.
class RaceProbe : public Probe, private ConflictSink {
 public:
  explicit RaceProbe(const LaunchInfo& info);

  void cta_begin(const CtaEvent& e) override;
  void cta_end(const CtaEvent& e) override;
  void access(const AccessEvent& e) override;
  void unwritten_use(const UnwrittenUseEvent& e) override;
  void barrier(const BarrierEvent& e) override;
  void cluster(const ClusterEvent& e) override;
  void async(const AsyncEvent& e) override;
  void warp_sync(const WarpSyncEvent& e) override;
  void fence(const FenceEvent& e) override;
  void mbarrier(const MbarrierEvent& e) override;
  void generic_address(const GenericAddressEvent& e) override;
  void bulk(const BulkEvent& e) override;
  void wgmma(const WgmmaEvent& e) override;
  void tensor(const TensorEvent& e) override;
  void exit(const ExitEvent& e) override;

  const FindingLog& log() const { return log_; }
  const FreshBuffers& fresh() const { return fresh_; }

 private:
  struct Arrivals {
    Clocks::Release release;
    std::vector<Party> parties;
  };
  // Landed for a cp.async.mbarrier.arrive, which tells nobody but those who wait for that barrier.
  struct Copies {
    Clock clock = 0;  // of the last one
    uint64_t committed = 0;
    std::vector<std::pair<uint64_t, Clock>> landed;  // with the group
  };
  struct Mbarrier {
    Clocks::Release arriving, done;
    Clock first_clock = 0;  // of phase 0: memory may be initialised again
    uint64_t phase = 0;
    struct Init {
      Party party;
      uint32_t warp = 0;  // among all of the cluster
      Clock clock = 0;
    };
    Init init;
    std::vector<Init> earlier;  // by other warps, with the same count and before any use
    bool known = false, fenced = false;
    /// The last wait of each warp: a barrier tells apart no more than two phases.
    struct Wait {
      Clock clock = 0;  // of the warp; 0 for none
      uint64_t phase = 0;
      uint32_t instruction = 0;
    };
    std::vector<Wait> waits;  // by warp
  };

  // Where a value comes from that nobody has written, or its register.
  using Origin = std::pair<Party, Example>;

  // The last use of a block's shared memory by an agent of another block.
  struct Remote {
    Clock clock = 0;
    Party party;
  };
  // Addresses of a request as offsets in the shared memories of all blocks, one after the other.
  struct Places {
    const uint32_t* address = nullptr;
    uint32_t base = 0;
    uint32_t moved[32];
  };

  uint32_t blocks() const { return static_cast<uint32_t>(ctas_.size()); }
  uint32_t warp(const WarpId& id) const { return id.cta_rank * warps_ + id.warp; }
  uint32_t warpgroup(const WgmmaEvent& e) const {
    return e.warp.cta_rank * warpgroups_ + e.warpgroup;
  }
  int block_number(uint32_t rank) const { return blocks() > 1 ? static_cast<int>(rank) : -1; }
  /// Offset of an address in the shared memory of a block.
  uint32_t place(uint32_t rank, uint32_t address) const {
    return rank * stride_ + address - ctas_[0].shared_base;
  }
  uint32_t offset(uint32_t address) const { return address - ctas_[0].shared_base; }
  void places(const AccessEvent& e, Places& out) const;
  void check_started(const AccessEvent& e);
  void use_remote(uint32_t rank, Agent a, Clock c, const Party& p);
  void check_exit(uint32_t rank);

  void conflict(const Conflict& c) override;
  /// The lanes of the access that use the bytes of a conflict.
  uint32_t lanes_at(const Conflict& c) const;
  bool writes_the_same(const Conflict& c) const;
  bool handed_on(const Conflict& c);
  void note_unwritten(const Conflict& c, const Example& example);
  const Origin* origin(const Conflict& c) const;
  void add_use(const Origin& origin, const Party& user);
  void keep_unwritten(const AccessEvent& e, const Places& places);
  Party party(Agent a, uint32_t place) const;
  Party warp_party(uint32_t w, uint32_t instruction) const;
  Actor warp_actor(uint32_t w) const;
  /// An engine of the async proxy that the warp has started.
  Actor async_actor(uint32_t w, Agent agent, Clock stamp) const;
  void add(Problem problem, const Party& here, const Party& there, Example example);

  void access_shared(const AccessEvent& e);
  void access_parts(const AccessEvent& e, const Actor& actor, bool writes, const Places& places);
  void access_strong(const AccessEvent& e, bool before, const Places& places);
  bool is_padding(const AccessEvent& e, const std::vector<bool>& written, size_t lane_begin,
                  size_t address) const;
  void access_local(const AccessEvent& e);
  void store_carried(const AccessEvent& e);
  void use_local(const UnwrittenUseEvent& e);
  void load_unwritten_local(const AccessEvent& e, uint32_t lane,
                            std::vector<bool>::const_iterator written);
  void add_unwritten_local(uint32_t w, uint32_t load, uint32_t lane, uint32_t address,
                           std::optional<uint32_t> use = {});
  void check_init(const Mbarrier& m, const MbarrierEvent& e);
  void check_init(const Mbarrier::Init& init, const MbarrierEvent& e);
  /// By another thread, before any use.
  void init_again(Mbarrier& m, const MbarrierEvent& e);
  /// A phase is complete: all that have waited for the one before must have been known to.
  void check_waits(const Mbarrier& m, const MbarrierEvent& e);
  void load_bulk(const BulkEvent& e);

  // A use of 16 lanes of a column of tensor memory.
  struct TensorUse {
    Agent agent = Clocks::kNobody;
    Clock clock = 0;   // of the agent; 0 for none
    Clock issued = 0;  // of the warp that has issued it
    uint32_t instruction = 0;
  };
  struct TensorCell {
    TensorUse written;
    std::array<TensorUse, 3> read{};
    bool hollow = true;
  };
  // Who has allocated a column: known where the warp's clock is, or a later commit of its.
  struct TensorColumn {
    Party party;
    uint32_t warp = 0;
    Clock clock = 0, commits = 0;
  };
  struct TensorAccess {
    uint32_t warp = 0;  // among all of the cluster
    Agent agent = 0;
    Clock clock = 0, issued = 0;
    uint32_t instruction = 0;
  };
  // What a warp has in flight: the last instruction of each kind, and their numbers.
  struct TensorWarp {
    std::optional<uint32_t> load, store, work;
    Clock loads = 0, stores = 0;
    uint64_t commits = 0;  // by any of its threads
    uint32_t lane = 0;     // that has issued the work
  };
  std::optional<Problem> meets(const TensorAccess& a, const TensorUse& use) const;
  void add_tensor(Problem problem, Hazard hazard, const TensorAccess& a, const TensorUse& use,
                  uint32_t place);
  void access_tensor(const TensorAccess& a, std::span<const TensorRange> ranges, bool writes,
                     uint32_t* unwritten = nullptr);
  bool access_cell(const TensorAccess& a, uint32_t place, bool writes);
  void allocate_tensor(const TensorEvent& e);
  bool knows(uint32_t w, const TensorColumn& column) const;
  void check_allocated(const TensorEvent& e, std::span<const TensorRange> ranges);
  void read_for_tensor(const TensorAccess& access, const TensorEvent& e);
  void arrive_commit(const MbarrierEvent& e, Clocks::Release& arriving);
  void exit_tensor(uint32_t w);

  const Kernel kernel_;
  const bool has_tensor_memory_;
  FindingLog log_;
  uint32_t request_bytes_ = 16;          // of each lane; a power of two
  const AccessEvent* access_ = nullptr;  // that is being looked at
  const Places* places_ = nullptr;       // its

  std::vector<CtaEvent> ctas_;                        // by rank
  uint32_t warps_ = 0, warpgroups_ = 0, stride_ = 0;  // of each block
  Clocks clocks_;
  Shadow shadow_;
  std::vector<std::array<Arrivals, 16>> barriers_;  // by rank
  Clocks::Release cluster_arriving_, cluster_done_;
  /// What a warp knows by the barrier of the cluster, and hands on by a relaxed arrival at it.
  struct ClusterKnown {
    Clocks::Release fenced;    ///< Covered by its last fence.
    Clock inits_fenced = 0;    ///< Its mbarrier.init up to here, by fence.mbarrier_init.
    std::vector<Clock> inits;  ///< Those of each warp that it has heard of so.
    bool met = false;          ///< It has waited: all blocks have started.
  };
  std::vector<ClusterKnown> cluster_known_;                         // by warp
  std::vector<Clock> cluster_inits_arriving_, cluster_inits_done_;  // by warp
  std::vector<std::map<Agent, Remote>> remote_;                     // by rank
  std::vector<uint32_t> exited_;                                    // warps, by rank
  std::map<uint32_t, Clocks::Release> released_;                    // by place of strong accesses
  std::map<uint32_t, Mbarrier> mbarriers_;                          // by place
  std::vector<StoreGroups> stores_;                                 // by warp
  std::vector<Copies> copies_;                                      // by warp
  // Reads of what nobody has written, an error once the value is used: by warp and load (see
  // ptxvm::Unwritten), and by warp and store of what has been read so, or update.
  using Origins = std::map<std::pair<uint32_t, uint32_t>, Origin>;
  Origins unwritten_shared_, stored_unwritten_;
  std::vector<uint32_t> last_wgmma_;  // by warp
  /// How far all warps had come, as this one knew when it issued its last wgmma of a group.
  struct Issued {
    uint64_t group = 0;
    Clocks::Release reached;
  };
  std::vector<std::vector<Issued>> wgmma_issued_;                // by warp
  std::vector<TensorCell> tensor_cells_;                         // by rank, group of lanes, column
  std::vector<std::array<TensorColumn, 512>> tensor_allocated_;  // by rank, column
  std::vector<TensorWarp> tensor_warps_;                         // by warp
  std::vector<std::vector<Clock>> tensor_fenced_;                // by warp, agent
  // What loads of a warp got that nobody had written, by warp and instruction.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<TensorAccess, uint32_t>> unwritten_tensor_;
  bool generic_named_ = false;  // A generic address for .shared was reported.
  bool tensor_named_ = false;   // An address that does not name a warp's own lanes was reported.
  std::map<std::pair<uint32_t, uint64_t>, Clocks::Release> tensor_commits_;  // by warp, number
  // What lanes have given each other lately.
  struct Shuffle {
    Clock clock = 0;
    uint32_t members = 0;
    std::array<uint8_t, 32> from{};
  };
  std::vector<std::vector<Shuffle>> shuffles_;  // by warp
  HandedOn handed_on_;
  FreshBuffers fresh_;
  /// Lanes for which a load has read what they have not written, and where. Of a load of Carried:
  /// the last time.
  struct LaterLoad {
    uint32_t lanes = 0;
    std::array<uint32_t, 32> address{};
  };
  Carried carried_;
  std::vector<std::unordered_map<uint32_t, LaterLoad>> unwritten_;  // by warp: by load
  std::vector<std::vector<bool>> local_written_;                    // by warp: lane, byte
};

}  // namespace ptxvm::observe
