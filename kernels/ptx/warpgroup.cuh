// For warp specialization: registers that move between warpgroups, named barriers, an elected lane.
#pragma once

#include <cstdint>

/// The warpgroup releases registers, down to `Registers` per thread. PTX ISA: "setmaxnreg".
template <int Registers>
__device__ __forceinline__ void registers_release() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// The warpgroup acquires registers, up to `Registers` per thread; waits until they are free.
template <int Registers>
__device__ __forceinline__ void registers_acquire() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Barrier `id` (1 to 15) among `threads` threads. PTX ISA: "bar.sync".
__device__ __forceinline__ void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Arrives at barrier `id` without waiting. PTX ISA: "bar.arrive".
__device__ __forceinline__ void barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// True in one lane of a converged warp. PTX ISA: "elect.sync".
__device__ __forceinline__ bool elect_one() {
  uint32_t leads;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(leads));
  return leads != 0;
}
