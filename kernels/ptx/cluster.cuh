// Clusters: thread blocks that run at the same time on SMs of one GPC and can access each other's
// shared memory.
#pragma once

#include <cuda.h>

#include <cstdint>

/// The rank of the thread block in its cluster. PTX ISA: "%cluster_ctarank".
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Waits for all threads of the cluster that have not exited; orders their accesses to shared
/// memory. PTX ISA: "barrier.cluster".
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

/// The address of the same location in the shared memory of block `rank`. PTX ISA: "mapa".
__device__ __forceinline__ uint32_t cluster_address(uint32_t shared, int rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}

/// Arrives at the barrier of block `rank` with the default scope, .cta. With .release.cluster the
/// thread would first wait for all its accesses to device memory. The narrow scope suffices if
/// block `rank` waits only to overwrite what this thread has read, and if the arrival depends on
/// the values read: by a branch on them, or by a wait for the wgmma that use them. The later store
/// then depends on the read, so the read cannot return the value stored. PTX ISA:
/// "mbarrier.arrive", "No-Thin-Air".
__device__ __forceinline__ void cluster_arrive(uint32_t barrier, int rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address(barrier, rank))
               : "memory");
}

/// Stores `value` in block `rank` and arrives at a barrier there. A thread that waits with
/// cluster_wait() may read the value. PTX ISA: "st", "mbarrier.arrive".
__device__ __forceinline__ void cluster_send(uint32_t shared, int value, uint32_t barrier,
                                             int rank) {
  asm volatile(
      "st.shared::cluster.s32 [%0], %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%2];" ::"r"(
          cluster_address(shared, rank)),
      "r"(value), "r"(cluster_address(barrier, rank))
      : "memory");
}

/// The same for 16 bytes.
__device__ __forceinline__ void cluster_send(uint32_t shared, int4 value, uint32_t barrier,
                                             int rank) {
  asm volatile(
      "st.shared::cluster.v4.s32 [%0], {%1, %2, %3, %4};\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%5];" ::"r"(
          cluster_address(shared, rank)),
      "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(cluster_address(barrier, rank))
      : "memory");
}

/// mbarrier_wait() for data that another block of the cluster has stored. PTX ISA:
/// "mbarrier.try_wait".
__device__ __forceinline__ void cluster_wait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// tma_load() to the same address and the same barrier in each block of the cluster whose bit is
/// set in `ranks`. PTX ISA: "cp.async.bulk.tensor".
__device__ __forceinline__ void tma_load_multicast(uint32_t shared, const CUtensorMap& map, int c0,
                                                   int c1, int c2, int c3, uint32_t barrier,
                                                   uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(shared),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(barrier), "h"(ranks)
      : "memory");
}

/// The same of a tensor with five dimensions.
__device__ __forceinline__ void tma_load_multicast(uint32_t shared, const CUtensorMap& map, int c0,
                                                   int c1, int c2, int c3, int c4, uint32_t barrier,
                                                   uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;" ::"r"(shared),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(barrier), "h"(ranks)
      : "memory");
}
