// a2_kv_outer       parent: a1
// Idea: Algorithm 1 of FlashAttention: K/V tiles in the outer loop, Q tiles in the inner one. O and
// the row statistics m and l are in HBM and are read and written once for every K/V tile.
//
// Tile              Br = 32, Bc = 32, 4 warps x 8 rows; a lane computes one key of S and every 32nd
//                   column of O; one block for a head
// Shared memory     Q 16 KB + K 16 KB + V 16 KB + P 4 KB at head_dim 128
// Expected effect   slower than a1: seq_kv / 32 trips of O to HBM and back, one block a head, and
//                   the lanes of a warp read 32 rows of K that start in the same bank.

#include <cfloat>

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

constexpr int Bc = 32;  // keys of a tile: one for each lane

template <int Br, int Warps, int D>
struct Attention {
  static constexpr fa::Tile kTile{Br, Bc, Warps};
  static constexpr int kHeadDim = D;
  static constexpr int kThreads = Warps * 32;
  static constexpr int kBlocksPerSm = 0;
  static constexpr int kRows = Br / Warps;  // rows of a warp
  static constexpr int kColumns = D / 32;   // columns of O of a lane
  static constexpr int kPitch = D;          // floats from one row of the K tile to the next
  static constexpr std::size_t kSharedBytes =
      (Br * D + Bc * kPitch + Bc * D + Br * Bc) * sizeof(float);
  static_assert(kRows * Warps == Br, "each warp computes whole rows");
  static_assert(kColumns * 32 == D, "the lanes of a warp divide the columns of O evenly");

  // Copies Rows rows of D floats; in shared memory they are Pitch apart.
  template <int Rows, int Pitch>
  __device__ static void load_tile(float* shared, const float* global) {
#pragma unroll
    for (int i = threadIdx.x * 4; i < Rows * D; i += kThreads * 4)
      *reinterpret_cast<float4*>(shared + i / D * Pitch + i % D) =
          *reinterpret_cast<const float4*>(global + i);
  }

