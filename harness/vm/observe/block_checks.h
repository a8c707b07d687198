// The checks of one block: events in, findings out.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "observe/clocks.h"
#include "observe/conflicts.h"
#include "observe/shadow.h"
#include "ptxvm/observer.h"

namespace ptxvm::observe {

/// Probe of `Races`.
class RaceProbe : public Probe, private ConflictSink {
 public:
  explicit RaceProbe(const Kernel& kernel);

  void cta_begin(const CtaEvent& e) override;
  void cta_end(const CtaEvent& e) override;
  void access(const AccessEvent& e) override;
  void barrier(const BarrierEvent& e) override;
  void async(const AsyncEvent& e) override;
  void warp_sync(const WarpSyncEvent& e) override;
  void fence(const FenceEvent& e) override;
  void mbarrier(const MbarrierEvent& e) override;
  void bulk(const BulkEvent& e) override;
  void wgmma(const WgmmaEvent& e) override;
  void exit(const ExitEvent& e) override;

  const FindingLog& log() const { return log_; }

 private:
  struct Arrivals {
    Clocks::Release release;
    std::vector<Party> parties;
  };
  struct Stores {  // bulk groups
    uint64_t issued = 0, committed = 0, waited = 0;
    uint32_t instruction = 0;
  };
  struct Mbarrier {
    Clocks::Release arriving, done;
    Clock first_clock = 0;  // of phase 0: memory may be initialised again
    uint64_t phase = 0;
    Party init;
    Clock init_clock = 0;
    bool known = false, fenced = false;
  };

  void conflict(const Conflict& c) override;
  Party party(Agent a, uint32_t place) const;
  Party warp_party(uint32_t w, uint32_t instruction) const;
  Actor warp_actor(uint32_t w) const;
  void add(Problem problem, const Party& here, const Party& there, Example example);

  void access_shared(const AccessEvent& e);
  void access_parts(const AccessEvent& e, const Actor& actor, bool writes);
  void access_strong(const AccessEvent& e, bool before);
  void access_local(const AccessEvent& e);
  void check_init(const Mbarrier& m, const MbarrierEvent& e);
  void load_bulk(const BulkEvent& e);

  const Kernel kernel_;
  std::vector<bool> strong_;  // by instruction
  FindingLog log_;
  uint32_t request_bytes_ = 16;  // of each lane; a power of two

  CtaEvent cta_;
  Clocks clocks_;
  Shadow shadow_;
  std::array<Arrivals, 16> barriers_;
  std::map<uint32_t, Clocks::Release> released_;  // by address of strong accesses
  std::map<uint32_t, Mbarrier> mbarriers_;
  std::vector<Stores> stores_;                    // by warp
  std::vector<uint32_t> last_wgmma_;              // by warp
  std::vector<std::vector<bool>> local_written_;  // by warp: lane, byte
};

}  // namespace ptxvm::observe
