// SPDX-License-Identifier: MIT
// The loops that every card from compute capability 8.0 on runs. All loads and exponentials are
// volatile: the compiler may neither hoist nor drop what is to be timed.
#include <cuda_fp16.h>

#include <cstdint>

#include "harness/measure/limits/kernels.h"
#include "harness/measure/limits/loops.h"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared.cuh"

namespace {

using namespace fa::limits;

constexpr int kThreads = 256;
constexpr int kSharedThreads = 512;
constexpr int kSharedRow = kSharedThreads * 16;  // bytes that the block loads at once
constexpr int kInFlight = 8;                     // loads of a thread before it uses one
static_assert(kChunk == kThreads * kInFlight);

__device__ float ex2_volatile(float x) {
  float y;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// A volatile load, for ptxas too: it moves others out of the loop.
__device__ uint4 load_shared(uint32_t address) {
  uint4 v;
  asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

/// From L2, past the SM's own cache.
struct FromL2 {
  __device__ static uint4 load(const uint4* pointer) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(pointer)));
    return v;
  }
};

/// What is read once.
struct FromMemory {
  __device__ static uint4 load(const uint4* pointer) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(pointer)));
    return v;
  }
};

/// The two halves of a word, as floats.
__device__ float2 as_floats(uint32_t word) {
  return __half22float2(reinterpret_cast<const half2&>(word));
}

/// Where a thread's results go.
template <class Word>
__device__ Word* own_words(void* output, int words) {
  return static_cast<Word*>(output) + (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * words;
}

/// Calls use(v) with every word of the buffer, which the grid shares; a thread block begins at
/// another chunk in every iteration.
template <class From, class Use>
__device__ void for_each_word(const uint4* input, int64_t count, int iteration, Use use) {
  const int chunks = static_cast<int>(count / kChunk), shift = iteration % chunks;
  for (int c = blockIdx.x; c < chunks; c += gridDim.x) {
    const int chunk = c + shift < chunks ? c + shift : c + shift - chunks;
    const int64_t first = chunk * kChunk + threadIdx.x;
    uint4 v[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) v[j] = From::load(input + first + j * kThreads);
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) use(first + j * kThreads, v[j]);
  }
}

template <class From>
__device__ void read_loop(const uint4* input, uint32_t* output, int64_t count, int iterations) {
  uint32_t sum = 0;
#pragma unroll 1
  for (int i = 0; i < iterations; ++i)
    for_each_word<From>(input, count, i,
                        [&](int64_t, const uint4& v) { sum += v.x + v.y + v.z + v.w; });
  *own_words<uint32_t>(output, 1) = sum;
}

/// Fills shared memory with rows of the operands; returns its address.
__device__ uint32_t fill_rows(uint4* shared, const uint4* input) {
  for (int i = static_cast<int>(threadIdx.x); i < 2 * kSharedLoads * kSharedThreads;
       i += kSharedThreads)
    shared[i] = input[i];
  __syncthreads();
  return shared_address(shared);
}

}  // namespace

#define LOOP(name, block, shared_bytes)                                                          \
  const fa::limits::Kernel fa::limits::kernel_##name{reinterpret_cast<const void*>(name), block, \
                                                     shared_bytes};

// Each warp: two 16-row tiles of A under eight 8-column tiles of B, all in registers.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    limit_mma_sync(const uint32_t* input, float* output, int64_t, int iterations) {
  constexpr int kRow = kSide / 2;  // words
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  uint32_t a[2][4], b[kMmaTiles][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    const uint32_t* const row = input + (warp % 4 * 32 + m * 16 + lane / 4) * kRow + lane % 4;
    a[m][0] = row[0], a[m][1] = row[8 * kRow], a[m][2] = row[4], a[m][3] = row[8 * kRow + 4];
  }
#pragma unroll
  for (int n = 0; n < kMmaTiles; ++n) {
    const uint32_t* const row = input + (kSide + n * 8 + lane / 4) * kRow + lane % 4;
    b[n][0] = row[0], b[n][1] = row[4];
  }
  float d[2][kMmaTiles][4] = {};
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
    if (i % kRestart == 0) {  // keeps the sums in the range of the products
#pragma unroll
      for (int j = 0; j < 2 * kMmaTiles * 4; ++j)
        d[j / (kMmaTiles * 4)][j / 4 % kMmaTiles][j % 4] *= 1.F / kRestart;
    }
#pragma unroll
    for (int n = 0; n < kMmaTiles; ++n)
#pragma unroll
      for (int m = 0; m < 2; ++m) mma_m16n8k16(d[m][n], a[m], b[n][0], b[n][1]);
  }
  float* const own = own_words<float>(output, 2 * kMmaTiles * 4);
