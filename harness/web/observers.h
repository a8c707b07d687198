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

#include "harness/results/json.h"
#include "ptxvm/observer.h"

namespace fa::web {

/// Reports blocks as they end.
class Progress : public ptxvm::Observer {
 public:
  /// `report` is called with the blocks that are done and all blocks of the launch.
  explicit Progress(std::function<void(std::uint64_t, std::uint64_t)> report)
      : report_(std::move(report)) {}

  void begin(const ptxvm::LaunchInfo& info) override;
  std::unique_ptr<ptxvm::Probe> make_probe() override;
  void end(std::span<const std::unique_ptr<ptxvm::Probe>>) override {}

 private:
  std::function<void(std::uint64_t, std::uint64_t)> report_;
  std::uint64_t done_ = 0, blocks_ = 0;
};

/// Records the first requests of each instruction to shared memory in the first block, with the
/// address of every lane.
class Requests : public ptxvm::Observer {
 public:
  explicit Requests(std::size_t limit) : limit_(limit) {}

  void begin(const ptxvm::LaunchInfo& info) override;
  std::unique_ptr<ptxvm::Probe> make_probe() override;
  void end(std::span<const std::unique_ptr<ptxvm::Probe>>) override {}

  /// [{entry, line (of the PTX), requests: [{warp, step, kind, mask, bytes, wavefronts,
  /// addresses}]}]
  const Json& json() const { return json_; }

 private:
  class Recorder;

  std::size_t limit_;
  ptxvm::Kernel kernel_{nullptr};
  Json json_ = Json::array();
};

}  // namespace fa::web
