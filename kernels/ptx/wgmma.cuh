// wgmma: a warpgroup (four warps) multiplies asynchronously. B is in shared memory, A in shared
// memory or in registers; FP32 accumulate. Between fence and wait no thread may access the
// registers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

/// Orders earlier accesses to the registers before the next wgmma. PTX ISA: "wgmma.fence".
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Closes the group of all wgmma since the last commit. PTX ISA: "wgmma.commit_group".
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Keeps accesses to these registers on their side of the call, since the compiler does not look
/// inside an asm. It emits no instruction.
__device__ __forceinline__ void wgmma_tie(float& d) {
  asm volatile("" : "+f"(d)::"memory");
}
template <class T, int N>
__device__ __forceinline__ void wgmma_tie(T (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) wgmma_tie(d[i]);
}

/// Waits until at most `Pending` of the newest groups are unfinished. `done` are the accumulators
/// of the finished groups: no access to them moves above the wait. PTX ISA: "wgmma.wait_group".
template <int Pending, class... Accumulators>
__device__ __forceinline__ void wgmma_wait(Accumulators&... done) {
  static_assert(sizeof...(done) > 0, "a wait without accumulators orders no access to them");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
  (wgmma_tie(done), ...);
}

/// Descriptor of a tile in panels of 64 columns, 128-byte swizzle; the address is a multiple of
/// 1024. `panel_bytes` is the distance of two panels; it is used only where the columns
/// are n (wgmma_transposed). Plus 2 is the next 16 columns of a panel, plus 128 the next 16 rows.
/// PTX ISA: "Matrix descriptor format".
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t address, int panel_bytes) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62, kNextEightRows = uint64_t{1024 >> 4} << 32;
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) |
         static_cast<uint64_t>(panel_bytes >> 4) << 16 | kNextEightRows | kSwizzle128;
}

// Accumulator lists in the text and as operands.
#define FA_TEXT_64                                                         \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FA_TEXT_80                                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39"
#define FA_TEXT_96                                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define FA_TEXT_128                                                                  \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FA_EIGHT(d, i)                                                                        \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define FA_LIST_64(d) FA_EIGHT(d, 0), FA_EIGHT(d, 8), FA_EIGHT(d, 16), FA_EIGHT(d, 24)
#define FA_LIST_80(d) \
  FA_EIGHT(d, 0), FA_EIGHT(d, 8), FA_EIGHT(d, 16), FA_EIGHT(d, 24), FA_EIGHT(d, 32)
#define FA_LIST_96(d) \
  FA_EIGHT(d, 0), FA_EIGHT(d, 8), FA_EIGHT(d, 16), FA_EIGHT(d, 24), FA_EIGHT(d, 32), FA_EIGHT(d, 40)
#define FA_LIST_128(d)                                                               \
  FA_EIGHT(d, 0), FA_EIGHT(d, 8), FA_EIGHT(d, 16), FA_EIGHT(d, 24), FA_EIGHT(d, 32), \
      FA_EIGHT(d, 40), FA_EIGHT(d, 48), FA_EIGHT(d, 56)

// wgmma m64nNk16 for N columns of B; a0 to a5 are the operand numbers after the accumulators.
//   wgmma(d, a, b, accumulate): D (+)= A B, k runs along the rows of both tiles in memory
//   wgmma_transposed(d, a, b, accumulate): the same with k down the rows of B, as V is stored
// Lane l of warp w holds, with g = 16 w + l / 4 and t = l % 4,
//   D: d[4j] = (g, 8j + 2t), d[4j+1] = (g, 8j + 2t + 1), d[4j+2] and d[4j+3] = (g + 8, the same)
//   A in registers, two halves each: a[0] = (g, 2t..), a[1] = (g + 8, 2t..),
//     a[2] = (g, 2t + 8..), a[3] = (g + 8, 2t + 8..)
// so that D packed to halves is A of a second product. wgmma<__nv_bfloat16> multiplies bfloat16.
// PTX ISA: "wgmma.mma_async", "Register fragments and shared memory matrix layouts".
#define FA_ISSUE(N, types, operands, last, tail, ...)                                         \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" last                                      \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." types " {" FA_TEXT_##N \
               "}, " operands ", p, 1, 1, " tail ";\n}"                                       \
               : FA_LIST_##N(d)                                                               \
               : __VA_ARGS__)
