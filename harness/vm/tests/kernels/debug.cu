// SPDX-License-Identifier: MIT
// Compiled with -G and -rdc=true: code as a debugger wants it, where every value goes through local
// memory, every function is called, and sections of debug information follow the text.
#include <cassert>
#include <cstdio>

namespace {

struct Shape {
  float size;
  __device__ explicit Shape(float s) : size(s) {}
  __device__ virtual float area() const { return 0; }
};
struct Square : Shape {
  using Shape::Shape;
  __device__ float area() const override { return size * size; }
};
struct Triangle : Shape {
  using Shape::Shape;
  __device__ float area() const override { return size * size / 2; }
};

struct Padded {
  double weights[3];
  int count;  // four bytes of padding follow
};

__device__ float half(float x) {
  return x / 2;
}
__device__ float twice(float x) {
  return 2 * x;
}

}  // namespace

template <class T>
__device__ T sum(const T* values, int n) {
  T s = 0;
  for (int i = 0; i < n; ++i) s += values[i];
  return s;
}

__device__ Padded make_padded(int n) {
  Padded p;
  p.count = n;
  for (int i = 0; i < 3; ++i) p.weights[i] = n * i;
  return p;
}

__device__ double use_padded(Padded p) {
  return p.count + sum(p.weights, 3);
}

__device__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__constant__ int table[4] = {10, 20, 30, 40};
__device__ int visits = 0;

// float area, half or twice of it, a padded struct through two calls, and more; in double.
extern "C" __global__ void debug(double* out) {
  const int i = static_cast<int>(threadIdx.x);
  assert(i < 32);
  const Square square(static_cast<float>(i));
  const Triangle triangle(static_cast<float>(i));
  const Shape* shape = i % 2 ? static_cast<const Shape*>(&square) : &triangle;
  float (*function)(float) = i % 3 ? half : twice;
  const Padded padded = make_padded(i);
  atomicAdd(&visits, 1);
  out[i] = function(shape->area()) + use_padded(padded) + fibonacci(i % 8) + table[i % 4];
}

extern "C" __global__ void debug_reduce(const float* in, float* out) {
  __shared__ float parts[4];
  float s = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffff, s, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    *out = sum(parts, 4);
    printf("%d threads visit\n", static_cast<int>(blockDim.x));
  }
}

namespace {

struct Empty {};

struct Packed {
  unsigned kind : 1, rank : 7, rest : 24;
  __device__ explicit Packed(unsigned k) {
    kind = k;
    rank = k + 1;
  }
};

template <class T>
__device__ T copy(T value) {
  return value;
}

}  // namespace

// Copies of what has no value: an empty object, and a word of bit-fields of which some are set.
extern "C" __global__ void debug_copies(unsigned* out) {
  const Empty empty = copy(Empty());
  const Packed packed = copy(Packed(threadIdx.x & 1));
  out[threadIdx.x] = packed.kind + 10 * packed.rank + 0 * sizeof(empty);
}

// A mistake: what has no value goes to where others see it.
extern "C" __global__ void debug_mistake(unsigned* out) {
  unsigned values[4];
  values[threadIdx.x & 1] = 5;
  out[threadIdx.x] = values[threadIdx.x & 3];
}
