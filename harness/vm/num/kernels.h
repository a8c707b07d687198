// SPDX-License-Identifier: MIT
// Inner loops that are built twice: for any x86-64 (or other) processor, and with AVX2, FMA and
// F16C. Both give the same bits. The file that implements them includes nothing whose inline
// functions could leak instructions of the wrong kind into the rest of the program.
#pragma once

#include <stdint.h>

namespace ptxvm::num {

struct Kernels {
  /// D = A * B + C for one m16n8 tile, f32 accumulators; `a`, `b`, `c`, `d` are the registers of
  /// the fragments, 32 lanes each (PTX ISA 9.7.14.5). `steps` is k/8. d may be c. Products are
  /// added one by one in the order of k, each sum rounded to nearest.
  void (*mma_f16)(uint32_t* const* d, const uint32_t* const* a, const uint32_t* const* b,
                  const uint32_t* const* c, int steps);
  void (*mma_bf16)(uint32_t* const* d, const uint32_t* const* a, const uint32_t* const* b,
                   const uint32_t* const* c, int steps);
  /// sums[r] += a[128 k + r] * b[k] for `depth` values of k, in their order; products and sums are
  /// rounded to nearest. `rows` is 64 or 128.
  void (*add_products)(float* sums, const float* a, const float* b, int rows, int depth);
  /// d[i] = a[i] * b[i] + c[i] with one rounding, 32 lanes, no conventions applied.
  void (*fma32)(float* d, const float* a, const float* b, const float* c);
};

/// The best set for this processor, or the portable one.
const Kernels& kernels(bool portable);

}  // namespace ptxvm::num
