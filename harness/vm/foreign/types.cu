// SPDX-License-Identifier: MIT
// Kernels with the number types and the parts of C++ that people use beside float: wide integers,
// pairs of halves, 8 to 4 bits, random numbers, double functions, virtual functions, a heap.
// toolkit_cases.py says how they are launched and what is right.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <curand_kernel.h>

using Wide = unsigned __int128;

// Words: high and low of a, of b; then of six results.
extern "C" __global__ void wide_integers(const unsigned long long* in, unsigned long long* out) {
  const int i = threadIdx.x;
  const Wide a = Wide(in[4 * i]) << 64 | in[4 * i + 1],
             b = Wide(in[4 * i + 2]) << 64 | in[4 * i + 3];
  const auto negative = static_cast<__int128>(a);
  const Wide results[6] = {a * b,
                           a / b,
                           a % b,
                           (a << int(b & 127)) ^ (a >> int(b & 63)),
                           Wide(negative / static_cast<__int128>(b >> 3)),
                           Wide(negative >> int(b & 127))};
  for (int k = 0; k < 6; ++k) {
    out[i * 12 + 2 * k] = results[k] >> 64;
    out[i * 12 + 2 * k + 1] = results[k];
  }
}

extern "C" __global__ void half_pairs(const __half2* a, const __half2* b, __half2* out,
                                      __nv_bfloat162* wide) {
  const int i = threadIdx.x;
  const __half2 x = a[i], y = b[i];
  __half2* mine = out + 6 * i;
  mine[0] = __hfma2(x, y, __hadd2(x, y));
  mine[1] = __h2div(x, y);
  mine[2] = h2exp2(x);
  mine[3] = __hfma2_relu(x, y, x);
  mine[4] = h2sqrt(__habs2(x));
  mine[5] = __lowhigh2highlow(__hmax2_nan(x, y));
  const __nv_bfloat162 p = __float22bfloat162_rn(__half22float2(x));
  wide[2 * i] = __hmul2(p, p);
  wide[2 * i + 1] = __hmin2(h2exp(p), p);
}

extern "C" __global__ void small_floats(const float4* in, float* out) {
  const int i = threadIdx.x;
  const float4 x = in[i];
  const auto first = static_cast<float4>(__nv_fp8x4_e4m3(x));
  const auto second = static_cast<float4>(__nv_fp8x4_e5m2(x));
  float* mine = out + 8 * i;
  mine[0] = first.x, mine[1] = first.w;
  mine[2] = second.x, mine[3] = second.w;
  mine[4] = static_cast<float>(__nv_fp8_e4m3(__float2half(x.y)));
  mine[5] = static_cast<float>(__nv_fp4_e2m1(x.x));
  mine[6] = static_cast<float>(__nv_fp6_e3m2(x.y));
  mine[7] = static_cast<float>(__nv_fp6_e2m3(x.z));
}

extern "C" __global__ void random_numbers(uint4* words, float* uniform, double* normal) {
  const int i = threadIdx.x;
  curandStatePhilox4_32_10_t philox;
  curand_init(1234, i, 0, &philox);
  words[i] = curand4(&philox);
  curandState xorwow;
  curand_init(99, 0, i, &xorwow);
  uniform[i] = curand_uniform(&xorwow);
  normal[i] = curand_normal_double(&philox);
}

extern "C" __global__ void double_functions(const double* in, double* out) {
  const double x = in[threadIdx.x];
  double* mine = out + 10 * threadIdx.x;
  mine[0] = erf(x), mine[1] = lgamma(x), mine[2] = cbrt(x), mine[3] = hypot(x, 2.0);
  mine[4] = atan2(x, 1.5), mine[5] = expm1(x), mine[6] = log1p(fabs(x)), mine[7] = sinh(x);
  mine[8] = remainder(x, 0.3), mine[9] = fmod(x, 0.7);
}

struct Sides {
  float a, b;
  double weights[2];
  char name;
};
__constant__ Sides sides[3] = {
    {1.5f, 2, {3, 4}, 'a'}, {2.5f, 1, {5, 6}, 'b'}, {4, .5f, {7, 8}, 'c'}};

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual float area(const Sides& s) const = 0;
};
struct Rectangle : Shape {
  __device__ float area(const Sides& s) const override { return s.a * s.b; }
};
struct Triangle : Shape {
  float part;
  explicit __device__ Triangle(float p) : part(p) {}
  __device__ float area(const Sides& s) const override { return s.a * s.b * part; }
};

extern "C" __global__ void shapes(float* out) {
  const int i = threadIdx.x;
  const Shape* shape = i % 2 ? static_cast<Shape*>(new Rectangle) : new Triangle(0.5f);
  const Sides &mine = sides[i % 3], &next = sides[(i + 1) % 3];
  out[i] = shape->area(mine) + static_cast<float>(next.weights[i & 1]) + mine.name;
  delete shape;
}

// The sum of a block's values, times the number of the block in a grid of three dimensions.
template <class T>
__device__ T sum_of_block(const T* in) {
  extern __shared__ __align__(16) char storage[];
  T* const values = reinterpret_cast<T*>(storage);
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  const int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  values[i] = in[i];
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (i < half) values[i] += values[i + half];
    __syncthreads();
  }
  return values[0];
}

extern "C" __global__ void grid_of_three(const double* in, double* out) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const double sum = sum_of_block(in);
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) out[block] = sum * block;
}
