// SPDX-License-Identifier: MIT
#include "harness/device/make_device.h"

#include <fmt/format.h>

#include "harness/device/gpu.h"

namespace fa {
namespace {

/// Whether this word means the GPU here; else it means the virtual machine.
bool means_gpu(std::string_view kind) {
  if (kind != "auto" && kind != "gpu" && kind != "vm") {
    throw std::invalid_argument(
        fmt::format("device '{}' is unknown; allowed: auto, gpu, vm", kind));
  }
  std::string why;
  if (kind != "vm" && gpu_count(&why) > 0) return true;
  if (kind == "gpu") {
    throw DeviceError(fmt::format(
        "no GPU found (the CUDA runtime says: {}); run where nvidia-smi lists an NVIDIA "
        "GPU of compute capability 8.0 or newer",
        why));
  }
  return false;
}

}  // namespace

std::unique_ptr<GpuDevice> make_gpu(const DeviceOptions& options) {
  means_gpu("gpu");
  GpuOptions gpu;
  if (options.exact_buffers) gpu.red_zone = 0;
  return std::make_unique<GpuDevice>(gpu);
}

std::unique_ptr<Device> make_device(std::string_view kind, const DeviceOptions& options) {
  if (means_gpu(kind)) return make_gpu(options);
  return std::make_unique<VmDevice>(options.vm);
}

DeviceDescription describe_device(std::string_view kind) {
  return means_gpu(kind) ? gpu_description() : vm_description();
}

}  // namespace fa
