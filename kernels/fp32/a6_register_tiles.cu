// a6_register_tiles
// Idea: register tiles in both products. A thread computes 8 rows x 8 keys of S and 8 rows x 8
// columns of O (head_dim 64). For 256 FMA it loads 16 float4 instead of 72. Columns of O are
// float4, so that P V is a sum of outer products. The scale is folded into exp2.
//
// Tile              Br = 128, Bc = 64; 8 lanes per row and 4 warps x 32 rows at head_dim 64 and 32,
//                   16 lanes per row and 8 warps x 16 rows at head_dim 128
// Shared memory     Q 34 KB + K 17 KB + V 16 KB + P 36 KB at head_dim 64
// Expected effect   at head_dim 64, 16 loads for 256 FMA in each product: Q K^T had 72 loads, P V
//                   64. The two products take 96 wavefronts instead of 256.

#include <cfloat>

#include "kernels/fp32/common.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int D, int Lanes>
struct Attention {
  static constexpr int kRows = 8;                 // per thread
  static constexpr int kRowStride = 32 / Lanes;   // from one of these rows to the next
  static constexpr int kKeys = Bc / Lanes;        // of S per thread: every Lanes-th
  static constexpr int kColumns = D / 4 / Lanes;  // float4 of O per thread: every Lanes-th
  static constexpr int kHeadDim = D, kThreads = Br / kRows * Lanes;
  static constexpr int kBlocksPerSm = kThreads < 256 ? 256 / kThreads : 1;
  static constexpr fa::Tile kTile{Br, Bc, kThreads / 32};
  static constexpr int kPitch = D + 4;        // of Q and K: adjacent lanes read different banks
  static constexpr int kPPitch = Bc + Lanes;  // of P: a warp stores its rows to different banks
  static constexpr std::size_t kSharedBytes =
      (Br * kPitch + Bc * kPitch + Bc * D + Br * kPPitch) * sizeof(float);
  static_assert(kKeys * Lanes == Bc && kColumns * 4 * Lanes == D && kThreads % 32 == 0);

  // Per row: the thread's columns of O, the row maximum, the sum over the thread's keys.
  struct State {
    float4 O[kRows][kColumns];
    float row_max[kRows], row_sum[kRows];
  };

  // S = Q K^T.
  __device__ static void multiply_qk(float (&S)[kRows][kKeys], const float* q, const float* k) {
#pragma unroll 2
    for (int d = 0; d < D; d += 4) {
      float4 y[kKeys];
#pragma unroll
      for (int n = 0; n < kKeys; ++n) y[n] = load_shared_v4(k + n * Lanes * kPitch + d);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 x = load_shared_v4(q + r * kRowStride * kPitch + d);
#pragma unroll
        for (int n = 0; n < kKeys; ++n) add_dot(S[r][n], x, y[n]);
      }
    }
  }

  // Online softmax: S becomes P, and O and row_sum are rescaled to the new maximum.
  // `last` is the last key that the first row sees, relative to the lane's first key.
  __device__ static void softmax(float* p, float (&S)[kRows][kKeys], State& s, float scale_log2,
                                 int last) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float tile_max = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        if (n * Lanes - r * kRowStride > last) S[r][n] = -INFINITY;
        tile_max = fmaxf(tile_max, S[r][n]);
      }
      const float new_max = fmaxf(s.row_max[r], lanes_max<Lanes>(tile_max) * scale_log2);
      const float alpha = ex2_approx(s.row_max[r] - new_max);
      s.row_max[r] = new_max;
      s.row_sum[r] *= alpha;
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        const float x = ex2_approx(fmaf(S[r][n], scale_log2, -new_max));
        p[r * kRowStride * kPPitch + n * Lanes] = x;
        s.row_sum[r] += x;
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) s.O[r][c] = scaled(alpha, s.O[r][c]);
    }
  }

  // O += P V.
  __device__ static void multiply_pv(float4 (&O)[kRows][kColumns], const float* p, const float* v) {
#pragma unroll 2
    for (int j = 0; j < Bc; j += 4) {
      float x[kRows][4];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 four = load_shared_v4(p + r * kRowStride * kPPitch + j);
        x[r][0] = four.x, x[r][1] = four.y, x[r][2] = four.z, x[r][3] = four.w;
      }
#pragma unroll
      for (int i = 0; i < 4 * kColumns; ++i) {
        const int key = i / kColumns, c = i % kColumns;
        const float4 y = load_shared_v4(v + (j + key) * D + c * 4 * Lanes);
#pragma unroll
        for (int r = 0; r < kRows; ++r) add_scaled(O[r][c], x[r][key], y);
      }
    }
  }

  // Writes O / row_sum.
  __device__ static void store_rows(const State& s, float* O_out) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float sum = lanes_sum<Lanes>(s.row_sum[r]);
      // Only a row without a visible key has the sum 0. The largest score adds nearly 1, not
      // exactly: row_max is rounded, the product in fmaf is not.
      const float inverse = sum == 0 ? 0 : __fdividef(1.f, sum);
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        store_v4(O_out + r * kRowStride * D + c * 4 * Lanes, scaled(inverse, s.O[r][c]));
    }
  }

  __device__ static void run(const float* Q, const float* K, const float* V, float* O_out, float*,
                             int seq_q, int seq_kv, float scale, int diagonal) {
    extern __shared__ __align__(16) float shared[];
    float* const q_tile = shared;
    float* const k_tile = q_tile + Br * kPitch;
    float* const v_tile = k_tile + Bc * kPitch;
    float* const p_tile = v_tile + Bc * D;
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int lane = threadIdx.x % Lanes;
    const int first = threadIdx.x / 32 * kRows * kRowStride + threadIdx.x % 32 / Lanes;
    const int row = blockIdx.x * Br + first;
    Q += (head * seq_q + blockIdx.x * Br) * D;
    O_out += (head * seq_q + row) * D;
    K += head * seq_kv * D;
    V += head * seq_kv * D;

    State s = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) s.row_max[r] = -FLT_MAX;  // -INFINITY - -INFINITY would be NaN
    load_tile<Br, D, kThreads, kPitch>(q_tile, Q);

    for (int j = 0; j < seq_kv; j += Bc) {
      load_tile<Bc, D, kThreads, kPitch>(k_tile, K + int64_t{j} * D);
      load_tile<Bc, D, kThreads>(v_tile, V + int64_t{j} * D);
      __syncthreads();  // the tiles have arrived
      float S[kRows][kKeys] = {};
      multiply_qk(S, q_tile + first * kPitch, k_tile + lane * kPitch);
      softmax(p_tile + first * kPPitch + lane, S, s, scale / kLn2, row + diagonal - j - lane);
      __syncwarp();  // the warp's rows of P are complete
      multiply_pv(s.O, p_tile + first * kPPitch, v_tile + lane * 4);
      __syncthreads();  // the last read of the tiles
    }
    store_rows(s, O_out + lane * 4);
  }
};

}  // namespace

#define INSTANCES(X)                                        \
  X(fa_a6_register_tiles_d128, Attention<128, 64, 128, 16>) \
  X(fa_a6_register_tiles_d64, Attention<128, 64, 64, 8>)    \
  X(fa_a6_register_tiles_d32, Attention<128, 64, 32, 8>)

INSTANCES(FA_FLOAT_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(a6_register_tiles, "a4", sm_80, f32, causal,
        "register tiles: a thread computes 8 rows x 8 keys of S and 8 rows x 8 columns of O",
        kInstances, fa::plan_float_tiles,
        .why_large =
            "a thread computes other rows, keys and columns, so every index of both products, the "
            "softmax and the stores changes.");
