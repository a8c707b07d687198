// A tile of a matrix product in FP32, for the products of a0 and 60: 64 rows, 256 threads, slices
// of the operands in shared memory.
#pragma once

#include <cstdint>

#include "kernels/ptx/shared.cuh"

constexpr int kSlice = 16;      // depth of the operand slices in shared memory
constexpr int kPitch = 64 + 4;  // spreads the transposed stores; a multiple of 16 bytes

// Copies and transposes a slice of 64 rows x 16 columns; its rows are `stride` floats apart.
__device__ __forceinline__ void load_transposed(float (&slice)[kSlice][kPitch], const float* rows,
                                                int64_t stride) {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 4;
  const float4 x = *reinterpret_cast<const float4*>(rows + row * stride + column);
  slice[column][row] = x.x;
  slice[column + 1][row] = x.y;
  slice[column + 2][row] = x.z;
  slice[column + 3][row] = x.w;
}

// Adds the product of two slices to the thread's elements: each of the 16 x 16 threads has 4 rows
// and every 16th column.
template <int N, int Pitch>
__device__ __forceinline__ void multiply_slices(float (&sum)[4][N],
                                                const float (&a)[kSlice][kPitch],
                                                const float (&b)[kSlice][Pitch]) {
#pragma unroll
  for (int k = 0; k < kSlice; ++k) {
    const float4 x = load_shared_v4(&a[k][threadIdx.x / 16 * 4]);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float y = b[k][threadIdx.x % 16 + 16 * n];
      sum[0][n] += x.x * y;
      sum[1][n] += x.y * y;
      sum[2][n] += x.z * y;
      sum[3][n] += x.w * y;
    }
  }
}

// sum += A B^T for 64 rows of each; rows of A and B are D floats long.
template <int D>
__device__ __forceinline__ void multiply_rows(float (&sum)[4][4], const float* A, const float* B) {
  __shared__ __align__(16) float a[kSlice][kPitch], b[kSlice][kPitch];
  for (int d = 0; d < D; d += kSlice) {
    load_transposed(a, A + d, D);
    load_transposed(b, B + d, D);
    __syncthreads();  // the slices have arrived
    multiply_slices(sum, a, b);
    __syncthreads();  // the last read of the slices
  }
}

// sum += A B for 64 rows of A, `depth` floats long, and B with rows of D floats.
template <int D>
__device__ __forceinline__ void multiply_columns(float (&sum)[4][D / 16], const float* A,
                                                 const float* B, int depth) {
  __shared__ __align__(16) float a[kSlice][kPitch], b[kSlice][D];
  for (int j = 0; j < depth; j += kSlice) {
    load_transposed(a, A + j, depth);
#pragma unroll
    for (int i = threadIdx.x; i < kSlice * D; i += 256) b[i / D][i % D] = B[int64_t{j} * D + i];
    __syncthreads();  // the slices have arrived
    multiply_slices(sum, a, b);
    __syncthreads();  // the last read of the slices
  }
}

// sum += A^T B for 64 columns of A, whose rows are `stride` floats apart, and B with rows of D
// floats; both have `depth` rows.
template <int D>
__device__ __forceinline__ void multiply_transposed(float (&sum)[4][D / 16], const float* A,
                                                    int64_t stride, const float* B, int depth) {
  __shared__ __align__(16) float a[kSlice][kPitch], b[kSlice][D];
  for (int i = 0; i < depth; i += kSlice) {
    for (int k = threadIdx.x / 64; k < kSlice; k += 4)
      a[k][threadIdx.x % 64] = A[(i + k) * stride + threadIdx.x % 64];
#pragma unroll
    for (int n = threadIdx.x; n < kSlice * D; n += 256) b[n / D][n % D] = B[int64_t{i} * D + n];
    __syncthreads();  // the slices have arrived
    multiply_slices(sum, a, b);
    __syncthreads();  // the last read of the slices
  }
}
