// SPDX-License-Identifier: MIT
// The inputs of a problem, for a device that may help to make them.
#pragma once

#include <cstdint>

#include "harness/attention/inputs.h"
#include "harness/device/device.h"

namespace fa {

/// make_pass_inputs(); but O and the LSE of a large backward pass are computed by a rung on the
/// device, if it is a card, because a host would take minutes. The device then holds another
/// problem.
Inputs inputs_for(Device& device, const Problem& problem, const InputKind& kind,
                  std::uint64_t seed);

}  // namespace fa
