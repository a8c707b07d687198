// stmatrix: a warp stores 8x8 tiles of 16-bit elements from mma fragment layout to shared memory.
#pragma once

#include <cstdint>

/// Lanes 8i..8i+7 give the row addresses (16 bytes each) of tile i; lane l holds, of tile i in
/// r[i], row l / 4, columns 2(l % 4) and 2(l % 4) + 1. PTX ISA: "stmatrix".
__device__ __forceinline__ void stmatrix_x4(uint32_t row_address, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(row_address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

/// The same with each tile transposed: lane l holds rows 2(l % 4) and 2(l % 4) + 1 of column l / 4
/// as it is stored.
__device__ __forceinline__ void stmatrix_x4_transposed(uint32_t row_address,
                                                       const uint32_t (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(row_address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}