#define FA_WGMMA(N, a0, a1, a2, a3, a4, a5)                                                      \
  template <class T = half>                                                                      \
  __device__ __forceinline__ void wgmma(float(&d)[N / 2], uint64_t a, uint64_t b,                \
                                        int accumulate) {                                        \
    if constexpr (std::is_same_v<T, half>)                                                       \
      FA_ISSUE(N, "f16.f16", "%" a0 ", %" a1, a2, "0, 0", "l"(a), "l"(b), "r"(accumulate));      \
    else                                                                                         \
      FA_ISSUE(N, "bf16.bf16", "%" a0 ", %" a1, a2, "0, 0", "l"(a), "l"(b), "r"(accumulate));    \
  }                                                                                              \
  template <class T = half>                                                                      \
  __device__ __forceinline__ void wgmma(float(&d)[N / 2], const uint32_t(&a)[4], uint64_t b,     \
                                        int accumulate) {                                        \
    if constexpr (std::is_same_v<T, half>)                                                       \
      FA_ISSUE(N, "f16.f16", "{%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" a4, a5, "0", "r"(a[0]),   \
               "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                        \
    else                                                                                         \
      FA_ISSUE(N, "bf16.bf16", "{%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" a4, a5, "0", "r"(a[0]), \
               "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                        \
  }                                                                                              \
  template <class T = half>                                                                      \
  __device__ __forceinline__ void wgmma_transposed(float(&d)[N / 2], const uint32_t(&a)[4],      \
                                                   uint64_t b, int accumulate) {                 \
    if constexpr (std::is_same_v<T, half>)                                                       \
      FA_ISSUE(N, "f16.f16", "{%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" a4, a5, "1", "r"(a[0]),   \
               "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                        \
    else                                                                                         \
      FA_ISSUE(N, "bf16.bf16", "{%" a0 ", %" a1 ", %" a2 ", %" a3 "}, %" a4, a5, "1", "r"(a[0]), \
               "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                        \
  }                                                                                              \
  template <class T = half>                                                                      \
  __device__ __forceinline__ void wgmma_transposed(float(&d)[N / 2], uint64_t a, uint64_t b,     \
                                                   int accumulate) {                             \
    if constexpr (std::is_same_v<T, half>)                                                       \
      FA_ISSUE(N, "f16.f16", "%" a0 ", %" a1, a2, "0, 1", "l"(a), "l"(b), "r"(accumulate));      \
    else                                                                                         \
      FA_ISSUE(N, "bf16.bf16", "%" a0 ", %" a1, a2, "0, 1", "l"(a), "l"(b), "r"(accumulate));    \
  }

FA_WGMMA(64, "32", "33", "34", "35", "36", "37")
FA_WGMMA(80, "40", "41", "42", "43", "44", "45")
FA_WGMMA(96, "48", "49", "50", "51", "52", "53")
FA_WGMMA(128, "64", "65", "66", "67", "68", "69")

/// The same with the accumulators of each 8 columns in an array of their own, as mma_m16n8k16 has
/// them.
template <class T = half, int Columns, class A>
__device__ __forceinline__ void wgmma(float (&d)[Columns][4], const A& a, uint64_t b,
                                      int accumulate) {
  wgmma<T>(reinterpret_cast<float(&)[4 * Columns]>(d), a, b, accumulate);
}
template <class T = half, int Columns, class A>
__device__ __forceinline__ void wgmma_transposed(float (&d)[Columns][4], const A& a, uint64_t b,
                                                 int accumulate) {
  wgmma_transposed<T>(reinterpret_cast<float(&)[4 * Columns]>(d), a, b, accumulate);
}

#undef FA_WGMMA
#undef FA_ISSUE
#undef FA_EIGHT
#undef FA_TEXT_64
#undef FA_LIST_64
#undef FA_TEXT_80
#undef FA_LIST_80
#undef FA_TEXT_96
#undef FA_LIST_96
#undef FA_TEXT_128
#undef FA_LIST_128
