// SPDX-License-Identifier: MIT
// One launch of a plan on the GPU, over buffers of the caller's.
#pragma once

#include <array>
#include <span>

#include "kernels/launch_plan.h"

struct CUstream_st;  // cudaStream_t is a pointer to this

namespace fa {

/// Device addresses that a plan's arguments stand for.
struct GpuBuffers {
  std::array<void*, kTensors> tensors{};  ///< in the order of Tensor; null for those there are not
  std::span<void* const> scratch;         ///< in the order of LaunchPlan::scratch
};

/// Lets the kernel have the dynamic shared memory of this launch on the current device. Throws
/// KernelFault where the device has not as much, and DeviceError where the build has no code of the
/// kernel for it.
void raise_shared_limit(const Launch& launch);

/// Enqueues the launch on a stream of the current device. Waits for nothing. Throws as
/// raise_shared_limit, and KernelFault for a launch that the runtime refuses.
void launch_on_gpu(const Launch& step, Dtype dtype, const GpuBuffers& buffers, CUstream_st* stream);

}  // namespace fa
