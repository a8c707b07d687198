// SPDX-License-Identifier: MIT
// Products of a size that is no multiple of the tile, as libraries make them: rows beyond the end
// are not copied, their sums are made and pass through shared memory all the same, and only the
// last store knows the end.
#include <mma.h>

constexpr int kTile = 16;

__device__ inline void copy_row(half* to, const half* from, bool is_there) {
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if (is_there) asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from));
}

// D (m x n) = A (m x 16) B^T (n x 16): m <= 16, n <= 8, one warp. `last` is the last row that is
// stored.
extern "C" __global__ void ragged_mma(const half* a, const half* b, float* d, int m, int n,
                                      int last) {
  __shared__ __align__(16) half tile_a[kTile][kTile], tile_b[8][kTile];
  __shared__ float tile_d[kTile][8];
  const int lane = threadIdx.x, row = lane / 2, column = lane % 2 * 8;
  copy_row(&tile_a[row][column], a + row * kTile + column, row < m);
  if (row < 8) copy_row(&tile_b[row][column], b + row * kTile + column, row < n);
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  unsigned x[4], y[2];
  const auto at_a =
      static_cast<unsigned>(__cvta_generic_to_shared(&tile_a[lane % 16][lane / 16 * 8]));
  const auto at_b =
      static_cast<unsigned>(__cvta_generic_to_shared(&tile_b[lane % 8][lane / 8 % 2 * 8]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(at_a));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(y[0]), "=r"(y[1])
               : "r"(at_b));
  float sum[4] = {};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  for (int i = 0; i < 4; ++i) tile_d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = sum[i];
  __syncthreads();
  for (int i = lane; i < kTile * 8; i += 32) {
    if (i / 8 <= last && i % 8 < n) d[i / 8 * n + i % 8] = tile_d[i / 8][i % 8];
  }
}

// The same by the WMMA interface: n <= 16.
extern "C" __global__ void ragged_wmma(const half* a, const half* b, float* d, int m, int n,
                                       int last) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) half tile_a[kTile][kTile], tile_b[kTile][kTile];
  __shared__ __align__(32) float tile_d[kTile][kTile];
  const int lane = threadIdx.x;
  for (int i = lane; i < kTile * kTile; i += 32) {
    if (i / kTile < m) tile_a[i / kTile][i % kTile] = a[i];
    if (i / kTile < n) tile_b[i / kTile][i % kTile] = b[i];
  }
  __syncwarp();
  fragment<matrix_a, 16, 16, 16, half, row_major> left;
  fragment<matrix_b, 16, 16, 16, half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  load_matrix_sync(left, &tile_a[0][0], kTile);
  load_matrix_sync(right, &tile_b[0][0], kTile);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(&tile_d[0][0], sum, kTile, mem_row_major);
  __syncwarp();
  for (int i = lane; i < kTile * kTile; i += 32) {
    if (i / kTile <= last && i % kTile < n)
      d[i / kTile * n + i % kTile] = tile_d[i / kTile][i % kTile];
  }
}
