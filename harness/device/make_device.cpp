#include "harness/device/make_device.h"

#include <fmt/format.h>

#include "harness/device/gpu.h"

namespace fa {
namespace {

std::unique_ptr<Device> make_gpu(const DeviceOptions& options) {
  GpuOptions gpu;
  if (options.exact_buffers) gpu.red_zone = 0;
  return std::make_unique<GpuDevice>(gpu);
}

}  // namespace

std::unique_ptr<Device> make_device(std::string_view kind, const DeviceOptions& options) {
  if (kind != "auto" && kind != "gpu" && kind != "vm") {
    throw std::invalid_argument(
        fmt::format("device '{}' is unknown; allowed: auto, gpu, vm", kind));
  }
  std::string why;
  if (kind != "vm" && gpu_count(&why) > 0) return make_gpu(options);
  if (kind == "gpu") {
    throw DeviceError(fmt::format(
        "no GPU found (the CUDA runtime says: {}); run where nvidia-smi lists an NVIDIA "
        "GPU of compute capability 8.0 or newer",
        why));
  }
  return std::make_unique<VmDevice>(options.vm);
}

std::optional<std::string> device_refusal(const Device& device, const Rung& rung) {
  if (device.sm() >= rung.min_sm) return std::nullopt;
  return fmt::format("{} needs compute capability {}.{} or newer; {} has {}.{}", rung.name,
                     rung.min_sm / 10, rung.min_sm % 10, device.name(), device.sm() / 10,
                     device.sm() % 10);
}

}  // namespace fa
