// a1_thread_per_row
// Idea: one kernel. A thread computes one query row and keeps its row of the S tile, O and the row
// statistics in registers. The online softmax needs no other thread, and S is never stored.
//
// Tile              128 rows, Bc = 16, 4 warps
// Shared memory     Q 64 KB + K 8 KB + V 8 KB at head_dim 128
// Expected effect   neither traffic nor memory of size N^2. All operands are loaded from shared
//                   memory; a float4 of K or V feeds only four FMA, and these loads are the limit.

#include <cfloat>

#include "kernels/fp32/common.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int D>
struct Attention {
  static constexpr fa::Tile kTile{Br, Bc, Br / 32};
  static constexpr int kHeadDim = D, kThreads = Br, kBlocksPerSm = 0;
  static constexpr std::size_t kSharedBytes = (Br * D + 2 * Bc * D) * sizeof(float);

  // The thread's row of O and its statistics.
  struct State {
    float4 O[D / 4];
    float row_max, row_sum;
  };

  // S = Q K^T.
  __device__ static void multiply_qk(float (&S)[Bc], const float* q, const float* k) {
#pragma unroll 2
    for (int d = 0; d < D; d += 4) {
      const float4 x = load_shared_v4(q + d * Br);
#pragma unroll
      for (int n = 0; n < Bc; ++n) add_dot(S[n], x, load_shared_v4(k + n * D + d));
    }
  }

  // Online softmax: S becomes P, and O and row_sum are rescaled to the new maximum.
  // `last` is the last key that the row sees, relative to the tile.
  __device__ static void softmax(float (&S)[Bc], State& s, float scale, int last) {
    float new_max = s.row_max;
#pragma unroll
    for (int n = 0; n < Bc; ++n) {
      S[n] = n <= last ? S[n] * scale : -INFINITY;
      new_max = fmaxf(new_max, S[n]);
    }
    const float alpha = exp_approx(s.row_max - new_max);
    s.row_max = new_max;
    s.row_sum *= alpha;
#pragma unroll
    for (int d = 0; d < D / 4; ++d) s.O[d] = scaled(alpha, s.O[d]);
#pragma unroll
    for (int n = 0; n < Bc; ++n) {
      S[n] = exp_approx(S[n] - new_max);
      s.row_sum += S[n];
    }
  }

  // O += P V.
  __device__ static void multiply_pv(float4 (&O)[D / 4], const float (&P)[Bc], const float* v) {
#pragma unroll
    for (int n = 0; n < Bc; ++n)
#pragma unroll
      for (int d = 0; d < D / 4; ++d) add_scaled(O[d], P[n], load_shared_v4(v + n * D + 4 * d));
  }

  // Writes O / row_sum.
  __device__ static void store_rows(const State& s, float* O_out) {
    // The sum is at least e^0 = 1, except in a row without a visible key, where it is 0.
    const float divisor = fmaxf(s.row_sum, 1.f);
#pragma unroll
    for (int d = 0; d < D / 4; ++d) store_v4(O_out + 4 * d, divided(s.O[d], divisor));
  }

  __device__ static void run(const float* Q, const float* K, const float* V, float* O_out, float*,
                             int seq_q, int seq_kv, float scale, int diagonal) {
    extern __shared__ __align__(16) float shared[];
    float* const q_tile = shared;
    float* const k_tile = q_tile + Br * D;
    float* const v_tile = k_tile + Bc * D;
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int row = blockIdx.x * Br + threadIdx.x;
    Q += head * seq_q * D;
    O_out += head * seq_q * D;
    K += head * seq_kv * D;
    V += head * seq_kv * D;

    float* const q = q_tile + threadIdx.x * 4;  // a column of float4: lanes read adjacent ones
    for (int d = 0; d < D; d += 4) store_v4(q + d * Br, load_v4(Q + int64_t{row} * D + d));
    State s{.row_max = -FLT_MAX};  // not -INFINITY: -INFINITY minus itself is NaN

    for (int j = 0; j < seq_kv; j += Bc) {
      load_tile<Bc, D, kThreads>(k_tile, K + int64_t{j} * D);
      load_tile<Bc, D, kThreads>(v_tile, V + int64_t{j} * D);
      __syncthreads();  // the tiles have arrived
      float S[Bc] = {};
      multiply_qk(S, q, k_tile);
      softmax(S, s, scale, row + diagonal - j);
      multiply_pv(s.O, S, v_tile);
      __syncthreads();  // the last read of the tiles
    }
    store_rows(s, O_out + int64_t{row} * D);
  }
};

}  // namespace

#define INSTANCES(X) FA_HEAD_DIMS(X, fa_a1_thread_per_row, Attention, 128, 16)

INSTANCES(FA_FLOAT_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(a1_thread_per_row, "a0", sm_80, f32, causal,
        "one kernel with online softmax: a thread computes a query row, and S is never stored",
        kInstances, fa::plan_float_tiles,
        .why_large =
            "one kernel that never stores S replaces three that do; no line of theirs remains.");
