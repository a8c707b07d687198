// SPDX-License-Identifier: MIT
// The wgmma loops: two warpgroups, one thread block per SM, as the attention kernels from 22 on
// run.
#include <cuda_fp16.h>

#include <cstdint>

#include "harness/measure/limits/kernels.h"
#include "harness/measure/limits/loops.h"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace {

using namespace fa::limits;

constexpr int kThreads = 256;
constexpr int kPanelBytes = kSide * 128;  // 64 columns
constexpr int kTileBytes = 2 * kPanelBytes;
constexpr int kSteps = kSide / 16;  // k steps of a product
constexpr int kAlign = 1024;

/// A tile of 128 x 128 halves as the TMA would write it: panels of 64 columns, 128-byte swizzle.
__device__ void fill_tile(unsigned char* tile, const uint4* source) {
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kSide / 8; i += kThreads) {
    const int row = i / 16, chunk = i % 16;
    unsigned char* const panel = tile + chunk / 8 * kPanelBytes;
    *reinterpret_cast<uint4*>(panel + row * 128 + ((chunk % 8 ^ row % 8) << 4)) = source[i];
  }
}

/// Rows 16w.. of `source`, of 128 halves each, as A operands of warp w of a warpgroup.
__device__ void load_fragments(uint32_t (&a)[kSteps][4], const uint32_t* source) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const uint32_t* const row = source + (thread / 32 * 16 + lane / 4) * (kSide / 2) + lane % 4;
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    a[k][0] = row[k * 8];
    a[k][1] = row[k * 8 + 8 * kSide / 2];
    a[k][2] = row[k * 8 + 4];
    a[k][3] = row[k * 8 + 4 + 8 * kSide / 2];
  }
}

/// The operands, one tile after the other: Q, P, K of both stages, V of both stages. Each warpgroup
/// has 64 rows of Q and P. S = Q K^T; with Mix also O += P V. Q is A operand from shared memory or
/// from registers, P always from registers.
template <bool FromShared, bool Mix>
__device__ void wgmma_loop(const uint4* input, float* output, int iterations) {
  extern __shared__ unsigned char raw[];
  unsigned char* const shared =
      raw + (kAlign - shared_address(raw) % kAlign) % kAlign;  // where the swizzle begins
  constexpr int kWords = kTileBytes / 16;
  for (int i = 0; i < kStages * (1 + Mix); ++i)
    fill_tile(shared + i * kTileBytes, input + (2 + i) * kWords);
  unsigned char* const queries = shared + kStages * (1 + Mix) * kTileBytes;
  if (FromShared) fill_tile(queries, input);
  // wgmma reads what ordinary stores have written.
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();

  // The shuffle tells the compiler that all lanes agree: descriptors stay in uniform registers.
  const int group = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 128, 0);
  uint32_t q[kSteps][4], p[kSteps][4];
  const auto* const words = reinterpret_cast<const uint32_t*>(input);
  if (!FromShared) load_fragments(q, words + group * 64 * kSide / 2);
  if (Mix) load_fragments(p, words + kTileBytes / 4 + group * 64 * kSide / 2);
  const uint64_t query = wgmma_descriptor(shared_address(queries) + group * 64 * 128, kPanelBytes);
  const uint64_t key = wgmma_descriptor(shared_address(shared), kPanelBytes);
  const uint64_t value = key + (kStages * kTileBytes >> 4);

  float S[kSide / 2] = {}, O[kSide / 2] = {};
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
    const uint64_t stage = i % kStages * (kTileBytes >> 4);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const uint64_t step = k / 4 * (kPanelBytes >> 4) + k % 4 * 2;
      if constexpr (FromShared) {
        wgmma(S, query + step, key + stage + step, k > 0);
      } else {
        wgmma(S, q[k], key + stage + step, k > 0);
      }
    }
    wgmma_commit();
    if constexpr (Mix) {
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
        wgmma_transposed(O, p[k], value + stage + k * 128, k > 0 || i % kRestart > 0);
      wgmma_commit();
    }
    wgmma_wait<1>(S);
  }
  wgmma_wait<0>(S, O);

  constexpr int kResults = kSide / 2 * (1 + Mix);
  float* const own = output + (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kResults;
#pragma unroll
  for (int i = 0; i < kSide / 2; ++i) {
    own[i] = S[i];
    if (Mix) own[kSide / 2 + i] = O[i];
  }
}

}  // namespace

#define WGMMA_LOOP(name, from_shared, mix)                               \
  extern "C" __global__ void __launch_bounds__(kThreads, 1)              \
      name(const uint4* input, float* output, int64_t, int iterations) { \
    wgmma_loop<from_shared, mix>(input, output, iterations);             \
  }                                                                      \
  const fa::limits::Kernel fa::limits::kernel_##name{                    \
      reinterpret_cast<const void*>(name), kThreads,                     \
      static_cast<std::size_t>(kStages * (1 + (mix)) + (from_shared)) * kTileBytes + kAlign};

WGMMA_LOOP(limit_wgmma_registers, false, false)
WGMMA_LOOP(limit_wgmma_shared, true, false)
WGMMA_LOOP(limit_attention_registers, false, true)
WGMMA_LOOP(limit_attention_shared, true, true)
