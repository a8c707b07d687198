// a4_padded
// Idea: four floats of padding after each row of the K tile. They shift the rows of adjacent lanes
// to different banks.
//
// Tile              Br = 32, Bc = 32, 4 warps x 8 rows; a lane computes one key of S and every 32nd
//                   column of O; seq_q / 32 thread blocks per head
// Shared memory     Q 16 KB + K 16.5 KB + V 16 KB + P 4 KB at head_dim 128
// Expected effect   no bank conflict in the loads of K: a float4 from 32 rows takes 4 wavefronts
//                   instead of 32.

#include <cfloat>

#include "kernels/fp32/common.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int D>
struct Attention {
  static constexpr fa::Tile kTile{Br, Bc, Br / 8};
  static constexpr int kHeadDim = D, kThreads = Br / 8 * 32, kBlocksPerSm = 0;
  static constexpr int kPitch = D + 4;  // floats from one row of K to the next
  static constexpr std::size_t kSharedBytes =
      (Br * D + Bc * kPitch + Bc * D + Br * Bc) * sizeof(float);
  static constexpr int kRows = 8;          // per warp
  static constexpr int kColumns = D / 32;  // of O per lane
  static_assert(Bc == 32 && kColumns * 32 == D, "a lane computes one key and whole columns");

  // Per row: the thread's columns of O, the row maximum, the sum over the thread's keys.
  struct State {
    float O[kRows][kColumns], row_max[kRows], row_sum[kRows];
  };

  // S = Q K^T.
  __device__ static void multiply_qk(float (&S)[kRows], const float* q, const float* k) {
#pragma unroll 8
    for (int d = 0; d < D; d += 4) {
      const float4 y = load_shared_v4(k + d);
#pragma unroll
      for (int r = 0; r < kRows; ++r) add_dot(S[r], load_shared_v4(q + r * D + d), y);
    }
  }

  // Online softmax: S becomes P, and O and row_sum are rescaled to the new maximum.
  // `last` is the last key that the first row sees, relative to the lane's key.
  __device__ static void softmax(float* p, float (&S)[kRows], State& s, float scale, int last) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      S[r] = last + r >= 0 ? S[r] * scale : -INFINITY;
      const float new_max = fmaxf(s.row_max[r], warp_max(S[r]));
      const float alpha = exp_approx(s.row_max[r] - new_max);
      s.row_max[r] = new_max;
      s.row_sum[r] *= alpha;
      const float x = exp_approx(S[r] - new_max);
      p[r * Bc] = x;
      s.row_sum[r] += x;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) s.O[r][c] *= alpha;
    }
  }

  // O += P V.
  __device__ static void multiply_pv(float (&O)[kRows][kColumns], const float* p, const float* v) {
#pragma unroll
    for (int j = 0; j < Bc; j += 4) {
      float y[4][kColumns];
#pragma unroll
      for (int i = 0; i < 4 * kColumns; ++i)
        y[i / kColumns][i % kColumns] = v[(j + i / kColumns) * D + i % kColumns * 32];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 x = load_shared_v4(p + r * Bc + j);
#pragma unroll
        for (int c = 0; c < kColumns; ++c)
          add_dot(O[r][c], x, {y[0][c], y[1][c], y[2][c], y[3][c]});
      }
    }
  }

  // Writes O / row_sum.
  __device__ static void store_rows(const State& s, float* O_out) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float sum = warp_sum(s.row_sum[r]);
      // The sum is at least e^0 = 1, except in a row without a visible key, where it is 0.
      const float divisor = fmaxf(sum, 1.f);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) O_out[r * D + 32 * c] = __fdividef(s.O[r][c], divisor);
    }
  }

  __device__ static void run(const float* Q, const float* K, const float* V, float* O_out, float*,
                             int seq_q, int seq_kv, float scale, int diagonal) {
    extern __shared__ __align__(16) float shared[];
    float* const q_tile = shared;
    float* const k_tile = q_tile + Br * D;
    float* const v_tile = k_tile + Bc * kPitch;
    float* const p_tile = v_tile + Bc * D;
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * kRows;
    const int row = blockIdx.x * Br + warp_row;
    Q += (head * seq_q + blockIdx.x * Br) * D;
    O_out += (head * seq_q + row) * D;
    K += head * seq_kv * D;
    V += head * seq_kv * D;

    State s = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) s.row_max[r] = -FLT_MAX;  // -INFINITY - -INFINITY would be NaN
    load_tile<Br, D, kThreads>(q_tile, Q);

    for (int j = 0; j < seq_kv; j += Bc) {
      load_tile<Bc, D, kThreads, kPitch>(k_tile, K + int64_t{j} * D);
      load_tile<Bc, D, kThreads>(v_tile, V + int64_t{j} * D);
      __syncthreads();  // the tiles have arrived
      float S[kRows] = {};
      multiply_qk(S, q_tile + warp_row * D, k_tile + lane * kPitch);
      softmax(p_tile + warp_row * Bc + lane, S, s, scale, row + diagonal - j - lane);
      __syncwarp();  // the warp's rows of P are complete
      multiply_pv(s.O, p_tile + warp_row * Bc, v_tile + lane);
      __syncthreads();  // the last read of the tiles
    }
    store_rows(s, O_out + lane);
  }
};

}  // namespace

#define INSTANCES(X) FA_HEAD_DIMS(X, fa_a4_padded, Attention, 32, 32)

INSTANCES(FA_FLOAT_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(a4_padded, "a3", sm_80, f32, causal,
        "padding: the lanes that read a column of K use different banks", kInstances,
        fa::plan_float_tiles);
