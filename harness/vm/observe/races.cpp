// SPDX-License-Identifier: MIT
#include "ptxvm/races.h"

#include "observe/block_checks.h"
#include "observe/global_checks.h"

namespace ptxvm {

struct Races::State {
  LaunchInfo launch;
  std::vector<Finding> findings;
};

Races::Races() : state_(std::make_unique<State>()) {}
Races::~Races() = default;

void Races::begin(const LaunchInfo& info) {
  state_->launch = info;
  state_->findings.clear();
}

std::unique_ptr<Probe> Races::make_probe() {
  return std::make_unique<observe::RaceProbe>(state_->launch);
}

void Races::end(std::span<const std::unique_ptr<Probe>> probes) {
  observe::FindingLog log;
  observe::FreshBuffers fresh(state_->launch);
  for (const auto& p : probes) {
    const auto& probe = static_cast<const observe::RaceProbe&>(*p);
    log.merge(probe.log());
    fresh.merge(probe.fresh());
  }
  fresh.report(log);
  state_->findings = observe::describe(log, state_->launch.kernel);
}

std::vector<Finding> Races::findings() const {
  return state_->findings;
}

namespace {

class GlobalProbe : public Probe {
 public:
  explicit GlobalProbe(observe::GlobalChecks& checks) : checks_(checks) {}
  void cta_begin(const CtaEvent& e) override { checks_.begin(e); }
  void cta_end(const CtaEvent& e) override { checks_.end(e); }
  void access(const AccessEvent& e) override { checks_.access(e); }
  void barrier(const BarrierEvent& e) override { checks_.barrier(e); }
  void cluster(const ClusterEvent& e) override { checks_.cluster(e); }
  void fence(const FenceEvent& e) override { checks_.fence(e); }
  void mbarrier(const MbarrierEvent& e) override { checks_.mbarrier(e); }
  void bulk(const BulkEvent& e) override { checks_.bulk(e); }

 private:
  observe::GlobalChecks& checks_;
};

}  // namespace

struct GlobalRaces::State {
  Sums sums;
  Kernel kernel{nullptr};
  std::unique_ptr<observe::GlobalChecks> checks;
  std::vector<Finding> findings;
};

GlobalRaces::GlobalRaces(Sums sums) : state_(std::make_unique<State>()) {
  state_->sums = sums;
}
GlobalRaces::~GlobalRaces() = default;

void GlobalRaces::begin(const LaunchInfo& info) {
  state_->kernel = info.kernel;
  state_->checks = std::make_unique<observe::GlobalChecks>(info, state_->sums);
  state_->findings.clear();
}

std::unique_ptr<Probe> GlobalRaces::make_probe() {
  return std::make_unique<GlobalProbe>(*state_->checks);
}

void GlobalRaces::end(std::span<const std::unique_ptr<Probe>>) {
  state_->findings = observe::describe(state_->checks->log(), state_->kernel);
  state_->checks.reset();
}

std::vector<Finding> GlobalRaces::findings() const {
  return state_->findings;
}

}  // namespace ptxvm
