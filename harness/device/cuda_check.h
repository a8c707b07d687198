// SPDX-License-Identifier: MIT
// CUDA errors as exceptions. Only for files that include the CUDA headers anyway.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace fa {

/// Throws DeviceError, OutOfMemory or DeviceLost, "what: the driver's words", unless error is
/// success. Clears the runtime's last error.
void check_cuda(cudaError_t error, const std::string& what);

/// The same for clean-up, where throwing is not possible: the error is dropped.
void ignore_cuda(cudaError_t error) noexcept;

}  // namespace fa
