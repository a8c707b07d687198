// SPDX-License-Identifier: MIT
// A timeline of what each warp did and waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ptxvm/observer.h"

namespace ptxvm {

/// Records some blocks of a launch in the Chrome trace format, which https://ui.perfetto.dev opens:
/// a process for each block, a thread for each warp, and asynchronous slices for what engines do
/// beside them (groups of cp.async, bulk copies, groups of wgmma), with arrows from the issue to
/// the wait.
///
/// The axis is steps, not time: an instruction of a warp takes one step, warps run side by side,
/// and a warp that waits goes on at the step of the last one that it waited for. What an
/// instruction costs on hardware is not in it.
class Trace : public Observer {
 public:
  /// Records the blocks with these linear indices.
  explicit Trace(std::vector<uint32_t> blocks = {0});
  ~Trace() override;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  void begin(const LaunchInfo& info) override;
  std::unique_ptr<Probe> make_probe() override;
  void end(std::span<const std::unique_ptr<Probe>> probes) override;
  bool wants_instructions() const override { return true; }

  /// The whole file, after the launch.
  const std::string& json() const;
  /// Writes it. Throws `Error` when that is not possible.
  void write(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptxvm
