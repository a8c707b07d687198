// Shared by the FP32 kernels: copies of tiles, arithmetic on float4, reductions over lanes, lists
// of instances.
#pragma once

#include <cstdint>

/// Four adjacent floats in device memory, or in shared memory for a store; 16-byte aligned.
__device__ __forceinline__ float4 load_v4(const float* pointer) {
  return *reinterpret_cast<const float4*>(pointer);
}
__device__ __forceinline__ void store_v4(float* pointer, float4 x) {
  *reinterpret_cast<float4*>(pointer) = x;
}

/// All threads of the block copy Rows rows of Columns floats to shared memory. The rows are
/// `stride` floats apart in device memory, Pitch in shared memory.
template <int Rows, int Columns, int Threads, int Pitch = Columns>
__device__ __forceinline__ void load_tile(float* shared, const float* global,
                                          int64_t stride = Columns) {
#pragma unroll
  for (int i = threadIdx.x * 4; i < Rows * Columns; i += Threads * 4) {
    // Without gaps between the rows both are i, which the compiler does not find.
    const int to = Pitch == Columns ? i : i / Columns * Pitch + i % Columns;
    const int64_t from = stride == Columns ? i : i / Columns * stride + i % Columns;
    store_v4(shared + to, load_v4(global + from));
  }
}

/// sum += x y, the product of two vectors.
__device__ __forceinline__ void add_dot(float& sum, float4 x, float4 y) {
  sum += x.x * y.x;
  sum += x.y * y.y;
  sum += x.z * y.z;
  sum += x.w * y.w;
}

/// sum += factor x.
__device__ __forceinline__ void add_scaled(float4& sum, float factor, float4 x) {
  sum.x += factor * x.x;
  sum.y += factor * x.y;
  sum.z += factor * x.z;
  sum.w += factor * x.w;
}

/// factor x.
__device__ __forceinline__ float4 scaled(float factor, float4 x) {
  return {factor * x.x, factor * x.y, factor * x.z, factor * x.w};
}

/// x / divisor, approximate.
__device__ __forceinline__ float4 divided(float4 x, float divisor) {
  return {__fdividef(x.x, divisor), __fdividef(x.y, divisor), __fdividef(x.z, divisor),
          __fdividef(x.w, divisor)};
}

/// The largest x of each Lanes adjacent lanes, in all of them.
template <int Lanes>
__device__ __forceinline__ float lanes_max(float x) {
#pragma unroll
  for (int offset = Lanes / 2; offset > 0; offset /= 2)
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset));
  return x;
}

/// The sum of x over each Lanes adjacent lanes, in all of them.
template <int Lanes>
__device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
  for (int offset = Lanes / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffff, x, offset);
  return x;
}

/// Instances name_dD of Class<..., D>, for an INSTANCES list.
#define FA_HEAD_DIMS(X, name, Class, ...)               \
  X(name##_d128, Class<__VA_ARGS__ __VA_OPT__(, ) 128>) \
  X(name##_d64, Class<__VA_ARGS__ __VA_OPT__(, ) 64>)   \
  X(name##_d32, Class<__VA_ARGS__ __VA_OPT__(, ) 32>)
