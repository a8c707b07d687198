// a3_q_outer        parent: a2
// Idea: the loops change places. A block keeps one Q tile and walks over K and V; O, l and m stay
// in registers, are divided once, and O is written once. Q tiles no longer wait for each other.
//
// Tile              Br = 32, Bc = 32, 4 warps x 8 rows; a lane owns one key of S and every 32nd
//                   column of O; seq_q / 32 blocks for a head
// Shared memory     Q 16 KB + K 16 KB + V 16 KB + P 4 KB at head_dim 128
// Expected effect   HBM traffic falls to Q, K, V and O plus what L2 does not keep of K and V, and
//                   small batches fill the card. The bank conflicts of K stay, and bound it.

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
                                          float* O_out, int seq_q, int seq_kv, float scale,
                                          int diagonal) {
  using A = Attention<Br, Warps, D>;
  extern __shared__ __align__(16) float shared[];
  float* const q_tile = shared;
  float* const k_tile = q_tile + Br * D;
  float* const v_tile = k_tile + Bc * A::kPitch;
  float* const p_tile = v_tile + Bc * D;
  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * A::kRows;

  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  const int first_row = blockIdx.x * Br;
  Q += (head * seq_q + first_row) * D;
  O_out += (head * seq_q + first_row) * D;
  K += head * seq_kv * D;
  V += head * seq_kv * D;

  float O[A::kRows][A::kColumns] = {}, row_max[A::kRows], row_sum[A::kRows];
#pragma unroll
  for (int r = 0; r < A::kRows; ++r) {
    row_max[r] = -FLT_MAX;  // not -INFINITY: -INFINITY minus itself is NaN
    row_sum[r] = 0.f;
  }
  A::template load_tile<Br, D>(q_tile, Q);

  for (int j = 0; j < seq_kv; j += Bc) {
    A::template load_tile<Bc, A::kPitch>(k_tile, K + int64_t{j} * D);
    A::template load_tile<Bc, D>(v_tile, V + int64_t{j} * D);
    __syncthreads();  // the tiles have landed

    float S[A::kRows] = {};
    A::multiply_qk(S, q_tile + warp_row * D, k_tile + lane * A::kPitch);
#pragma unroll
    for (int r = 0; r < A::kRows; ++r) {
      const int row = first_row + warp_row + r;
      S[r] = j + lane <= row + diagonal ? S[r] * scale : -INFINITY;
      const float new_max = fmaxf(row_max[r], A::warp_max(S[r]));
      const float alpha = exp_approx(row_max[r] - new_max);
      const float p = exp_approx(S[r] - new_max);
      p_tile[(warp_row + r) * Bc + lane] = p;
      row_max[r] = new_max;
      row_sum[r] = row_sum[r] * alpha + p;
#pragma unroll
      for (int c = 0; c < A::kColumns; ++c) O[r][c] *= alpha;
    }
    __syncwarp();  // the warp's rows of P are complete
    A::multiply_pv(O, p_tile + warp_row * Bc, v_tile + lane);
    __syncthreads();  // nobody reads the tiles any more
  }

#pragma unroll
  for (int r = 0; r < A::kRows; ++r) {
    // The largest score adds e^0; only a row without a visible key has a sum below 1: 0.
    const float divisor = fmaxf(A::warp_sum(row_sum[r]), 1.f);
#pragma unroll
    for (int c = 0; c < A::kColumns; ++c)
      O_out[(warp_row + r) * D + lane + 32 * c] = __fdividef(O[r][c], divisor);
  }
}

}  // namespace

#define ENTRY(name, Br, Warps, D)                                                           \
  extern "C" __global__ void __launch_bounds__(Warps * 32)                                  \
      name(const float* Q, const float* K, const float* V, float* O, int seq_q, int seq_kv, \
           float scale, int diagonal) {                                                     \
    attention<Br, Warps, D>(Q, K, V, O, seq_q, seq_kv, scale, diagonal);                    \
  }
#define INSTANCE(name, Br, Warps, D)                                       \
  {#name, reinterpret_cast<const void*>(name), D, fa::Tile{Br, Bc, Warps}, \
   Attention<Br, Warps, D>::kSharedBytes},

#define INSTANCES(X)                \
  X(fa_a3_q_outer_d128, 32, 4, 128) \
  X(fa_a3_q_outer_d64, 32, 4, 64)   \
  X(fa_a3_q_outer_d32, 32, 4, 32)

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
  launch.grid = {problem.seq_q / instance.tile.Br, problem.heads, problem.batch};
  launch.block = instance.tile.warps * 32;
  launch.dynamic_shared = instance.shared_bytes;
  launch.arguments = {fa::Tensor::q, fa::Tensor::k, fa::Tensor::v, fa::Tensor::o, seq_q, seq_kv,
                      static_cast<float>(problem.scale()),
                      // The last key that query 0 sees; without a mask, one past the end.
                      problem.causal ? seq_kv - seq_q : seq_kv};
  return fa::LaunchPlan{{launch}};
}

}  // namespace

namespace fa {
extern const RungKernels kernels_a3_q_outer;
const RungKernels kernels_a3_q_outer{kInstances, plan};
}  // namespace fa
