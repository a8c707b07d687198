// SPDX-License-Identifier: MIT
// Thrust and CUB, which come with the toolkit: algorithms on 3000 values, each compared with the
// standard library's.
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdio>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <numeric>
#include <random>
#include <vector>

namespace {

constexpr int kThreads = 128, kItems = 4;

__global__ void block_sort_and_scan(unsigned* values, unsigned* sums) {
  using Sort = cub::BlockRadixSort<unsigned, kThreads, kItems>;
  using Scan = cub::BlockScan<unsigned, kThreads>;
  __shared__ union {
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
  } room;
  unsigned mine[kItems];
  for (int i = 0; i < kItems; ++i) mine[i] = values[threadIdx.x * kItems + i];
  Sort(room.sort).Sort(mine);
  __syncthreads();
  for (int i = 0; i < kItems; ++i) values[threadIdx.x * kItems + i] = mine[i];
  Scan(room.scan).InclusiveSum(mine, mine);
  for (int i = 0; i < kItems; ++i) sums[threadIdx.x * kItems + i] = mine[i];
}

template <class T>
bool same(const thrust::device_vector<T>& got, const std::vector<T>& want, const char* what) {
  std::vector<T> here(got.size());
  thrust::copy(got.begin(), got.end(), here.begin());
  if (here == want) return true;
  std::printf("%s is wrong\n", what);
  return false;
}

}  // namespace

int main() {
  std::mt19937 random(1);
  std::vector<unsigned> values(3000);
  for (unsigned& each : values) each = random() % 1000;
  thrust::device_vector<unsigned> on_card(values);
  bool good = true;

  const unsigned sum = thrust::reduce(on_card.begin(), on_card.end());
  good &= sum == std::accumulate(values.begin(), values.end(), 0u);

  thrust::device_vector<unsigned> sums(values.size());
  std::vector<unsigned> want(values.size());
  thrust::inclusive_scan(on_card.begin(), on_card.end(), sums.begin());
  std::partial_sum(values.begin(), values.end(), want.begin());
  good &= same(sums, want, "scan");

  thrust::device_vector<unsigned> block(on_card.begin(), on_card.begin() + kThreads * kItems);
  thrust::device_vector<unsigned> block_sums(block.size());
  block_sort_and_scan<<<1, kThreads>>>(thrust::raw_pointer_cast(block.data()),
                                       thrust::raw_pointer_cast(block_sums.data()));
  want.assign(values.begin(), values.begin() + kThreads * kItems);
  std::sort(want.begin(), want.end());
  good &= same(block, want, "block sort");
  std::partial_sum(want.begin(), want.end(), want.begin());
  good &= same(block_sums, want, "block scan");

  thrust::sort(on_card.begin(), on_card.end());
  std::sort(values.begin(), values.end());
  good &= same(on_card, values, "sort");

  on_card.erase(thrust::unique(on_card.begin(), on_card.end()), on_card.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  good &= same(on_card, values, "unique");
  return good ? 0 : 1;
}
