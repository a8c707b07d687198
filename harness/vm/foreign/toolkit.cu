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
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda/semaphore>
#include <cuda/std/complex>
#include <cuda/std/mdspan>

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

// A scan of the whole grid in one pass: each block looks back at the blocks before it.
using TileState = cub::ScanTileState<int>;
constexpr int kTileStates = 1 << 16;  // bytes

__device__ TileState tile_state(char* storage, int tiles) {
  TileState state;
  state.Init(tiles, storage, kTileStates);
  return state;
}

extern "C" __global__ void look_back_begin(char* storage, int tiles) {
  tile_state(storage, tiles).InitializeStatus(tiles);
}

extern "C" __global__ void look_back_scan(const int* in, int* out, int n, char* storage) {
  using Scan = cub::BlockScan<int, 128>;
  using Sum = cuda::std::plus<>;
  using Before = cub::TilePrefixCallbackOp<int, Sum, TileState>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ typename Before::TempStorage before;
  TileState state = tile_state(storage, gridDim.x);
  const int tile = blockIdx.x, i = tile * 128 + threadIdx.x;
  int value = i < n ? in[i] : 0;
  if (tile == 0) {
    int all;
    Scan(scan).InclusiveSum(value, value, all);
    if (threadIdx.x == 0) state.SetInclusive(0, all);
  } else {
    Before prefix(state, before, Sum{}, tile);
    Scan(scan).InclusiveScan(value, value, Sum{}, prefix);
  }
  if (i < n) out[i] = value;
}

// 512 values: their sum, a histogram of their last four bits, differences, and both orders.
extern "C" __global__ void block_collectives(const int* in, int* sum, int* bins, int* differences,
                                             int* ascending, int* descending, int* place) {
  using Reduce = cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_RAKING>;
  using Histogram = cub::BlockHistogram<unsigned char, 128, 4, 16>;
  using Difference = cub::BlockAdjacentDifference<int, 128>;
  using Exchange = cub::BlockExchange<int, 128, 4>;
  using Merge = cub::BlockMergeSort<int, 128, 4>;
  using Radix = cub::BlockRadixSort<int, 128, 4, int>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Histogram::TempStorage histogram;
    typename Difference::TempStorage difference;
    typename Exchange::TempStorage exchange;
    typename Merge::TempStorage merge;
    typename Radix::TempStorage radix;
  } storage;
  __shared__ int counts[16];
  int value[4], other[4];
  unsigned char digit[4];
  cub::LoadDirectStriped<128>(threadIdx.x, in, value);
  const int all = Reduce(storage.reduce).Sum(value);
  if (threadIdx.x == 0) *sum = all;
  __syncthreads();
  for (int i = 0; i < 4; ++i) digit[i] = value[i] & 15;
  Histogram(storage.histogram).InitHistogram(counts);
  __syncthreads();
  Histogram(storage.histogram).Composite(digit, counts);
  __syncthreads();
  if (threadIdx.x < 16) bins[threadIdx.x] = counts[threadIdx.x];
  Exchange(storage.exchange).StripedToBlocked(value, value);
  __syncthreads();
  Difference(storage.difference).SubtractLeft(value, other, cuda::std::minus<>{});
  __syncthreads();
  cub::StoreDirectBlocked(threadIdx.x, differences, other);
  for (int i = 0; i < 4; ++i) other[i] = threadIdx.x * 4 + i;
  int copy[4] = {value[0], value[1], value[2], value[3]};
  Merge(storage.merge).Sort(copy, cuda::std::less<>{});
  __syncthreads();
  cub::StoreDirectBlocked(threadIdx.x, ascending, copy);
  Radix(storage.radix).SortDescending(value, other);
  cub::StoreDirectBlocked(threadIdx.x, descending, value);
  cub::StoreDirectBlocked(threadIdx.x, place, other);
}

// Sums of groups of eight, of equal last bits of a warp, and of equal remainders.
extern "C" __global__ void partitions(const int* in, int* eights, int* bits, int* thirds) {
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const int i = threadIdx.x, value = in[i];
  eights[i] = cg::reduce(cg::tiled_partition<8>(block), value, cg::plus<int>());
  bits[i] = cg::reduce(cg::binary_partition(warp, value & 1), value, cg::plus<int>());
  const auto same = cg::labeled_partition(cg::coalesced_threads(), value % 3);
  thirds[i] = same.size() * 100 + same.thread_rank();
}

// One atomic for all threads of a warp that take part.
extern "C" __global__ void filter(const int* in, int n, int* out, int* count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || in[i] <= 50) return;
  const auto active = cg::coalesced_threads();
  int first = 0;
  if (active.thread_rank() == 0) first = atomicAdd(count, active.size());
  out[active.shfl(first, 0) + active.thread_rank()] = in[i];
}

// A semaphore for two, a latch, and references to atomics of several sizes.
extern "C" __global__ void meetings(int* most_inside, int* sum, unsigned char* bytes) {
  using Semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 4>;
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(8) char semaphore_storage[sizeof(Semaphore)], latch_storage[sizeof(Latch)];
  auto& semaphore = reinterpret_cast<Semaphore&>(semaphore_storage);
  auto& latch = reinterpret_cast<Latch&>(latch_storage);
  __shared__ int inside, most;
  if (threadIdx.x == 0) {
    new (&semaphore) Semaphore(2);
    new (&latch) Latch(blockDim.x);
    inside = most = 0;
  }
  __syncthreads();
  semaphore.acquire();
  atomicMax(&most, atomicAdd(&inside, 1) + 1);
  atomicSub(&inside, 1);
  semaphore.release();
  latch.arrive_and_wait();
  if (threadIdx.x == 0) *most_inside = atomicAdd(&most, 0);
  cuda::atomic_ref<int, cuda::thread_scope_device>(*sum).fetch_add(threadIdx.x);
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device>(bytes[1]).fetch_add(1);
}

extern "C" __global__ void complex_numbers(const double* in, double* out) {
  using Complex = cuda::std::complex<double>;
  const cuda::std::mdspan<const double, cuda::std::extents<int, 32, 2>> pairs(in);
  const cuda::std::mdspan<double, cuda::std::extents<int, 32, 2>> results(out);
  const int i = threadIdx.x;
  const Complex z(pairs(i, 0), pairs(i, 1));
  const Complex w =
      cuda::std::exp(z) * cuda::std::sqrt(z) / (z + Complex(1, 2)) + cuda::std::polar(1.0, 0.3);
  results(i, 0) = w.real();
  results(i, 1) = w.imag();
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
// Bulk copies by cuda::ptx: each block of a pair doubles what the other has fetched.
extern "C" __global__ void __cluster_dims__(2, 1, 1) bulk_copies(const int* in, int* out) {
  namespace ptx = cuda::ptx;
  __shared__ alignas(128) int part[256];
  __shared__ uint64_t barrier;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, in + 256 * blockIdx.x,
                       sizeof part, &barrier);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared,
                                   &barrier, sizeof part);
  }
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  cluster.sync();
  const int value = cluster.map_shared_rank(part, cluster.block_rank() ^ 1)[threadIdx.x];
  cluster.sync();
  part[threadIdx.x] = 2 * value;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 256 * blockIdx.x, part,
                     sizeof part);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}

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
