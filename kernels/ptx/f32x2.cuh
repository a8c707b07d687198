// f32x2: two floats in 64 bits, and one instruction for both. Compute capability 10.0 and newer.
#pragma once

#include <cstdint>

/// The same two floats as a register pair; emits no arithmetic. PTX ISA: "mov".
__device__ __forceinline__ uint64_t pair_of(float low, float high) {
  uint64_t x;
  asm("mov.b64 %0, {%1, %2};" : "=l"(x) : "f"(low), "f"(high));
  return x;
}

/// a * b + c of both. PTX ISA: "fma".
__device__ __forceinline__ uint64_t fma_pair(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t d;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(d) : "l"(a), "l"(b), "l"(c));
  return d;
}

/// a + b of both. PTX ISA: "add".
__device__ __forceinline__ uint64_t add_pair(uint64_t a, uint64_t b) {
  uint64_t d;
  asm("add.rn.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

/// The larger one, NaN where one is NaN. PTX ISA: "max".
__device__ __forceinline__ float max_nan(float a, float b) {
  float x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
