// C = A B^T on tensor cores: A is [m, k], B is [n, k], both f16; one warp makes 16 x 8 of C.
#include <cuda_fp16.h>

#include <cstdint>

extern "C" __global__ void gemm_mma(const half* A, const half* B, float* C, int n, int k) {
  const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
  const half* a = A + (blockIdx.y * 16 + group) * k + pair;
  const half* b = B + (blockIdx.x * 8 + group) * k + pair;
  float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  const auto word = [](const half* p) { return *reinterpret_cast<const uint32_t*>(p); };
#pragma unroll 1
  for (int i = 0; i < k; i += 16) {
    // PTX ISA 9.7.14.5.8: fragments of m16n8k16.
    const uint32_t a0 = word(a + i), a1 = word(a + i + 8 * k);
    const uint32_t a2 = word(a + i + 8), a3 = word(a + i + 8 * k + 8);
    const uint32_t b0 = word(b + i), b1 = word(b + i + 8);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  float* o = C + (blockIdx.y * 16 + group) * n + blockIdx.x * 8 + pair;
  o[0] = c[0];
  o[1] = c[1];
  o[8 * n] = c[2];
  o[8 * n + 1] = c[3];
}
