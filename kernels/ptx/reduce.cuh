// Bulk copies between memory and shared memory without a tensor map, and bulk additions.
#pragma once

#include <cstdint>

/// Starts the copy of adjacent bytes to shared memory, counted on an mbarrier; addresses and size
/// are multiples of 16. PTX ISA: "cp.async.bulk".
__device__ __forceinline__ void bulk_load(uint32_t shared, const void* global, uint32_t bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared),
      "l"(global), "r"(bytes), "r"(barrier)
      : "memory");
}

/// Starts the addition of adjacent floats of shared memory to memory; each addition is atomic.
/// PTX ISA: "cp.reduce.async.bulk".
__device__ __forceinline__ void bulk_add(float* global, uint32_t shared, uint32_t bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(global),
      "r"(shared), "r"(bytes)
      : "memory");
}

/// Starts the copy of adjacent bytes of shared memory to memory. PTX ISA: "cp.async.bulk".
__device__ __forceinline__ void bulk_store(void* global, uint32_t shared, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(shared), "r"(bytes)
               : "memory");
}

/// Waits until all of this thread's bulk stores and additions are complete, so that they are
/// visible to it. PTX ISA: "cp.async.bulk.wait_group".
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// Orders bulk additions to memory behind ordinary accesses to it. PTX ISA: "membar / fence".
__device__ __forceinline__ void fence_async_proxy_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
