// SPDX-License-Identifier: MIT
// fa limits: times the bare loops on the card.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/results/json.h"
#include "harness/timing/rounds.h"

namespace fa {
class GpuDevice;
}

namespace fa::limits {

/// The timing policy: as `fa bench`, shorter. Buffers are as the launch before left them.
TimingPolicy limits_policy();

/// How long a launch is made by choosing its iterations.
inline constexpr double kLaunchMs = 10;

/// Iterations for launches of `wanted_ms`, from a launch that took `ms`; at least 1, at most
/// kMostIterations.
int iterations_for(double wanted_ms, double ms, int iterations);
inline constexpr int kMostIterations = 1 << 22;

struct LimitsReport {
  std::function<void(const std::string& text)> progress;
};

/// The document of limits.json (limits.schema.json beside this file): every loop is checked, then
/// timed in turns with the others. Rows that could not be timed say why.
Json measure_limits(GpuDevice& device, const std::vector<std::string>& argv,
                    const LimitsReport& report);

}  // namespace fa::limits