#pragma unroll
  for (int j = 0; j < 2 * kMmaTiles * 4; ++j)
    own[j] = d[j / (kMmaTiles * 4)][j / 4 % kMmaTiles][j % 4];
}
LOOP(limit_mma_sync, kThreads, 0)

// Each exponential needs the one before: ptxas computes one that does not change before the loop,
// volatile or not.
extern "C" __global__ void __launch_bounds__(kThreads, 4)
    limit_ex2(const uint32_t* input, float* output, int64_t, int iterations) {
  float x[kExponents];
#pragma unroll
  for (int j = 0; j < kExponents; ++j) x[j] = as_floats(input[threadIdx.x * kExponents + j]).x;
#pragma unroll 4
  for (int i = 0; i < iterations; ++i)
#pragma unroll
    for (int j = 0; j < kExponents; ++j) x[j] = ex2_volatile(-x[j]);
  float* const own = own_words<float>(output, kExponents);
#pragma unroll
  for (int j = 0; j < kExponents; ++j) own[j] = x[j];
}
LOOP(limit_ex2, kThreads, 0)

// Points on circles: the values never settle, as they would in x = a x + b.
extern "C" __global__ void __launch_bounds__(kThreads, 4)
    limit_fma(const uint32_t* input, float2* output, int64_t, int iterations) {
  float2 point[kPairs];
#pragma unroll
  for (int j = 0; j < kPairs; ++j) point[j] = as_floats(input[threadIdx.x * kPairs + j]);
#pragma unroll 4
  for (int i = 0; i < iterations; ++i)
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      point[j].x = fmaf(kTurn, point[j].y, point[j].x);
      point[j].y = fmaf(-kTurn, point[j].x, point[j].y);
    }
  float2* const own = own_words<float2>(output, kPairs);
#pragma unroll
  for (int j = 0; j < kPairs; ++j) own[j] = point[j];
}
LOOP(limit_fma, kThreads, 0)

// Neighbouring threads read neighbouring 16 bytes; two halves of the rows take turns.
extern "C" __global__ void __launch_bounds__(kSharedThreads, 2)
    limit_shared_load(const uint4* input, uint4* output, int64_t, int iterations) {
  extern __shared__ uint4 rows[];
  const uint32_t own = fill_rows(rows, input) + threadIdx.x * 16;
  uint4 sum = {};
#pragma unroll 2
  for (int i = 0; i < iterations; ++i) {
    const uint32_t first = own + i % 2 * (kSharedLoads * kSharedRow);
#pragma unroll
    for (int j = 0; j < kSharedLoads; ++j) {
      const uint4 v = load_shared(first + j * kSharedRow);
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
  }
  *own_words<uint4>(output, 1) = sum;
}
LOOP(limit_shared_load, kSharedThreads, 2 * kSharedLoads * kSharedRow)

// The same bytes through ldmatrix.
extern "C" __global__ void __launch_bounds__(kSharedThreads, 2)
    limit_ldmatrix(const uint4* input, uint4* output, int64_t, int iterations) {
  extern __shared__ uint4 rows[];
  const uint32_t own = fill_rows(rows, input) + threadIdx.x * 16;
  uint4 sum = {};
#pragma unroll 2
  for (int i = 0; i < iterations; ++i) {
    const uint32_t first = own + i % 2 * (kSharedLoads * kSharedRow);
#pragma unroll
    for (int j = 0; j < kSharedLoads; ++j) {
      uint32_t v[4];
      ldmatrix_x4(v, first + j * kSharedRow);
      sum.x += v[0], sum.y += v[1], sum.z += v[2], sum.w += v[3];
    }
  }
  *own_words<uint4>(output, 1) = sum;
}
LOOP(limit_ldmatrix, kSharedThreads, 2 * kSharedLoads * kSharedRow)

extern "C" __global__ void __launch_bounds__(kThreads, 6)
    limit_l2_read(const uint4* input, uint32_t* output, int64_t count, int iterations) {
  read_loop<FromL2>(input, output, count, iterations);
}
LOOP(limit_l2_read, kThreads, 0)

extern "C" __global__ void __launch_bounds__(kThreads, 6)
    limit_memory_read(const uint4* input, uint32_t* output, int64_t count, int iterations) {
  read_loop<FromMemory>(input, output, count, iterations);
}
LOOP(limit_memory_read, kThreads, 0)

// Five thread blocks, not six, so that all loads of a thread have registers before its first store.
extern "C" __global__ void __launch_bounds__(kThreads, 5)
    limit_memory_copy(const uint4* input, uint4* output, int64_t count, int iterations) {
#pragma unroll 1
  for (int i = 0; i < iterations; ++i)
    for_each_word<FromMemory>(input, count, i, [&](int64_t at, const uint4& v) {
      asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                       __cvta_generic_to_global(output + at)),
                   "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                   : "memory");
    });
}
LOOP(limit_memory_copy, kThreads, 0)
