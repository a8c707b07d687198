// SPDX-License-Identifier: MIT
// Kernels that call: functions of their own, through pointers, printf, assert, malloc and free; and
// double-precision functions, which nvcc inlines.
#include <cassert>
#include <cmath>
#include <cstdio>

__device__ int counter = 5;
__constant__ float weights[4] = {1, 2, 3, 4};

struct Pair {
  double first;
  int second;
};

__device__ __noinline__ Pair swap_and_scale(Pair p, int factor) {
  return {static_cast<double>(p.second * factor), static_cast<int>(p.first) * factor};
}

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

// Each activation hands a pointer into its own frame to the next one.
__device__ __noinline__ int sum_of_frames(int depth, const int* outer) {
  int mine[4] = {depth, *outer, depth * 2, 1};
  if (depth == 0) return mine[1];
  return mine[0] + sum_of_frames(depth - 1, &mine[depth & 3]);
}

__device__ __noinline__ int twice(int x) {
  return 2 * x;
}
__device__ __noinline__ int square(int x) {
  return x * x;
}
__device__ __noinline__ int negative(int x) {
  return -x;
}
using Function = int (*)(int);
__device__ Function table[3] = {twice, square, negative};

extern "C" __global__ void structs(double* out) {
  const int i = static_cast<int>(threadIdx.x);
  const Pair p = swap_and_scale({i + 0.5, i * 10}, 3);
  out[i] = p.first + p.second * 0.001;
}

extern "C" __global__ void recursion(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  int outer = 100 + i;
  // Lanes call at different depths, some not at all, and meet again.
  int r = -1;
  if (i % 3 != 0) r = fibonacci(i % 11);
  out[i] = r;
  out[32 + i] = sum_of_frames(i % 5, &outer);
  out[64 + i] = __shfl_xor_sync(0xffffffff, r, 1);
}

extern "C" __global__ void too_deep(int* out) {
  out[0] = fibonacci(1 << 20);
}

extern "C" __global__ void pointers(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = table[i % 3](i);
}

extern "C" __global__ void prints(const char* name) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < 2)
    printf("block %d lane %u: %5.2f %s|%-4d|%lld %c %x%%\n", static_cast<int>(blockIdx.x), i,
           i * 1.5, "text", 7, 1ll << 40, 'z', 255);
}

extern "C" __global__ void asserts(int limit) {
  assert(static_cast<int>(threadIdx.x) < limit);
}

extern "C" __global__ void heap(int* out, int wrong) {
  const int i = static_cast<int>(threadIdx.x);
  int* mine = static_cast<int*>(malloc(sizeof(int) * (i + 1)));
  for (int k = 0; k <= i; ++k) mine[k] = k * i;
  int sum = 0;
  for (int k = 0; k <= i + wrong; ++k) sum += mine[k];
  free(mine);
  out[i] = sum;
}

extern "C" __global__ void variables(float* out) {
  out[threadIdx.x] = weights[threadIdx.x % 4] + static_cast<float>(counter);
  if (threadIdx.x == 0) counter += 1;
}

extern "C" __global__ void doubles(const double* x, double* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const double v = x[i], magnitude = fabs(v) + 0.001;
  double* o = out + static_cast<ptrdiff_t>(i) * 8;
  o[0] = sin(v);
  o[1] = cos(v);
  o[2] = pow(magnitude, 1.7);
  o[3] = log(magnitude);
  o[4] = exp(v * 0.005);
  o[5] = rsqrt(magnitude);
  o[6] = cbrt(v);
  o[7] = tanh(v);
}
