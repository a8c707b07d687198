// a1_thread_per_row parent: a0
// Idea: one kernel for all three steps. A thread computes one query row: its scores of one tile,
// its row of O, its maximum and sum are registers, the online softmax needs no other thread, and S
// is never written.
//
// Tile              128 rows, Bc = 16, 4 warps
// Shared memory     Q 64 KB + K 8 KB + V 8 KB at head_dim 128
// Expected effect   no N^2 traffic and no N^2 memory. Every operand of a product comes from shared
//                   memory: a float4 of K or V feeds four multiply-adds, and that is the limit.

#include <cfloat>

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int D>
struct Attention {
  static constexpr fa::Tile kTile{Br, Bc, Br / 32};
  static constexpr int kHeadDim = D;
  static constexpr int kThreads = Br;
  static constexpr int kBlocksPerSm = 0;
  static constexpr std::size_t kSharedBytes = (Br + 2 * Bc) * D * sizeof(float);

  // Copies Rows rows of D floats.
  template <int Rows>
  __device__ static void load_tile(float* shared, const float* global) {
#pragma unroll
    for (int i = threadIdx.x * 4; i < Rows * D; i += kThreads * 4)
      *reinterpret_cast<float4*>(shared + i) = *reinterpret_cast<const float4*>(global + i);
  }

  // S = Q K^T for the thread's row.
  __device__ static void multiply_qk(float (&S)[Bc], const float* q, const float* k) {
#pragma unroll 2
    for (int d = 0; d < D; d += 4) {
      const float4 x = load_shared_v4(q + d * Br);
#pragma unroll
      for (int n = 0; n < Bc; ++n) {
        const float4 y = load_shared_v4(k + n * D + d);
        S[n] += x.x * y.x;
        S[n] += x.y * y.y;
        S[n] += x.z * y.z;
        S[n] += x.w * y.w;
      }
    }
  }

  // Online softmax: S becomes P, and O and row_sum are rescaled to the new maximum. `last` is the
  // last visible key of the tile.
  __device__ static void softmax(float (&S)[Bc], float (&O)[D], float& row_max, float& row_sum,
                                 float scale, int last) {
    float new_max = row_max;
#pragma unroll
    for (int n = 0; n < Bc; ++n) {
      S[n] = n <= last ? S[n] * scale : -INFINITY;
      new_max = fmaxf(new_max, S[n]);
    }
    const float alpha = exp_approx(row_max - new_max);
    row_max = new_max;
    row_sum *= alpha;
#pragma unroll
    for (int d = 0; d < D; ++d) O[d] *= alpha;
#pragma unroll
    for (int n = 0; n < Bc; ++n) {
      S[n] = exp_approx(S[n] - new_max);
      row_sum += S[n];
    }
  }

  // O += P V for the thread's row.
  __device__ static void multiply_pv(float (&O)[D], const float (&P)[Bc], const float* v) {
#pragma unroll
    for (int n = 0; n < Bc; ++n) {
#pragma unroll
      for (int d = 0; d < D; d += 4) {
        const float4 y = load_shared_v4(v + n * D + d);
        O[d] += P[n] * y.x;
        O[d + 1] += P[n] * y.y;
        O[d + 2] += P[n] * y.z;
        O[d + 3] += P[n] * y.w;
      }
    }
  }

  __device__ static void run(const float* Q, const float* K, const float* V, float* O_out, float*,
                             int seq_q, int seq_kv, float scale, int diagonal) {
    extern __shared__ __align__(16) float shared[];
    float* const q_tile = shared;
    float* const k_tile = q_tile + Br * D;
    float* const v_tile = k_tile + Bc * D;
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int row = blockIdx.x * Br + threadIdx.x;
    Q += (head * seq_q + row) * D;
    O_out += (head * seq_q + row) * D;
    K += head * seq_kv * D;
    V += head * seq_kv * D;

    // Each thread keeps its row of Q as a column of float4, so that lanes read adjacent addresses:
    // O alone needs D registers.
    float* const q = q_tile + threadIdx.x * 4;
    for (int d = 0; d < D; d += 4)
      *reinterpret_cast<float4*>(q + d * Br) = *reinterpret_cast<const float4*>(Q + d);
    float O[D] = {};
    float row_max = -FLT_MAX, row_sum = 0.f;  // not -INFINITY: -INFINITY minus itself is NaN

    for (int j = 0; j < seq_kv; j += Bc) {
      load_tile<Bc>(k_tile, K + int64_t{j} * D);
      load_tile<Bc>(v_tile, V + int64_t{j} * D);
      __syncthreads();  // the tiles have arrived
      float S[Bc] = {};
      multiply_qk(S, q, k_tile);
      softmax(S, O, row_max, row_sum, scale, row + diagonal - j);
      multiply_pv(O, S, v_tile);
      __syncthreads();  // the last read of the tiles
    }

    // The largest score adds e^0; only a row without a visible key has a sum below 1: 0.
    const float divisor = fmaxf(row_sum, 1.f);
#pragma unroll
    for (int d = 0; d < D; d += 4)
      *reinterpret_cast<float4*>(O_out + d) =
          float4{__fdividef(O[d], divisor), __fdividef(O[d + 1], divisor),
                 __fdividef(O[d + 2], divisor), __fdividef(O[d + 3], divisor)};
  }
};

}  // namespace

#define INSTANCES(X)                                    \
  X(fa_a1_thread_per_row_d128, Attention<128, 16, 128>) \
  X(fa_a1_thread_per_row_d64, Attention<128, 16, 64>)   \
  X(fa_a1_thread_per_row_d32, Attention<128, 16, 32>)

INSTANCES(FA_FLOAT_ENTRY)
FA_RUNG(a1_thread_per_row, INSTANCES, fa::plan_float_tiles);
