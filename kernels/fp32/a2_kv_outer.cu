// a2_kv_outer       parent: a1
// Idea: Algorithm 1 of FlashAttention as printed: K/V tiles outside, Q tiles inside. O and the row
// statistics l and m live in HBM and are read and written once for every K/V tile.
//
// Tile              Br = 32, Bc = 32, 4 warps x 8 rows; a lane owns one key of S and every 32nd
//                   column of O; one block for a head
// Shared memory     Q 16 KB + K 16 KB + V 16 KB + P 4 KB at head_dim 128
// Expected effect   slower than a1: seq_kv / 32 trips of O to HBM and back, one block a head, and
//                   the lanes of a warp read 32 rows of K that start in the same bank.

#include <cfloat>

#include "kernels/catalogue.h"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"

namespace {

constexpr int Bc = 32;  // keys of a tile: one a lane

template <int Br, int Warps, int D>
struct Attention {
  static constexpr int kThreads = Warps * 32;
  static constexpr int kRows = Br / Warps;  // rows a warp owns
  static constexpr int kColumns = D / 32;   // columns of O a lane owns
  static constexpr int kPitch = D;          // floats from one row of the K tile to the next
  static constexpr std::size_t kSharedBytes =
      (Br * D + Bc * kPitch + Bc * D + Br * Bc) * sizeof(float);
  static_assert(kRows * Warps == Br, "each warp owns whole rows");
  static_assert(kColumns * 32 == D, "the lanes of a warp share the columns of O");

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
};

template <int Br, int Warps, int D>
__device__ __forceinline__ void attention(const float* Q, const float* K, const float* V,
                                          float* O_out, float* row_max, float* row_sum, int seq_q,
                                          int seq_kv, float scale, int diagonal) {
  using A = Attention<Br, Warps, D>;
  extern __shared__ __align__(16) float shared[];
  float* const q_tile = shared;
  float* const k_tile = q_tile + Br * D;
  float* const v_tile = k_tile + Bc * A::kPitch;
  float* const p_tile = v_tile + Bc * D;
  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * A::kRows;

  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  Q += head * seq_q * D;
  O_out += head * seq_q * D;
  row_max += head * seq_q;
  row_sum += head * seq_q;
  K += head * seq_kv * D;
  V += head * seq_kv * D;

  for (int64_t i = threadIdx.x; i < int64_t{seq_q} * D; i += A::kThreads) O_out[i] = 0.f;
  for (int i = threadIdx.x; i < seq_q; i += A::kThreads) {
    row_max[i] = -FLT_MAX;  // not -INFINITY: -INFINITY minus itself is NaN
    row_sum[i] = 0.f;
  }

  for (int j = 0; j < seq_kv; j += Bc) {
    A::template load_tile<Bc, A::kPitch>(k_tile, K + int64_t{j} * D);
    A::template load_tile<Bc, D>(v_tile, V + int64_t{j} * D);
    for (int i = 0; i < seq_q; i += Br) {
      A::template load_tile<Br, D>(q_tile, Q + int64_t{i} * D);
      __syncthreads();  // the tiles have landed, and what the block wrote last can be read

      float S[A::kRows] = {}, O[A::kRows][A::kColumns] = {};
      float new_max[A::kRows], new_sum[A::kRows], old_share[A::kRows], new_share[A::kRows];
      A::multiply_qk(S, q_tile + warp_row * D, k_tile + lane * A::kPitch);
#pragma unroll
      for (int r = 0; r < A::kRows; ++r) {
        const int row = i + warp_row + r;
        S[r] = j + lane <= row + diagonal ? S[r] * scale : -INFINITY;
        const float tile_max = fmaxf(A::warp_max(S[r]), -FLT_MAX);
        const float p = exp_approx(S[r] - tile_max);
        p_tile[(warp_row + r) * Bc + lane] = p;
        new_max[r] = fmaxf(row_max[row], tile_max);
        old_share[r] = exp_approx(row_max[row] - new_max[r]) * row_sum[row];
        new_share[r] = exp_approx(tile_max - new_max[r]);
        new_sum[r] = old_share[r] + new_share[r] * A::warp_sum(p);
      }
      __syncwarp();  // the warp's rows of P are complete
      A::multiply_pv(O, p_tile + warp_row * Bc, v_tile + lane);
#pragma unroll
      for (int r = 0; r < A::kRows; ++r) {
        const int row = i + warp_row + r;
        // The largest score adds e^0; only a row without a visible key has a sum below 1: 0.
        const float divisor = fmaxf(new_sum[r], 1.f);
#pragma unroll
        for (int c = 0; c < A::kColumns; ++c) {
          float& o = O_out[int64_t{row} * D + lane + 32 * c];
          // Rounded, not approximate: an error would come back in every tile, with the same sign.
          o = (old_share[r] * o + new_share[r] * O[r][c]) / divisor;
        }
        if (lane == 0) {
          row_max[row] = new_max[r];
          row_sum[row] = new_sum[r];
        }
      }
      __syncthreads();  // nobody reads the tiles any more
    }
  }
}

}  // namespace

#define ENTRY(name, Br, Warps, D)                                                          \
  extern "C" __global__ void __launch_bounds__(Warps * 32)                                 \
      name(const float* Q, const float* K, const float* V, float* O, float* row_max,       \
           float* row_sum, int seq_q, int seq_kv, float scale, int diagonal) {             \
    attention<Br, Warps, D>(Q, K, V, O, row_max, row_sum, seq_q, seq_kv, scale, diagonal); \
  }
#define INSTANCE(name, Br, Warps, D)                                       \
  {#name, reinterpret_cast<const void*>(name), D, fa::Tile{Br, Bc, Warps}, \
   Attention<Br, Warps, D>::kSharedBytes},

#define INSTANCES(X)                 \
  X(fa_a2_kv_outer_d128, 32, 4, 128) \
  X(fa_a2_kv_outer_d64, 32, 4, 64)   \
  X(fa_a2_kv_outer_d32, 32, 4, 32)

INSTANCES(ENTRY)

namespace {

const fa::Instance kInstances[] = {INSTANCES(INSTANCE)};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  const auto seq_q = static_cast<std::int32_t>(problem.seq_q);
  const auto seq_kv = static_cast<std::int32_t>(problem.seq_kv);
  fa::Launch launch;
  launch.entry = instance.entry;
  launch.kernel = instance.kernel;
  launch.grid = {1, problem.heads, problem.batch};
  launch.block = instance.tile.warps * 32;
  launch.dynamic_shared = instance.shared_bytes;
  launch.arguments = {fa::Tensor::q, fa::Tensor::k, fa::Tensor::v, fa::Tensor::o, fa::ScratchRef{0},
                      fa::ScratchRef{1}, seq_q, seq_kv, static_cast<float>(problem.scale()),
                      // The last key that query 0 sees; without a mask, one past the end.
                      problem.causal ? seq_kv - seq_q : seq_kv};
  const std::int64_t bytes = problem.q_rows() * 4;
  return fa::LaunchPlan{{launch}, {{"m", bytes}, {"l", bytes}}};
}

}  // namespace

namespace fa {
extern const RungKernels kernels_a2_kv_outer;
const RungKernels kernels_a2_kv_outer{kInstances, plan};
}  // namespace fa
