// A counter in device memory that orders what the thread blocks before and after it store and read.
#pragma once

/// Adds 1 to a counter, or wraps a count of `last` to 0. Returns what it was. Stores before it, of
/// all threads that a barrier orders before it, are visible to whoever acquires it. PTX ISA:
/// "atom".
__device__ __forceinline__ int count_in_order(unsigned* counter, int last) {
  int count;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(count)
               : "l"(counter), "r"(last)
               : "memory");
  return count;
}

/// The same without the answer: nothing waits for it, and it does not acquire what others stored.
/// PTX ISA: "red".
__device__ __forceinline__ void pass_turn(unsigned* counter, int last) {
  asm volatile("red.release.gpu.global.inc.u32 [%0], %1;" ::"l"(counter), "r"(last) : "memory");
}

/// The value of a counter. Stores before a counted arrival are visible after a read that sees it.
/// PTX ISA: "ld".
__device__ __forceinline__ unsigned read_in_order(const unsigned* counter) {
  unsigned count;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
  return count;
}
