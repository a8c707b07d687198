// SPDX-License-Identifier: MIT
#include "harness/device/cuda_check.h"

#include <fmt/format.h>

#include "harness/device/device.h"

namespace fa {
namespace {

/// Errors after which every further call on this context fails as well.
bool is_fatal(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorContained:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

}  // namespace

void check_cuda(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  std::string message =
      fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(message);
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
    message +=
        "; this build holds no code for this GPU, rebuild with FA_CUDA_ARCHITECTURES set to it";
  }
  if (is_fatal(error)) throw DeviceLost(message);
  throw DeviceError(message);
}

void ignore_cuda(cudaError_t error) noexcept {
  if (error != cudaSuccess) cudaGetLastError();
}

}  // namespace fa
