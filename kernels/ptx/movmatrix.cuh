// movmatrix: a warp transposes an 8x8 tile of 16-bit elements in registers.
#pragma once

#include <cstdint>

/// Lane l holds row l / 4, columns 2(l % 4) and 2(l % 4) + 1 of the tile, and gets these elements
/// of the transposed tile. PTX ISA: "movmatrix".
__device__ __forceinline__ uint32_t movmatrix_trans(uint32_t tile) {
  uint32_t transposed;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(tile));
  return transposed;
}
