// SPDX-License-Identifier: MIT
// Floats of 4 and 6 bits and exponents of 8, converted by instructions of sm_100a and by the host's
// functions of CUDA's headers.
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstring>

struct Results {
  __nv_fp4x2_storage_t e2m1;
  __nv_fp6x2_storage_t e2m3, e3m2;
  __nv_fp8x2_storage_t up, down, infinite;
  __half2_raw from_e2m1, from_e3m2;
  __nv_bfloat162_raw from_exponent;
};

__host__ __device__ void convert(float2 x, unsigned bits, Results& out) {
  const auto two = static_cast<unsigned short>(bits);
  out.e2m1 = __nv_cvt_float2_to_fp4x2(x, __NV_E2M1, cudaRoundNearest);
  out.e2m3 = __nv_cvt_float2_to_fp6x2(x, __NV_E2M3, cudaRoundNearest);
  out.e3m2 = __nv_cvt_float2_to_fp6x2(x, __NV_E3M2, cudaRoundNearest);
  out.up = __nv_cvt_float2_to_e8m0x2(x, __NV_SATFINITE, cudaRoundPosInf);
  out.down = __nv_cvt_float2_to_e8m0x2(x, __NV_SATFINITE, cudaRoundZero);
  out.infinite = __nv_cvt_float2_to_e8m0x2(x, __NV_NOSAT, cudaRoundPosInf);
  out.from_e2m1 = __nv_cvt_fp4x2_to_halfraw2(static_cast<unsigned char>(bits), __NV_E2M1);
  out.from_e3m2 = __nv_cvt_fp6x2_to_halfraw2(two & 0x3f3f, __NV_E3M2);
  out.from_exponent = __nv_cvt_e8m0x2_to_bf162raw(two);
}

__global__ void convert_all(const float2* x, Results* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  convert(x[i], i, out[i]);
}

int main() {
  constexpr unsigned kCount = 65536;
  float2* x;
  Results* out;
  if (cudaMallocManaged(&x, kCount * sizeof *x)) return 2;
  if (cudaMallocManaged(&out, kCount * sizeof *out)) return 2;
  std::memset(out, 0, kCount * sizeof *out);
  for (unsigned i = 0; i < kCount; ++i) {  // steps around 0, and bits that look random
    const unsigned bits = i * 2654435761u;
    x[i].x = (static_cast<float>(i) - 32768) / 2048;
    std::memcpy(&x[i].y, &bits, sizeof bits);
  }
  x[0] = {NAN, -NAN};
  x[1] = {INFINITY, -INFINITY};
  x[2] = {0x1p-127f, 0x1.8p-127f};
  convert_all<<<kCount / 128, 128>>>(x, out);
  if (cudaDeviceSynchronize()) return 2;
  for (unsigned i = 0; i < kCount; ++i) {
    Results right;
    std::memset(&right, 0, sizeof right);
    convert(x[i], i, right);
    if (std::memcmp(&right, &out[i], sizeof right) != 0) return 1;
  }
}
