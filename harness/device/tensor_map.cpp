// SPDX-License-Identifier: MIT
#include "harness/device/tensor_map.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <span>

#include "harness/device/cuda_check.h"
#include "harness/device/device.h"

namespace fa {
namespace {

/// The driver is asked by the runtime, so that a machine without one can still load the program.
PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const PFN_cuTensorMapEncodeTiled_v12000 function = [] {
    constexpr unsigned kSince = 12000;
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, kSince,
                                                cudaEnableDefault, &result),
               "asking the driver for cuTensorMapEncodeTiled");
    if (result != cudaDriverEntryPointSuccess || !found) {
      throw DeviceError("the driver has no cuTensorMapEncodeTiled; it came with CUDA 12.0");
    }
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
  }();
  return function;
}

CUtensorMapSwizzle to_driver(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
    case Swizzle::b32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case Swizzle::b64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::b128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
  }
  return CU_TENSOR_MAP_SWIZZLE_NONE;
}

}  // namespace

void encode_tensor_map(const TensorMap& map, Dtype dtype, void* address, std::byte* bytes) {
  static_assert(sizeof(CUtensorMap) == 128);
  const auto rank = static_cast<std::size_t>(map.rank);
  std::array<cuuint64_t, 5> extents{};
  std::array<cuuint64_t, 4> strides{};
  std::array<cuuint32_t, 5> box{};
  const std::array<cuuint32_t, 5> steps{1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i] = static_cast<cuuint64_t>(map.extents[i]);
    box[i] = static_cast<cuuint32_t>(map.box[i]);
    if (i > 0) strides[i - 1] = static_cast<cuuint64_t>(map.strides[i]) * size_of(dtype);
  }
  // By integers: the place may lie outside of the tensor.
  const auto place =
      reinterpret_cast<std::uintptr_t>(address) +
      static_cast<std::uintptr_t>(map.offset * static_cast<std::int64_t>(size_of(dtype)));
  const CUresult result = encoder()(
      reinterpret_cast<CUtensorMap*>(bytes),
      dtype == Dtype::f16    ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
      : dtype == Dtype::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                             : CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
      static_cast<cuuint32_t>(rank), reinterpret_cast<void*>(place), extents.data(), strides.data(),
      box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, to_driver(map.swizzle),
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return;
  throw DeviceError(fmt::format(
      "the driver refuses a tensor map (error {}): extents {}, strides {} bytes, box {}",
      static_cast<int>(result), std::span(extents).first(rank), std::span(strides).first(rank - 1),
      std::span(box).first(rank)));
}

}  // namespace fa
