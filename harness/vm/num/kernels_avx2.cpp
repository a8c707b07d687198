// SPDX-License-Identifier: MIT
// Built with -mavx2 -mfma -mf16c; called only where the processor has them.
#include <immintrin.h>

#include "num/kernels.h"

namespace ptxvm::num {
namespace {

#include "num/kernels.inc"

// An 8x8 matrix of 16-bit elements, rows to columns.
inline void transpose(__m128i (&m)[8]) {
  __m128i x[8], y[8];
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = _mm_unpacklo_epi16(m[2 * i], m[2 * i + 1]);
    x[2 * i + 1] = _mm_unpackhi_epi16(m[2 * i], m[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    y[4 * i] = _mm_unpacklo_epi32(x[4 * i], x[4 * i + 2]);
    y[4 * i + 1] = _mm_unpackhi_epi32(x[4 * i], x[4 * i + 2]);
    y[4 * i + 2] = _mm_unpacklo_epi32(x[4 * i + 1], x[4 * i + 3]);
    y[4 * i + 3] = _mm_unpackhi_epi32(x[4 * i + 1], x[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    m[2 * i] = _mm_unpacklo_epi64(y[i], y[i + 4]);
    m[2 * i + 1] = _mm_unpackhi_epi64(y[i], y[i + 4]);
  }
}

// The products of f16 are exact in f32, so a fused multiply-add rounds as the sum alone does.
void mma_f16(uint32_t* const* d, const uint32_t* const* a, const uint32_t* const* b,
             const uint32_t* const* c, int steps) {
  alignas(32) float rows[16][16];
  __m256 columns[16];
  for (int step = 0; step < steps; ++step) {
    for (int half = 0; half < 2; ++half) {
      const uint32_t* reg = a[step * 2 + half];
      for (int r = 0; r < 8; ++r) {
        const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(reg + r * 4));
        _mm256_store_ps(&rows[half * 8 + r][step * 8], _mm256_cvtph_ps(row));
      }
    }
    __m128i m[8];
    for (int n = 0; n < 8; ++n) {
      m[n] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b[step] + n * 4));
    }
    transpose(m);
    for (int k = 0; k < 8; ++k) columns[step * 8 + k] = _mm256_cvtph_ps(m[k]);
  }
  const int depth = steps * 8;
  const __m256 canonical = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256i even_odd = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  for (int half = 0; half < 2; ++half) {
    for (int r0 = 0; r0 < 8; r0 += 4) {
      // Four rows at a time hide the latency of the chain.
      __m256 sum[4];
      for (int r = 0; r < 4; ++r) {
        const __m128 lo = _mm_loadu_ps(reinterpret_cast<const float*>(c[half * 2]) + (r0 + r) * 4);
        const __m128 hi =
            _mm_loadu_ps(reinterpret_cast<const float*>(c[half * 2 + 1]) + (r0 + r) * 4);
        sum[r] = _mm256_set_m128(_mm_unpackhi_ps(lo, hi), _mm_unpacklo_ps(lo, hi));
      }
      for (int k = 0; k < depth; ++k) {
        for (int r = 0; r < 4; ++r) {
          sum[r] =
              _mm256_fmadd_ps(_mm256_broadcast_ss(&rows[half * 8 + r0 + r][k]), columns[k], sum[r]);
        }
      }
      for (int r = 0; r < 4; ++r) {
        const __m256 nan = _mm256_cmp_ps(sum[r], sum[r], _CMP_UNORD_Q);
        const __m256 value = _mm256_blendv_ps(sum[r], canonical, nan);
        const __m256 split = _mm256_permutevar8x32_ps(value, even_odd);
        _mm_storeu_ps(reinterpret_cast<float*>(d[half * 2]) + (r0 + r) * 4,
                      _mm256_castps256_ps128(split));
        _mm_storeu_ps(reinterpret_cast<float*>(d[half * 2 + 1]) + (r0 + r) * 4,
                      _mm256_extractf128_ps(split, 1));
      }
    }
  }
}

void convert_bfloat(float* out, const uint32_t* in) {
  for (int i = 0; i < 32; ++i) {
    const uint32_t low = in[i] << 16, high = in[i] & 0xffff0000u;
    __builtin_memcpy(out + 2 * i, &low, 4);
    __builtin_memcpy(out + 2 * i + 1, &high, 4);
  }
}

// A product of bf16 may be subnormal and inexact: it is rounded before it is added.
void mma_bf16(uint32_t* const* d, const uint32_t* const* a, const uint32_t* const* b,
              const uint32_t* const* c, int steps) {
  Tile t;
  load_operands(t, a, b, steps, convert_bfloat);
  load_accumulators(t, c);
  for (int r = 0; r < 16; ++r) {
    __m256 sum = _mm256_loadu_ps(t.c[r]);
    for (int k = 0; k < steps * 8; ++k) {
      sum = _mm256_add_ps(sum,
                          _mm256_mul_ps(_mm256_broadcast_ss(&t.a[r][k]), _mm256_loadu_ps(t.b[k])));
    }
    _mm256_storeu_ps(t.c[r], sum);
  }
  store_accumulators(t, d);
}

void add_products(float* sums, const float* a, const float* b, int rows, int depth) {
  for (int r = 0; r < rows; r += 64) {
    __m256 sum[8];
    for (int i = 0; i < 8; ++i) sum[i] = _mm256_loadu_ps(sums + r + i * 8);
    for (int k = 0; k < depth; ++k) {
      const __m256 x = _mm256_broadcast_ss(b + k);
      for (int i = 0; i < 8; ++i) {
        const __m256 product = _mm256_mul_ps(_mm256_loadu_ps(a + k * 128 + r + i * 8), x);
        sum[i] = _mm256_add_ps(sum[i], product);
      }
    }
    for (int i = 0; i < 8; ++i) _mm256_storeu_ps(sums + r + i * 8, sum[i]);
  }
}

void fma32(float* d, const float* a, const float* b, const float* c) {
  for (int i = 0; i < 32; i += 8) {
    _mm256_storeu_ps(d + i, _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i),
                                            _mm256_loadu_ps(c + i)));
  }
}

}  // namespace

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels{mma_f16, mma_bf16, add_products, fma32};

}  // namespace ptxvm::num
