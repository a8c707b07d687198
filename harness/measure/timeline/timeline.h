// SPDX-License-Identifier: MIT
// When the warps of a thread block reach what, in clocks of their SM.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/gpu.h"
#include "harness/measure/timeline/row.h"

namespace fa::timeline {

/// The rungs that are stamped.
inline constexpr std::string_view kRungs[] = {"22", "23", "24", "25"};

/// Each rung is timed as it is and with the stamps, must write the same bits with them, and is then
/// launched once more for its stamps. `folder` holds the stamped kernels. Throws DeviceError where
/// one cannot be loaded or computes something else.
Timeline record(GpuDevice& device, const std::string& folder, std::int64_t seq,
                const std::vector<std::string>& argv,
                const std::function<void(const std::string&)>& progress);

}  // namespace fa::timeline
