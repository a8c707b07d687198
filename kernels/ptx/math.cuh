// Special-function instructions.
#pragma once

constexpr float kLn2 = 0.6931471805599453f, kLog2E = 1.4426950408889634f;

/// 2^x on the special-function unit, denormals flushed; ex2(-inf) = 0. PTX ISA: "ex2".
__device__ __forceinline__ float ex2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// e^x the way __expf computes it: a multiplication by log2(e), then ex2.
__device__ __forceinline__ float exp_approx(float x) {
  return ex2_approx(x * kLog2E);
}
