// TMA: one thread requests a box of a tensor; the TMA unit copies it to shared memory and counts
// its bytes on an mbarrier.
#pragma once

#include <cuda.h>

#include <cstdint>

/// Starts the copy of the box at (c0, c1, c2, c3), innermost first, to shared memory. Elements
/// outside the tensor are filled with zeros and counted. PTX ISA: "cp.async.bulk.tensor".
__device__ __forceinline__ void tma_load(uint32_t shared, const CUtensorMap& map, int c0, int c1,
                                         int c2, int c3, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(barrier)
      : "memory");
}

/// The same of a tensor with five dimensions.
__device__ __forceinline__ void tma_load(uint32_t shared, const CUtensorMap& map, int c0, int c1,
                                         int c2, int c3, int c4, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(shared),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(barrier)
      : "memory");
}

/// Starts the copy of a box from shared memory to the tensor; elements outside the tensor
/// are not written. PTX ISA: "cp.async.bulk.tensor".
__device__ __forceinline__ void tma_store(const CUtensorMap& map, uint32_t shared, int c0, int c1,
                                          int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(
          &map),
      "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(shared)
      : "memory");
}

/// The same to a tensor with five dimensions.
__device__ __forceinline__ void tma_store(const CUtensorMap& map, uint32_t shared, int c0, int c1,
                                          int c2, int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];" ::
          "l"(&map),
      "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(shared)
      : "memory");
}

/// Closes the group of all bulk stores that this thread started since its last commit. PTX ISA:
/// "cp.async.bulk.commit_group".
__device__ __forceinline__ void bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until all of this thread's bulk stores have read their shared memory. PTX ISA:
/// "cp.async.bulk.wait_group".
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/// Makes this thread's stores to shared memory visible to the TMA and to wgmma. PTX ISA:
/// "membar / fence".
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
