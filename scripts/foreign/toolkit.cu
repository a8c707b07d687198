// SPDX-License-Identifier: MIT
// Kernels as people write them with the libraries of the CUDA toolkit: CUB, Thrust, libcu++,
// cooperative groups, WMMA. toolkit_cases.py says how they are launched and what is right.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <mma.h>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/sort.h>

#include <cub/cub.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

struct Less {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};

// Four warps, four keys a thread.
extern "C" __global__ void warp_merge_sort(int* keys, float* values) {
  using Ints = cub::WarpMergeSort<int, 4>;
  using Floats = cub::WarpMergeSort<float, 4>;
  __shared__ typename Ints::TempStorage ints[4];
  __shared__ typename Floats::TempStorage floats[4];
  const int warp = threadIdx.x / 32, first = threadIdx.x * 4;
  int key[4];
  float value[4];
  for (int i = 0; i < 4; ++i) key[i] = keys[first + i], value[i] = values[first + i];
  Ints(ints[warp]).Sort(key, Less());
  Floats(floats[warp]).Sort(value, Less());
  for (int i = 0; i < 4; ++i) keys[first + i] = key[i], values[first + i] = value[i];
}

// Sorts up to 1024 keys, and numbers those that differ.
extern "C" __global__ void block_sort(const unsigned* in, unsigned* out, int* number, int n) {
  using Load = cub::BlockLoad<unsigned, 256, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<unsigned, 256, 4>;
  using Heads = cub::BlockDiscontinuity<unsigned, 256>;
  using Scan = cub::BlockScan<int, 256>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Sort::TempStorage sort;
    typename Heads::TempStorage heads;
    typename Scan::TempStorage scan;
  } storage;
  unsigned key[4];
  int head[4];
  Load(storage.load).Load(in, key, n, ~0u);
  __syncthreads();
  Sort(storage.sort).Sort(key);
  __syncthreads();
  Heads(storage.heads).FlagHeads(head, key, ::cuda::std::not_equal_to<>{});
  __syncthreads();
  Scan(storage.scan).InclusiveSum(head, head);
  for (int i = 0; i < 4; ++i) {
    const int at = threadIdx.x * 4 + i;
    if (at < n) out[at] = key[i], number[at] = head[i];
  }
}

extern "C" __global__ void thrust_in_a_thread(int* keys, int n, int* below_50) {
  if (threadIdx.x != 0) return;
  thrust::sort(thrust::seq, keys, keys + n);
  *below_50 = thrust::lower_bound(thrust::seq, keys, keys + n, 50) - keys;
}

// Sums of columns of tiles that a pipeline of two stages brings, then of their warps.
extern "C" __global__ void pipelined(const float* in, float* scans, float* sums, int tiles) {
  constexpr int kWidth = 256;
  __shared__ float stage[2][kWidth];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  float sum = 0;
  for (int tile = 0, ahead = 0; tile < tiles; ++tile) {
    for (; ahead < tiles && ahead < tile + 2; ++ahead) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stage[ahead % 2], in + ahead * kWidth,
                         cuda::aligned_size_t<16>(sizeof stage[0]), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += stage[tile % 2][(threadIdx.x + 1) % kWidth];
    pipeline.consumer_release();
  }
  const auto warp = cg::tiled_partition<32>(block);
  scans[threadIdx.x] = cg::exclusive_scan(warp, sum);
  const float all = cg::reduce(warp, sum, cg::plus<float>());
  if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = all;
}

extern "C" __global__ void reversed(const float* in, float* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ float part[128];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(part + threadIdx.x, in + threadIdx.x, sizeof(float), barrier);
  barrier.arrive_and_wait();
  out[threadIdx.x] = part[127 - threadIdx.x];
}

template <class Precision, int kDepth>
__device__ void small_product(const void* a, const void* b, int* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 8, 8, kDepth, Precision, row_major> left;
  fragment<matrix_b, 8, 8, kDepth, Precision, col_major> right;
  fragment<accumulator, 8, 8, kDepth, int> sum;
  fill_fragment(sum, 0);
  load_matrix_sync(left, a, kDepth);
  load_matrix_sync(right, b, kDepth);
  if constexpr (kDepth == 128) {
    bmma_sync(sum, left, right, sum, experimental::bmmaBitOpAND);
  } else {
    mma_sync(sum, left, right, sum);
  }
  store_matrix_sync(c, sum, 8, mem_row_major);
}

extern "C" __global__ void wmma_4_bits(const int* a, const int* b, int* c) {
  small_product<nvcuda::wmma::experimental::precision::s4, 32>(a, b, c);
}

extern "C" __global__ void wmma_1_bit(const unsigned* a, const unsigned* b, int* c) {
  small_product<nvcuda::wmma::experimental::precision::b1, 128>(a, b, c);
}

#if __CUDA_ARCH__ >= 900
// The bins of a histogram lie in the shared memories of the four blocks of a cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
    cluster_histogram(const int* in, int n, int* out) {
  __shared__ int bins[64];
  const auto cluster = cg::this_cluster();
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(cluster.map_shared_rank(bins, in[i] / 64) + in[i] % 64, 1);
  }
  cluster.sync();
  if (threadIdx.x < 64) atomicAdd(out + cluster.block_rank() * 64 + threadIdx.x, bins[threadIdx.x]);
}
#endif
