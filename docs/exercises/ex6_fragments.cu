// Exercise 6: who holds which element of a tensor-core tile.
// A warp computes 16 query rows with mma.sync and reads its operands straight from global memory.
// See docs/exercises.md.

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/rung.h"

namespace {

constexpr int kKeys = 16;  // keys of a step

struct Fragments : fa::StaticKernel<64, kKeys, 4, 64> {
  // Your code: begin. mma.m16n8k16 multiplies A, 16 rows x 16 k, by B, 16 k x 8 columns. A register
  // holds two halves at adjacent k; these functions say where the first of them is. As shipped they
  // are right for register i = 0 alone.
  __device__ static int a_row(int lane, int) { return lane / 4; }
  __device__ static int a_k(int lane, int) { return lane % 4 * 2; }
  __device__ static int b_k(int lane, int) { return lane % 4 * 2; }
  __device__ static int b_column(int lane) { return lane / 4; }
  // Your code: end.

  // Two adjacent halves.
  __device__ static uint32_t load_pair(const half* at) {
    return *reinterpret_cast<const uint32_t*>(at);
  }
  // One half of each of two rows.
  __device__ static uint32_t load_column(const half* at) {
    const half2 both{at[0], at[kHeadDim]};
    return reinterpret_cast<const uint32_t&>(both);
  }

  // S = Q K^T: `q` and `k` are at the first row and the first key.
  __device__ static void multiply_qk(float (&S)[kKeys / 8][4], const half* q, const half* k) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 0; d < kHeadDim; d += 16) {
      uint32_t a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = load_pair(q + a_row(lane, i) * kHeadDim + d + a_k(lane, i));
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        const half* const key = k + (n * 8 + b_column(lane)) * kHeadDim + d;
        mma_m16n8k16(S[n], a, load_pair(key + b_k(lane, 0)), load_pair(key + b_k(lane, 1)));
      }
    }
  }

  __device__ static uint32_t pack(float low, float high) {
    const half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const uint32_t&>(both);
  }

  // Online softmax of the rows lane / 4 and lane / 4 + 8 of the warp's 16: S becomes P.
  __device__ static void softmax(float (&S)[kKeys / 8][4], float (&O)[kHeadDim / 8][4],
                                 float (&max)[2], float (&sum)[2], float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
        largest = fmaxf(largest, fmaxf(S[n][2 * r], S[n][2 * r + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      const float new_max = fmaxf(max[r], largest * scale_log2);
      const float alpha = ex2_approx(max[r] - new_max);
      max[r] = new_max;
      sum[r] *= alpha;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        S[n][2 * r] = ex2_approx(fmaf(S[n][2 * r], scale_log2, -new_max));
        S[n][2 * r + 1] = ex2_approx(fmaf(S[n][2 * r + 1], scale_log2, -new_max));
        sum[r] += S[n][2 * r] + S[n][2 * r + 1];
      }
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        O[n][2 * r] *= alpha;
        O[n][2 * r + 1] *= alpha;
      }
    }
  }

  // P as A operands: the accumulator layout, packed to halves, is theirs.
  __device__ static void pack_p(uint32_t (&P)[kKeys / 16][4], const float (&S)[kKeys / 8][4]) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      P[n / 2][n % 2 * 2] = pack(S[n][0], S[n][1]);
      P[n / 2][n % 2 * 2 + 1] = pack(S[n][2], S[n][3]);
    }
  }

  // O += P V: `v` is at the first key.
  __device__ static void multiply_pv(float (&O)[kHeadDim / 8][4],
                                     const uint32_t (&P)[kKeys / 16][4], const half* v) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      const half* const column = v + n * 8 + b_column(lane);
      mma_m16n8k16(O[n], P[0], load_column(column + b_k(lane, 0) * kHeadDim),
                   load_column(column + b_k(lane, 1) * kHeadDim));
    }
  }

  // Writes O / sum; `out` is at the warp's first row.
  __device__ static void store_rows(half* out, const float (&O)[kHeadDim / 8][4],
                                    const float (&sum)[2]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float total = sum[r];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
        *reinterpret_cast<half2*>(out + (lane / 4 + 8 * r) * kHeadDim + n * 8 + lane % 4 * 2) =
            __floats2half2_rn(O[n][2 * r] / total, O[n][2 * r + 1] / total);
    }
  }

  __device__ static void run(const half* Q, const half* K, const half* V, half* O_out, float*,
                             int seq_q, int seq_kv, int, int, float scale_log2) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t row = head * seq_q + int64_t{blockIdx.x} * 64 + threadIdx.x / 32 * 16;
    K += head * seq_kv * kHeadDim;
    V += head * seq_kv * kHeadDim;
    float O[kHeadDim / 8][4] = {}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    for (int j = 0; j < seq_kv; j += kKeys) {
      float S[kKeys / 8][4] = {};
      uint32_t P[kKeys / 16][4];
      multiply_qk(S, Q + row * kHeadDim, K + int64_t{j} * kHeadDim);
      softmax(S, O, max, sum, scale_log2);
      pack_p(P, S);
      multiply_pv(O, P, V + int64_t{j} * kHeadDim);
    }
    store_rows(O_out + row * kHeadDim, O, sum);
  }
};

}  // namespace

FA_HALF_ENTRY(fa_ex6_fragments, Fragments)
static const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex6_fragments, Fragments)};
FA_RUNG(ex6_fragments, "", sm_80, f16, none, "fragments of mma.sync, loaded by hand", kInstances,
        fa::plan_half_tiles);
