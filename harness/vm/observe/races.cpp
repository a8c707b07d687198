// SPDX-License-Identifier: MIT
#include "ptxvm/races.h"

#include "observe/block_checks.h"

namespace ptxvm {

struct Races::State {
  Kernel kernel{nullptr};
  std::vector<Finding> findings;
};

Races::Races() : state_(std::make_unique<State>()) {}
Races::~Races() = default;

void Races::begin(const LaunchInfo& info) {
  state_->kernel = info.kernel;
  state_->findings.clear();
}

std::unique_ptr<Probe> Races::make_probe() {
  return std::make_unique<observe::RaceProbe>(state_->kernel);
}

void Races::end(std::span<const std::unique_ptr<Probe>> probes) {
  observe::FindingLog log;
  for (const auto& p : probes) log.merge(static_cast<const observe::RaceProbe&>(*p).log());
  state_->findings = observe::describe(log, state_->kernel);
}

std::vector<Finding> Races::findings() const {
  return state_->findings;
}

}  // namespace ptxvm
