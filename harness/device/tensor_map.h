// SPDX-License-Identifier: MIT
// Tensor maps of a plan, as the driver wants them.
#pragma once

#include <cstddef>

#include "kernels/launch_plan.h"

namespace fa {

/// Writes the 128 bytes of a CUtensorMap for `map` over the tensor at `address`; `bytes` must be
/// 64-byte aligned. Throws DeviceError with the map's values when the driver refuses it or does not
/// know the call (drivers before CUDA 12).
void encode_tensor_map(const TensorMap& map, Dtype dtype, void* address, std::byte* bytes);

}  // namespace fa
