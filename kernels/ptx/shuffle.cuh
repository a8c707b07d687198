// shfl.sync: lanes of a warp exchange registers.
#pragma once

/// The largest x of the warp, in every lane. PTX ISA: "shfl.sync".
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset));
  return x;
}

/// The sum of x over all lanes of the warp, or of each `Lanes` adjacent ones, in every lane.
template <int Lanes = 32>
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int offset = Lanes / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffff, x, offset);
  return x;
}

/// The largest x of four adjacent lanes, in each of them: the lanes that hold a row of an mma.sync
/// or wgmma accumulator.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

/// The sum of x over four adjacent lanes, in each of them.
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}
