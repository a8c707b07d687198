// cp.async: asynchronous copies from global to shared memory that bypass registers.
#pragma once

#include <cstdint>

/// Starts a 16-byte copy; .cg bypasses the L1. Both addresses are 16-byte aligned.
/// PTX ISA: "cp.async".
__device__ __forceinline__ void cp_async_16(uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

/// Starts a 16-byte copy that reads only the first `bytes` bytes and writes zeros for the others.
__device__ __forceinline__ void cp_async_16(uint32_t shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(bytes)
               : "memory");
}

/// Starts to fetch `bytes` bytes, a multiple of 16, into the L2. The address is 16-byte aligned.
/// PTX ISA: "cp.async.bulk.prefetch".
__device__ __forceinline__ void prefetch_l2(const void* global, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

/// Closes the group of all copies this thread started since its last commit.
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `Pending` of this thread's newest groups are unfinished. The copies of other
/// threads become visible only through a barrier after their own wait.
template <int Pending>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
