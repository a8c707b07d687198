// What the compiler makes of ordinary mathematics: divisions, roots, exponentials, local arrays.
#include <cuda_fp16.h>

extern "C" __global__ void mathematics(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  float stack[8];
  for (int k = 0; k < 8; ++k) stack[k] = x * static_cast<float>(k);
  float* o = out + i * 16;
  o[0] = expf(x);
  o[1] = logf(x + 10.0f);
  o[2] = sinf(x);
  o[3] = x / (x * x + 1.0f);
  o[4] = sqrtf(x * x + 2.0f);
  o[5] = rsqrtf(x * x + 2.0f);
  o[6] = stack[i % 8];
  o[7] = static_cast<float>(i % 7) + static_cast<float>(i / 5);
  o[8] = __half2float(__hfma(__float2half(x), __float2half(0.5f), __float2half(1.0f)));
  o[9] = static_cast<float>(sqrt(static_cast<double>(x) * x + 1.0));
  o[10] = powf(x * x + 0.5f, 1.5f);
  o[11] = tanhf(x);
  o[12] = floorf(x) + ceilf(x) + rintf(x) + truncf(x);
  o[13] = fminf(x, 0.25f) + fmaxf(x, -0.25f);
  o[14] = static_cast<float>((static_cast<long long>(i) * 1000000007LL) % 97);
  o[15] = __int_as_float(__float_as_int(x) ^ 0x80000000);
}

// Quotient and remainder of the numbers (a, b) and (c, d), high words first.
extern "C" __global__ void divide(const unsigned long long* in, unsigned long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long* x = in + i * 4;
  const unsigned __int128 one = static_cast<unsigned __int128>(x[0]) << 64 | x[1];
  const unsigned __int128 two = static_cast<unsigned __int128>(x[2]) << 64 | x[3];
  const unsigned __int128 results[2] = {one / two, one % two};
  for (int k = 0; k < 2; ++k) {
    out[i * 4 + 2 * k] = static_cast<unsigned long long>(results[k] >> 64);
    out[i * 4 + 2 * k + 1] = static_cast<unsigned long long>(results[k]);
  }
}