  // S = Q K^T for the warp's rows; `k` is the row of the lane's key.
  __device__ static void multiply_qk(float (&S)[kRows], const float* q, const float* k) {
#pragma unroll 8
    for (int d = 0; d < D; d += 4) {
      const float4 y = load_shared_v4(k + d);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 x = load_shared_v4(q + r * D + d);
        S[r] += x.x * y.x;
        S[r] += x.y * y.y;
        S[r] += x.z * y.z;
        S[r] += x.w * y.w;
      }
    }
  }

  __device__ static float warp_max(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
  }
  __device__ static float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
  }

  // Online softmax: writes P, and rescales O and row_sum, each lane's part of the sum, to the new
  // maximum. `last` is the last visible key of the first row, from the lane's key.
  __device__ static void softmax(float* p, float (&S)[kRows], float (&O)[kRows][kColumns],
                                 float (&row_max)[kRows], float (&row_sum)[kRows], float scale,
                                 int last) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      S[r] = last + r >= 0 ? S[r] * scale : -INFINITY;
      const float new_max = fmaxf(row_max[r], warp_max(S[r]));
      const float alpha = exp_approx(row_max[r] - new_max);
      const float x = exp_approx(S[r] - new_max);
      p[r * Bc + threadIdx.x % 32] = x;
      row_max[r] = new_max;
      row_sum[r] = row_sum[r] * alpha + x;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) O[r][c] *= alpha;
    }
  }

  // O += P V for the warp's rows; `v` is at the lane's first column.
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
        for (int c = 0; c < kColumns; ++c) {
          O[r][c] += x.x * y[0][c];
          O[r][c] += x.y * y[1][c];
          O[r][c] += x.z * y[2][c];
          O[r][c] += x.w * y[3][c];
        }
      }
    }
  }

  // O, m and l of the warp's rows. O was divided by l when it was written; lane 0 gets all of l.
  __device__ static void load_rows(float (&O)[kRows][kColumns], float (&row_max)[kRows],
                                   float (&row_sum)[kRows], const float* O_out, const float* m,
                                   const float* l) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      row_max[r] = m[r];
      row_sum[r] = lane == 0 ? l[r] : 0.f;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) O[r][c] = O_out[r * D + lane + 32 * c] * l[r];
    }
  }

  // Writes O / row_sum, m and l.
  __device__ static void store_rows(float* O_out, float* m, float* l,
                                    const float (&O)[kRows][kColumns],
                                    const float (&row_max)[kRows], const float (&row_sum)[kRows]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float sum = warp_sum(row_sum[r]);
      // The largest score adds e^0; only a row without a visible key has a sum below 1: 0.
      const float divisor = fmaxf(sum, 1.f);
      // Rounded, not approximate: the error would return with the same sign in every tile.
#pragma unroll
      for (int c = 0; c < kColumns; ++c) O_out[r * D + lane + 32 * c] = O[r][c] / divisor;
      if (lane == 0) {
        m[r] = row_max[r];
        l[r] = sum;
      }
    }
  }

  __device__ static void run(const float* Q, const float* K, const float* V, float* O_out, float* m,
                             int seq_q, int seq_kv, float scale, int diagonal) {
    extern __shared__ __align__(16) float shared[];
    float* const q_tile = shared;
    float* const k_tile = q_tile + Br * D;
    float* const v_tile = k_tile + Bc * kPitch;
    float* const p_tile = v_tile + Bc * D;
    const int lane = threadIdx.x % 32;
    const int warp_row = threadIdx.x / 32 * kRows;
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    Q += head * seq_q * D;
    O_out += head * seq_q * D;
    K += head * seq_kv * D;
    V += head * seq_kv * D;
    m += head * 2 * seq_q;
    float* const l = m + seq_q;

    for (int64_t i = threadIdx.x; i < int64_t{seq_q} * D; i += kThreads) O_out[i] = 0.f;
    for (int i = threadIdx.x; i < seq_q; i += kThreads) {
      m[i] = -FLT_MAX;  // not -INFINITY: -INFINITY minus itself is NaN
      l[i] = 0.f;
    }

    for (int j = 0; j < seq_kv; j += Bc) {
      load_tile<Bc, kPitch>(k_tile, K + int64_t{j} * D);
      load_tile<Bc, D>(v_tile, V + int64_t{j} * D);
      for (int i = 0; i < seq_q; i += Br) {
        load_tile<Br, D>(q_tile, Q + int64_t{i} * D);
        __syncthreads();  // the tiles have arrived, and what the block wrote last is visible
        const int row = i + warp_row;
        float S[kRows] = {}, O[kRows][kColumns], row_max[kRows], row_sum[kRows];
        load_rows(O, row_max, row_sum, O_out + int64_t{row} * D, m + row, l + row);
        multiply_qk(S, q_tile + warp_row * D, k_tile + lane * kPitch);
        softmax(p_tile + warp_row * Bc, S, O, row_max, row_sum, scale, row + diagonal - j - lane);
        __syncwarp();  // the warp's rows of P are complete
        multiply_pv(O, p_tile + warp_row * Bc, v_tile + lane);
        store_rows(O_out + int64_t{row} * D, m + row, l + row, O, row_max, row_sum);
        __syncthreads();  // the last read of the tiles
      }
    }
  }
};

}  // namespace

#define INSTANCES(X)                            \
  X(fa_a2_kv_outer_d128, Attention<32, 4, 128>) \
  X(fa_a2_kv_outer_d64, Attention<32, 4, 64>)   \
  X(fa_a2_kv_outer_d32, Attention<32, 4, 32>)

INSTANCES(FA_FLOAT_ENTRY)
static fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                           const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  return fa::float_steps(problem, {{instance, 1}}, {"m and l", problem.q_rows() * 2 * 4});
}
FA_RUNG(a2_kv_outer, INSTANCES, plan);
