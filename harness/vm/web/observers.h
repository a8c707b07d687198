// SPDX-License-Identifier: MIT
// What the pages watch besides counts, findings and the trace.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ptxvm/observer.h"
#include "web/report.h"

namespace ptxvm::web {

/// Reports blocks as they end.
class Progress : public Observer {
 public:
  /// `report` is called with the blocks that are done and all blocks of the launch.
  explicit Progress(std::function<void(uint64_t, uint64_t)> report) : report_(std::move(report)) {}

  void begin(const LaunchInfo& info) override;
  std::unique_ptr<Probe> make_probe() override;
  void end(std::span<const std::unique_ptr<Probe>>) override {}

 private:
  std::function<void(uint64_t, uint64_t)> report_;
  uint64_t done_ = 0, blocks_ = 0;
};

/// Records the first requests of each instruction to shared memory in the first block, with the
/// address of every lane.
class Requests : public Observer {
 public:
  explicit Requests(size_t limit) : limit_(limit) {}

  void begin(const LaunchInfo& info) override;
  std::unique_ptr<Probe> make_probe() override;
  void end(std::span<const std::unique_ptr<Probe>>) override {}

  /// [{entry, line (of the PTX), requests: [{warp, step, kind, mask, bytes, wavefronts,
  /// addresses}]}]
  const Json& json() const { return json_; }

 private:
  class Recorder;

  size_t limit_;
  Kernel kernel_{nullptr};
  Json json_ = Json::array();
};

}  // namespace ptxvm::web
