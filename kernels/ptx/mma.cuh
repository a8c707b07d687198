// mma.sync: one warp multiplies a 16x16 by a 16x8 tile of FP16 or bfloat16, FP32 accumulate.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

/// D += A B. Lane l holds, with g = l / 4 and t = l % 4 (two halves per register, low half first):
///   A: a[0] = (g, 2t..), a[1] = (g+8, 2t..), a[2] = (g, 2t+8..), a[3] = (g+8, 2t+8..)
///   B: b0 = (k = 2t.., n = g), b1 = (k = 2t+8.., n = g)
///   D: d[0] = (g, 2t), d[1] = (g, 2t+1), d[2] = (g+8, 2t), d[3] = (g+8, 2t+1)
/// PTX ISA: "mma.m16n8k16 with floating point type".
template <class T = half>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1) {
#define FA_MMA(types)                                              \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." types               \
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (std::is_same_v<T, half>)
    FA_MMA("f16.f16");
  else
    FA_MMA("bf16.bf16");
#undef FA_MMA
}
