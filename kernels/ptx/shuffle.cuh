// shfl.sync: lanes of a warp exchange registers.
#pragma once

/// The largest x of the warp, in every lane. PTX ISA: "shfl.sync".
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
  return x;
}

/// The sum of all x of the warp, in every lane.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
  return x;
}
