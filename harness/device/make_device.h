// SPDX-License-Identifier: MIT
// Choice of a device by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "harness/device/device.h"
#include "harness/device/vm.h"

namespace fa {

class GpuDevice;  // harness/device/gpu.h

struct DeviceOptions {
  bool exact_buffers = false;  ///< GPU: no red zones, for runs under compute-sanitizer
  VmOptions vm = {};           ///< how the virtual machine runs, where it is taken
};

/// "gpu", "vm" or "auto" (the GPU where there is one, else the virtual machine). Throws DeviceError
/// when there is no GPU and one is needed, std::invalid_argument for another word.
std::unique_ptr<Device> make_device(std::string_view kind, const DeviceOptions& options = {});

/// The GPU; throws as make_device("gpu") does.
std::unique_ptr<GpuDevice> make_gpu(const DeviceOptions& options = {});

/// What make_device would make, as plans see it: opens nothing, and throws as it does.
DeviceDescription describe_device(std::string_view kind);

}  // namespace fa
