// SPDX-License-Identifier: MIT
#include "tools/device.h"

namespace ptxvm_vectors {

std::string blackwell_refusal(const Device& device) {
  // Code for sm_100a runs on this compute capability and on no later one.
  constexpr int kAllowed = 100;
  const int capability = device.compute_capability();
  if (device.is_hardware() && capability == kAllowed) return {};
  const std::string what = device.is_hardware()
                               ? "a GPU of compute capability " + std::to_string(capability / 10) +
                                     "." + std::to_string(capability % 10)
                               : "no GPU: a vector must come from hardware";
  return "only a GPU of compute capability 10.0 (sm_100a: B100, B200, GB200) is recorded with "
         "--blackwell; the device '" +
         device.source().gpu + "' is " + what;
}

}  // namespace ptxvm_vectors
