// a5_transposed_k   parent: a3
// Idea: a first kernel transposes K in HBM. The K tile then has a row for each column of K, and the
// lanes, a key each, read adjacent floats.
//
// Tile              Br = 32, Bc = 32, 4 warps x 8 rows; a lane computes one key of S and every 32nd
//                   column of O; the transposition 32 x 32, 256 threads
// Shared memory     Q 16 KB + K 16 KB + V 16 KB + P 4 KB at head_dim 128; the transposition 4.1 KB
// Expected effect   the 8-way conflict of the K reads is gone without padding, at the cost of one
//                   more round trip of K to HBM and as much memory as K.

#include <cfloat>

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

constexpr int Bc = 32;  // keys of a tile: one for each lane

// Writes K^T to scratch memory: [seq_kv, D] of each head becomes [D, seq_kv].
template <int D>
struct Transpose {
  static constexpr fa::Tile kTile{32, 32, 8};
  static constexpr int kHeadDim = D;
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerSm = 0;
  static constexpr std::size_t kSharedBytes = 0;

  __device__ static void run(const float*, const float* K, const float*, float*, float* K_t, int,
                             int seq_kv, float, int) {
    __shared__ float tile[32][33];  // padded, so that the columns lie in different banks
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int first_key = blockIdx.x / (D / 32) * 32, first_d = blockIdx.x % (D / 32) * 32;
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    K += (head * seq_kv + first_key) * D + first_d;
    K_t += (head * D + first_d) * seq_kv + first_key;
#pragma unroll
    for (int i = y; i < 32; i += kThreads / 32) tile[i][x] = K[i * D + x];
    __syncthreads();
#pragma unroll
    for (int i = y; i < 32; i += kThreads / 32) K_t[int64_t{i} * seq_kv + x] = tile[x][i];
  }
};

template <int Br, int Warps, int D>
struct Attention {
  static constexpr fa::Tile kTile{Br, Bc, Warps};
  static constexpr int kHeadDim = D;
  static constexpr int kThreads = Warps * 32;
  static constexpr int kBlocksPerSm = 0;
  static constexpr int kRows = Br / Warps;  // rows of a warp
  static constexpr int kColumns = D / 32;   // columns of O of a lane
  static constexpr std::size_t kSharedBytes = (Br * D + D * Bc + Bc * D + Br * Bc) * sizeof(float);
  static_assert(kRows * Warps == Br, "each warp computes whole rows");
  static_assert(kColumns * 32 == D, "the lanes of a warp divide the columns of O evenly");

  // Copies Rows rows of Columns floats, `stride` apart in global memory.
  template <int Rows, int Columns>
  __device__ static void load_tile(float* shared, const float* global, int64_t stride) {
#pragma unroll
    for (int i = threadIdx.x * 4; i < Rows * Columns; i += kThreads * 4)
      *reinterpret_cast<float4*>(shared + i) =
          *reinterpret_cast<const float4*>(global + i / Columns * stride + i % Columns);
  }

  // S = Q K^T for the warp's rows; `k` is the column of the lane's key.
  __device__ static void multiply_qk(float (&S)[kRows], const float* q, const float* k) {
#pragma unroll 8
    for (int d = 0; d < D; d += 4) {
      const float4 y = {k[d * Bc], k[(d + 1) * Bc], k[(d + 2) * Bc], k[(d + 3) * Bc]};
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

  // Writes O / row_sum.
  __device__ static void store_rows(float* O_out, const float (&O)[kRows][kColumns],
                                    const float (&row_sum)[kRows]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      // The largest score adds e^0; only a row without a visible key has a sum below 1: 0.
      const float divisor = fmaxf(warp_sum(row_sum[r]), 1.f);
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        O_out[r * D + lane + 32 * c] = __fdividef(O[r][c], divisor);
    }
  }

  __device__ static void run(const float* Q, const float*, const float* V, float* O_out, float* K_t,
                             int seq_q, int seq_kv, float scale, int diagonal) {
    extern __shared__ __align__(16) float shared[];
    float* const q_tile = shared;
    float* const k_tile = q_tile + Br * D;
    float* const v_tile = k_tile + D * Bc;
    float* const p_tile = v_tile + Bc * D;
    const int lane = threadIdx.x % 32;
    const int warp_row = threadIdx.x / 32 * kRows;
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int first_row = blockIdx.x * Br, row = first_row + warp_row;
    Q += (head * seq_q + first_row) * D;
    O_out += (head * seq_q + row) * D;
    K_t += head * seq_kv * D;
    V += head * seq_kv * D;

    float O[kRows][kColumns] = {}, row_max[kRows], row_sum[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      row_max[r] = -FLT_MAX;  // not -INFINITY: -INFINITY minus itself is NaN
      row_sum[r] = 0.f;
    }
    load_tile<Br, D>(q_tile, Q, D);

    for (int j = 0; j < seq_kv; j += Bc) {
      load_tile<D, Bc>(k_tile, K_t + j, seq_kv);
      load_tile<Bc, D>(v_tile, V + int64_t{j} * D, D);
      __syncthreads();  // the tiles have arrived
      float S[kRows] = {};
      multiply_qk(S, q_tile + warp_row * D, k_tile + lane);
      softmax(p_tile + warp_row * Bc, S, O, row_max, row_sum, scale, row + diagonal - j - lane);
      __syncwarp();  // the warp's rows of P are complete
      multiply_pv(O, p_tile + warp_row * Bc, v_tile + lane);
      __syncthreads();  // the last read of the tiles
    }
    store_rows(O_out, O, row_sum);
  }
};

}  // namespace

#define INSTANCES(X)                                \
  X(fa_a5_transposed_k_d128, Attention<32, 4, 128>) \
  X(fa_a5_transposed_k_d64, Attention<32, 4, 64>)   \
  X(fa_a5_transposed_k_d32, Attention<32, 4, 32>)
#define TRANSPOSES(X)                                  \
  X(fa_a5_transposed_k_transpose_d128, Transpose<128>) \
  X(fa_a5_transposed_k_transpose_d64, Transpose<64>)   \
  X(fa_a5_transposed_k_transpose_d32, Transpose<32>)

INSTANCES(FA_FLOAT_ENTRY)
TRANSPOSES(FA_FLOAT_ENTRY)
static const fa::Instance kTransposes[] = {TRANSPOSES(FA_INSTANCE)};
static fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                           const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  const fa::Instance& transpose = fa::instance_for(kTransposes, problem.head_dim);
  return fa::float_steps(problem,
                         {{transpose, problem.seq_kv / 32 * (problem.head_dim / 32)},
                          {instance, problem.seq_q / instance.tile.Br}},
                         {"K^T", problem.kv_elements() * 4});
}
FA_RUNG(a5_transposed_k, INSTANCES, plan);
