// mbarrier: barriers in shared memory that count arrivals and, for the TMA, bytes.
// Addresses are in the shared window. A phase is complete when no arrivals and no bytes are
// pending.
#pragma once

#include <cstdint>

/// Initializes a barrier whose phases end after `arrivals` arrivals. PTX ISA: "mbarrier.init".
__device__ __forceinline__ void mbarrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Makes the initialization visible to the TMA and to the cluster. A barrier of the block must
/// follow, or of the cluster if other blocks arrive.
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Arrives, and adds `bytes` to the bytes of copies that this phase waits for. PTX ISA:
/// "mbarrier.arrive.expect_tx".
__device__ __forceinline__ void mbarrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Arrives. PTX ISA: "mbarrier.arrive".
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives if `pred` holds. The instruction has the predicate, because a branch around it can make
/// ptxas keep what is the same in all lanes in registers of each lane.
__device__ __forceinline__ void mbarrier_arrive_if(bool pred, uint32_t barrier) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %0, 0;\n"
      "@p mbarrier.arrive.shared::cta.b64 _, [%1];\n}" ::"r"(static_cast<int>(pred)),
      "r"(barrier)
      : "memory");
}

/// Waits for the end of the phase of this parity: 0 for the first, 1 for the second, ... Parity 1
/// on a fresh barrier does not wait. PTX ISA: "mbarrier.try_wait".
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
