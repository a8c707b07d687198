// SPDX-License-Identifier: MIT
#include <bit>

#include "num/half.h"
#include "num/kernels.h"
#include "num/single.h"

namespace ptxvm::num {
namespace {

#include "num/kernels.inc"

void convert_half(float* out, const uint32_t* in) {
  float low[32], high[32];  // contiguous, so that the conversions vectorise
  for (int i = 0; i < 32; ++i) low[i] = half_to_float(static_cast<uint16_t>(in[i]));
  for (int i = 0; i < 32; ++i) high[i] = half_to_float(static_cast<uint16_t>(in[i] >> 16));
  for (int i = 0; i < 32; ++i) {
    out[2 * i] = low[i];
    out[2 * i + 1] = high[i];
  }
}

void convert_bfloat(float* out, const uint32_t* in) {
  for (int i = 0; i < 32; ++i) {
    out[2 * i] = bfloat_to_float(static_cast<uint16_t>(in[i]));
    out[2 * i + 1] = bfloat_to_float(static_cast<uint16_t>(in[i] >> 16));
  }
}

using Quad = float __attribute__((vector_size(16)));

Quad load(const float* p) {
  Quad q;
  __builtin_memcpy(&q, p, sizeof q);
  return q;
}

// Two rows at a time hide the latency of the sums.
void multiply_add(Tile& t, int depth) {
  for (int r = 0; r < 16; r += 2) {
    Quad sum[2][2];
    __builtin_memcpy(sum, t.c[r], sizeof sum);
    for (int k = 0; k < depth; ++k) {
      const Quad low = load(t.b[k]), high = load(t.b[k] + 4);
      for (int i = 0; i < 2; ++i) {
        const float x = t.a[r + i][k];
        sum[i][0] += low * x;
        sum[i][1] += high * x;
      }
    }
    __builtin_memcpy(t.c[r], sum, sizeof sum);
  }
}

template <class Convert>
void mma(uint32_t* const* d, const uint32_t* const* a, const uint32_t* const* b,
         const uint32_t* const* c, int steps, Convert convert) {
  Tile t;
  load_operands(t, a, b, steps, convert);
  load_accumulators(t, c);
  multiply_add(t, steps * 8);
  store_accumulators(t, d);
}

void mma_f16(uint32_t* const* d, const uint32_t* const* a, const uint32_t* const* b,
             const uint32_t* const* c, int steps) {
  mma(d, a, b, c, steps, convert_half);
}

void mma_bf16(uint32_t* const* d, const uint32_t* const* a, const uint32_t* const* b,
              const uint32_t* const* c, int steps) {
  mma(d, a, b, c, steps, convert_bfloat);
}

// Eight vectors at a time hide the latency of the sums.
void add_products(float* sums, const float* a, const float* b, int rows, int depth) {
  for (int r = 0; r < rows; r += 32) {
    Quad sum[8];
    __builtin_memcpy(sum, sums + r, sizeof sum);
    for (int k = 0; k < depth; ++k) {
      for (int i = 0; i < 8; ++i) sum[i] += load(a + k * 128 + r + i * 4) * b[k];
    }
    __builtin_memcpy(sums + r, sum, sizeof sum);
  }
}

void fma32(float* d, const float* a, const float* b, const float* c) {
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) d[i] = fused(a[i], b[i], c[i]);
}

constexpr Kernels kPortable{mma_f16, mma_bf16, add_products, fma32};

}  // namespace

#ifdef PTXVM_AVX2
extern const Kernels kAvx2Kernels;
#endif

const Kernels& kernels(bool portable) {
#ifdef PTXVM_AVX2
  // Every processor with AVX2 has F16C, which not every compiler can ask for.
  static const bool fast = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (fast && !portable) return kAvx2Kernels;
#else
  (void)portable;
#endif
  return kPortable;
}

}  // namespace ptxvm::num
