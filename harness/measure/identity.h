// SPDX-License-Identifier: MIT
// What a result file says of its rows as a whole: source, compiler, device, policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/device/device.h"
#include "harness/environment/build.h"
#include "harness/measure/timing/rounds.h"
#include "harness/results/results.h"

namespace fa {

class Nvml;

/// generator{version, git_sha, git_dirty, nvcc, flags, argv} of a result file.
Json generator_json(const SourceState& source, const std::vector<std::string>& argv);

/// device{...} of a result file, null for what the device does not have; nvml may be nullptr:
/// driver and power limit are then null.
Json device_json(const Device& device, const Nvml* nvml);

/// policy{...} of a result file; without a timing policy that of counts: nothing is timed.
/// cold: launches without gaps take copies of K and V (GpuDevice::make_cache_copies).
Json policy_json(const std::optional<TimingPolicy>& timing, std::uint64_t seed,
                 const Device& device, const Nvml* nvml, bool cold = false);

}  // namespace fa
