// Global memory: stores whose width the compiler does not have, or does not keep.
#pragma once

#include <cstdint>

/// Stores 32 bytes, a whole sector, aligned to as many. Compute capability 10.0 and newer. PTX ISA:
/// "st".
__device__ __forceinline__ void store_global_v8(void* pointer, const uint32_t (&x)[8]) {
  asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(
                   __cvta_generic_to_global(pointer)),
               "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]),
               "r"(x[7])
               : "memory");
}

/// Stores 8 or 16 bytes, aligned to as many, in one instruction: through a pointer whose strides it
/// does not know the compiler splits such a store. PTX ISA: "st".
__device__ __forceinline__ void store_global(void* pointer, uint2 x) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(pointer)),
               "r"(x.x), "r"(x.y)
               : "memory");
}
__device__ __forceinline__ void store_global(void* pointer, uint4 x) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(pointer)),
               "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
               : "memory");
}
