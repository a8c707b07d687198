// SPDX-License-Identifier: MIT
// Included before a kernel file by nvcc (-include): every wrapper of kernels/ptx/ that begins or
// ends a phase also writes the clock. The kernel file is the reader's, unchanged.
//
// One thread of a warp records: the elected one of a producer warp, the first one of a consumer
// warpgroup. The thread block in the middle of the grid is recorded. A stamp is a few predicated
// instructions without a branch, because ptxas does not move arithmetic past a branch as it does
// past the waits themselves (docs/29_pinned.md). It moves none past a stamp either: in 25
// all exponentials stand above the wait for P V with stamps, and none without.
#pragma once

#include <cstdint>

#include "harness/measure/timeline/format.h"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/rung.h"

extern "C" {
__device__ fa::timeline::Stamp fa_stamps[fa::timeline::kWarps][fa::timeline::kStamps];
}

namespace stamped {

using fa::timeline::Kind;

/// The number of stamps of each warp so far.
__device__ __forceinline__ uint32_t* counts() {
  __shared__ uint32_t of_warp[fa::timeline::kWarps];
  return of_warp;
}

__device__ __forceinline__ bool records() {
  const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  return block == blocks / 2 && (int(threadIdx.x) < FA_PRODUCER_THREADS || threadIdx.x % 128 == 0);
}

__device__ __forceinline__ void stamp(Kind kind, uint32_t detail, bool here = records()) {
  const uint32_t warp = threadIdx.x / 32, last = fa::timeline::kStamps - 1;
  const uint32_t code = static_cast<uint32_t>(kind) << fa::timeline::kDetailBits |
                        (detail & ((1u << fa::timeline::kDetailBits) - 1));
  asm volatile(
      "{\n.reg .pred here;\n.reg .u32 now, count, next;\n.reg .u64 place;\n"
      "setp.ne.u32 here, %0, 0;\n"
      "mov.u32 now, %%clock;\n"
      "mov.u32 count, 0;\n"
      "@here ld.shared.u32 count, [%1];\n"
      "add.u32 next, count, 1;\n"
      "@here st.shared.u32 [%1], next;\n"
      "min.u32 count, count, %4;\n"
      "mad.wide.u32 place, count, 8, %2;\n"
      "@here st.global.v2.u32 [place], {now, %3};\n}" ::"r"(static_cast<uint32_t>(here)),
      "r"(shared_address(counts() + warp)), "l"(__cvta_generic_to_global(fa_stamps[warp])),
      "r"(code), "r"(last)
      : "memory");
}

__device__ __forceinline__ void mbarrier_init_fence() {
  for (int i = 0; i < fa::timeline::kWarps; ++i) counts()[i] = 0;
  ::mbarrier_init_fence();
}

__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, int parity) {
  stamp(Kind::wait_begin, barrier);
  ::mbarrier_wait(barrier, parity);
  stamp(Kind::wait_end, barrier);
}

__device__ __forceinline__ void wgmma_commit() {
  ::wgmma_commit();
  stamp(Kind::commit, 0);
}

template <int Pending, class... Accumulators>
__device__ __forceinline__ void wgmma_wait(Accumulators&... done) {
  stamp(Kind::products_wait, Pending);
  ::wgmma_wait<Pending>(done...);
  stamp(Kind::products_done, Pending);
}

__device__ __forceinline__ void barrier_sync(int id, int threads) {
  stamp(Kind::turn_wait, id);
  ::barrier_sync(id, threads);
  stamp(Kind::turn_taken, id);
}

// Only its end: the counts are set up before the first one, and all threads pass it.
__device__ __forceinline__ void block_barrier() {
  __syncthreads();
  stamp(Kind::block_barrier, 0, records() && threadIdx.x % 128 == 0);
}

__device__ __forceinline__ void tma_load(uint32_t shared, const CUtensorMap& map, int c0, int c1,
                                         int c2, int c3, uint32_t barrier) {
  ::tma_load(shared, map, c0, c1, c2, c3, barrier);
  stamp(Kind::load, shared);
}

}  // namespace stamped

#define mbarrier_init_fence stamped::mbarrier_init_fence
#define mbarrier_wait stamped::mbarrier_wait
#define wgmma_commit stamped::wgmma_commit
#define wgmma_wait stamped::wgmma_wait
#define barrier_sync stamped::barrier_sync
#define tma_load stamped::tma_load
#define __syncthreads stamped::block_barrier
