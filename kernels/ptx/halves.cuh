// Conversions of packed halves, and of packed bfloat16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "kernels/ptx/shared.cuh"

/// The eight halves of 16 bytes as floats.
__device__ __forceinline__ void unpack(float (&x)[8], const uint4& bits) {
  const half2* pairs = reinterpret_cast<const half2*>(&bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(pairs[i]);
    x[2 * i] = pair.x;
    x[2 * i + 1] = pair.y;
  }
}

/// Eight halves of shared memory as floats, 16-byte aligned. nvcc would split a uint4 load whose
/// value is only unpacked; the asm is one instruction (PTX ISA: "ld").
__device__ __forceinline__ void load_shared_halves(float (&x)[8], const half* pointer) {
  uint4 bits;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
               : "r"(shared_address(pointer))
               : "memory");
  unpack(x, bits);
}

/// Two floats rounded to T, the first in the low half. PTX ISA: "cvt".
template <class T>
__device__ __forceinline__ uint32_t packed(float low, float high) {
  if constexpr (std::is_same_v<T, half>) {
    const half2 two = __floats2half2_rn(low, high);
    return reinterpret_cast<const uint32_t&>(two);
  } else {
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const uint32_t&>(two);
  }
}
