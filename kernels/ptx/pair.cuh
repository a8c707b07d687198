// Pairs: two thread blocks of a cluster whose tensor cores multiply together. A thread of the
// leader, the block of rank 0, issues the products. Each block has half of the rows of A and D and
// half of the columns of B, in both at the same addresses. All tcgen05 instructions of a kernel
// have the same cta_group. PTX ISA: "CTA Pair".
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/ptx/cluster.cuh"

/// tensor_allocate() by a warp of each block. Both must call it: it may wait for the other block.
/// PTX ISA: "tcgen05.alloc".
__device__ __forceinline__ void pair_allocate(uint32_t shared, int columns) {
  asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared),
               "r"(columns)
               : "memory");
}

/// tensor_free() by a warp of each block, when neither block accesses the memory any more. PTX ISA:
/// "tcgen05.dealloc".
__device__ __forceinline__ void pair_free(uint32_t address, int columns) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns)
               : "memory");
}

/// tensor_relinquish() by a warp of each block. PTX ISA: "tcgen05.relinquish_alloc_permit".
__device__ __forceinline__ void pair_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
}

/// tensor_commit() of the leader: the mbarrier at this address gets an arrival in both blocks. PTX
/// ISA: "tcgen05.commit".
__device__ __forceinline__ void pair_commit(uint32_t barrier) {
  constexpr uint16_t kBoth = 3;
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(barrier),
      "h"(kBoth)
      : "memory");
}

/// Arrives at the leader's mbarrier. A thread of the leader that waits with cluster_wait() may let
/// products read what this thread has stored. PTX ISA: "mbarrier.arrive".
__device__ __forceinline__ void pair_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                   cluster_address(barrier, 0))
               : "memory");
}

/// tma_load() to the block's own shared memory; the bytes are counted on the leader's mbarrier. PTX
/// ISA: "cp.async.bulk.tensor".
__device__ __forceinline__ void pair_load(uint32_t shared, const CUtensorMap& map, int c0, int c1,
                                          int c2, int c3, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(cluster_address(barrier, 0))
      : "memory");
}

/// tensor_multiply() for both blocks: M is the number of rows of both. PTX ISA: "tcgen05.mma".
__device__ __forceinline__ void pair_multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t shape,
                                              bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(shape), "r"(static_cast<int>(accumulate))
      : "memory");
}

/// The same with A in tensor memory: each block has its own rows there.
__device__ __forceinline__ void pair_multiply(uint32_t d, uint32_t a, uint64_t b, uint32_t shape,
                                              bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::2.kind::f16 [%0], [%1], %2, %3, p;\n}" ::"r"(d),
      "r"(a), "l"(b), "r"(shape), "r"(static_cast<int>(accumulate))
      : "memory");
}
