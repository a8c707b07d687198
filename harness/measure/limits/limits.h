// SPDX-License-Identifier: MIT
// fa limits: times the bare loops on the card.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/measure/limits/row.h"
#include "harness/measure/timing/rounds.h"
#include "harness/results/results.h"

namespace fa {
class GpuDevice;
}

namespace fa::limits {

/// The timing policy: that of `fa bench` with lengths of its own. Buffers are as the launch before
/// left them.
TimingPolicy limits_policy();

/// Iterations for launches of `wanted_ms`, from a launch that took `ms`; at least 1, at most
/// kMostIterations.
int iterations_for(double wanted_ms, double ms, int iterations);
inline constexpr int kMostIterations = 1 << 22;

struct LimitsReport {
  std::function<void(const std::string& text)> progress;
};

/// What is in limits.json.
struct Limits {
  FileIdentity identity;
  std::vector<LimitRow> rows;
  int rounds = 0;            ///< visits of every loop that the rates are of
  bool interrupted = false;  ///< a signal ended it after so many rounds
};

/// Every loop is checked, then timed in turns with the others. Rows that could not be timed say
/// why. After an interrupt the rates are of the rounds that were complete; where none was, the rows
/// are those of the loops that were refused until then.
Limits measure_limits(GpuDevice& device, const std::vector<std::string>& argv,
                      const LimitsReport& report);

/// The whole document.
Json limits_document(const Limits& limits);

}  // namespace fa::limits
