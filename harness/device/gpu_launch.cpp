// SPDX-License-Identifier: MIT
#include "harness/device/gpu_launch.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <variant>
#include <vector>

#include "harness/device/cuda_check.h"
#include "harness/device/device.h"
#include "harness/device/tensor_map.h"

namespace fa {
namespace {

// Without asking, a kernel gets this much dynamic shared memory.
constexpr std::size_t kDefaultDynamicShared = 48 << 10;
// cuTensorMapEncodeTiled fills 128 bytes, the largest argument there is.
constexpr std::size_t kMaxArgument = 128;

unsigned grid_extent(std::int64_t value, const Launch& launch) {
  if (value < 1 || value > std::numeric_limits<int>::max()) {
    throw DeviceError(fmt::format("{}: a grid extent of {} is not between 1 and {}", launch.entry,
                                  value, std::numeric_limits<int>::max()));
  }
  return static_cast<unsigned>(value);
}

void marshal(const Argument& argument, Dtype dtype, const GpuBuffers& buffers, std::byte* bytes) {
  const auto address = [&](Tensor tensor) {
    void* const held = buffers.tensors[static_cast<std::size_t>(tensor)];
    // A problem may lack the other tensors.
    if (!held && tensor <= Tensor::o) throw std::logic_error("no problem is loaded on the GPU");
    return held;
  };
  std::visit(
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, Tensor>) {
          void* const pointer = address(value);
          std::memcpy(bytes, &pointer, sizeof(pointer));
        } else if constexpr (std::is_same_v<Value, ScratchRef>) {
          void* const pointer = buffers.scratch[static_cast<std::size_t>(value.index)];
          std::memcpy(bytes, &pointer, sizeof(pointer));
        } else if constexpr (std::is_same_v<Value, TensorMap>) {
          encode_tensor_map(value, dtype, address(value.tensor), bytes);
        } else {
          std::memcpy(bytes, &value, sizeof(value));
        }
      },
      argument);
}

}  // namespace

void raise_shared_limit(const Launch& launch) {
  if (launch.dynamic_shared <= kDefaultDynamicShared) return;
  check_cuda(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(launch.dynamic_shared)),
             fmt::format("{}: asking for {} bytes of dynamic shared memory", launch.entry,
                         launch.dynamic_shared));
}

void launch_on_gpu(const Launch& step, Dtype dtype, const GpuBuffers& buffers,
                   CUstream_st* stream) {
  // The values must outlive the call, each aligned for every type there is.
  struct alignas(64) Value {
    std::byte bytes[kMaxArgument];
  };
  std::vector<Value> values(step.arguments.size());
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < values.size(); ++i) {
    marshal(step.arguments[i], dtype, buffers, values[i].bytes);
    addresses.push_back(values[i].bytes);
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid_extent(step.grid.x, step), grid_extent(step.grid.y, step),
                        grid_extent(step.grid.z, step));
  config.blockDim = dim3(static_cast<unsigned>(step.block));
  config.dynamicSmemBytes = step.dynamic_shared;
  config.stream = stream;
  std::array<cudaLaunchAttribute, 2> attributes{};
  config.attrs = attributes.data();
  const auto attribute = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
    attributes.at(config.numAttrs).id = id;
    return attributes.at(config.numAttrs++).val;
  };
  if (step.cluster != Dim3{}) {
    attribute(cudaLaunchAttributeClusterDimension).clusterDim = {grid_extent(step.cluster.x, step),
                                                                 grid_extent(step.cluster.y, step),
                                                                 grid_extent(step.cluster.z, step)};
  }
  if (step.early) {
    attribute(cudaLaunchAttributeProgrammaticStreamSerialization)
        .programmaticStreamSerializationAllowed = 1;
  }
  const std::string what = fmt::format("launching {}", step.entry);
  check_cuda(cudaLaunchKernelExC(&config, step.kernel, addresses.data()), what);
  check_cuda(cudaGetLastError(), what);
}

}  // namespace fa
