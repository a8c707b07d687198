// Shared memory: addresses, and loads of a width that the compiler does not change.
#pragma once

#include <cstdint>
#include <cstring>

/// Shared-memory address as instructions take it: 32 bits, relative to the window.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Four neighbouring floats, 16-byte aligned, in one instruction (PTX ISA: "ld"). Read as a float4,
/// they would be four loads to nvcc, which joins loads again: not always all of them, and not the
/// same ones in every run. 128 bits in one piece stay together.
__device__ __forceinline__ float4 load_shared_v4(const float* pointer) {
  __extension__ using Bits = unsigned __int128;
  Bits bits;
  memcpy(&bits, __builtin_assume_aligned(pointer, sizeof bits), sizeof bits);
  const auto part = [bits](int i) {
    return __uint_as_float(static_cast<uint32_t>(bits >> (32 * i)));
  };
  return {part(0), part(1), part(2), part(3)};
}
