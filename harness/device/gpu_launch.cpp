// SPDX-License-Identifier: MIT
#include "harness/device/gpu_launch.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
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

dim3 to_cuda(const Dim3& extents) {
  return {static_cast<unsigned>(extents.x), static_cast<unsigned>(extents.y),
          static_cast<unsigned>(extents.z)};
}

/// A launch that the driver refuses for its extents or its shared memory is a mistake of the plan.
void check_launch(cudaError_t error, const std::string& what) {
  if (error != cudaErrorInvalidConfiguration && error != cudaErrorInvalidValue &&
      error != cudaErrorInvalidClusterSize && error != cudaErrorLaunchOutOfResources) {
    check_cuda(error, what);
    return;
  }
  ignore_cuda(error);
  throw KernelFault(fmt::format("{}: {}", what, cudaGetErrorString(error)));
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
  check_launch(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(launch.dynamic_shared)),
               fmt::format("{}: asking for {} bytes of dynamic shared memory", launch.entry,
                           launch.dynamic_shared));
}

void launch_on_gpu(const Launch& step, Dtype dtype, const GpuBuffers& buffers,
                   CUstream_st* stream) {
  require_launchable(step, buffers.scratch.size());
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
  config.gridDim = to_cuda(step.grid);
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
    const dim3 cluster = to_cuda(step.cluster);
    attribute(cudaLaunchAttributeClusterDimension).clusterDim = {cluster.x, cluster.y, cluster.z};
  }
  if (step.early) {
    attribute(cudaLaunchAttributeProgrammaticStreamSerialization)
        .programmaticStreamSerializationAllowed = 1;
  }
  const std::string what = fmt::format("launching {}", step.entry);
  check_launch(cudaLaunchKernelExC(&config, step.kernel, addresses.data()), what);
  check_cuda(cudaGetLastError(), what);
}

}  // namespace fa
