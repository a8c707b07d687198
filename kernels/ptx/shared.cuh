// Shared memory: addresses, and loads whose width the compiler keeps.
#pragma once

#include <cstdint>
#include <cstring>

/// Address in the shared window, 32 bits: the operand of ldmatrix, cp.async, mbarrier and the TMA.
/// PTX ISA: "cvta".
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Four adjacent floats, 16-byte aligned, in one instruction (PTX ISA: "ld"). nvcc splits a float4
/// into four loads and later merges some of them, which differ from build to build. A value of 128
/// bits stays one load.
__device__ __forceinline__ float4 load_shared_v4(const float* pointer) {
  __extension__ using Bits = unsigned __int128;
  Bits bits;
  memcpy(&bits, __builtin_assume_aligned(pointer, sizeof bits), sizeof bits);
  const auto part = [bits](int i) {
    return __uint_as_float(static_cast<uint32_t>(bits >> (32 * i)));
  };
  return {part(0), part(1), part(2), part(3)};
}

/// A word at a shared address. PTX ISA: "ld".
__device__ __forceinline__ uint32_t load_shared_word(uint32_t address) {
  uint32_t x;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
  return x;
}

/// Stores two floats at a shared address, 8-byte aligned. PTX ISA: "st".
__device__ __forceinline__ void store_shared_v2(uint32_t address, float a, float b) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(a), "f"(b) : "memory");
}
