// a5_transposed_k   parent: a3
// Idea: a first kernel transposes K in HBM. The K tile then has a row for each column of K, and the
// lanes, a key each, read neighbouring floats.
//
// Tile              Br = 32, Bc = 32, 4 warps x 8 rows; a lane owns one key of S and every 32nd
//                   column of O; the transposition 32 x 32, 256 threads
// Shared memory     Q 16 KB + K 16 KB + V 16 KB + P 4 KB at head_dim 128; the transposition 4.1 KB
// Expected effect   the 8-way conflict of the K reads is gone without padding, for one more trip of
//                   K to HBM and back and as much memory as K takes.

#include <cfloat>

#include "kernels/catalogue.h"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"

namespace {

constexpr int Bc = 32;  // keys of a tile: one a lane
constexpr int kTransposeThreads = 256;

template <int Br, int Warps, int D>
struct Attention {
  static constexpr int kThreads = Warps * 32;
  static constexpr int kRows = Br / Warps;  // rows a warp owns
  static constexpr int kColumns = D / 32;   // columns of O a lane owns
  static constexpr std::size_t kSharedBytes = (Br * D + D * Bc + Bc * D + Br * Bc) * sizeof(float);
  static_assert(kRows * Warps == Br, "each warp owns whole rows");
  static_assert(kColumns * 32 == D, "the lanes of a warp share the columns of O");

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
__device__ __forceinline__ void attention(const float* Q, const float* K_t, const float* V,
                                          float* O_out, int seq_q, int seq_kv, float scale,
                                          int diagonal) {
  using A = Attention<Br, Warps, D>;
  extern __shared__ __align__(16) float shared[];
  float* const q_tile = shared;
  float* const k_tile = q_tile + Br * D;
  float* const v_tile = k_tile + D * Bc;
  float* const p_tile = v_tile + Bc * D;
  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * A::kRows;

  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  const int first_row = blockIdx.x * Br;
  Q += (head * seq_q + first_row) * D;
  O_out += (head * seq_q + first_row) * D;
  K_t += head * seq_kv * D;
  V += head * seq_kv * D;

  float O[A::kRows][A::kColumns] = {}, row_max[A::kRows], row_sum[A::kRows];
#pragma unroll
  for (int r = 0; r < A::kRows; ++r) {
    row_max[r] = -FLT_MAX;  // not -INFINITY: -INFINITY minus itself is NaN
    row_sum[r] = 0.f;
  }
  A::template load_tile<Br, D>(q_tile, Q, D);

  for (int j = 0; j < seq_kv; j += Bc) {
    A::template load_tile<D, Bc>(k_tile, K_t + j, seq_kv);
    A::template load_tile<Bc, D>(v_tile, V + int64_t{j} * D, D);
    __syncthreads();  // the tiles have landed

    float S[A::kRows] = {};
    A::multiply_qk(S, q_tile + warp_row * D, k_tile + lane);
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

// The transposition: K, [seq_kv, dim] for each head, becomes [dim, seq_kv].
extern "C" __global__ void __launch_bounds__(kTransposeThreads)
    fa_a5_transposed_k_transpose(const float* K, float* K_t, int seq_kv, int dim) {
  __shared__ float tile[32][33];  // padded, so that its columns lie in different banks
  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  const int first_key = blockIdx.x / (dim / 32) * 32, first_d = blockIdx.x % (dim / 32) * 32;
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  K += (head * seq_kv + first_key) * dim + first_d;
  K_t += (head * dim + first_d) * seq_kv + first_key;
#pragma unroll
  for (int i = y; i < 32; i += kTransposeThreads / 32) tile[i][x] = K[i * dim + x];
  __syncthreads();
#pragma unroll
  for (int i = y; i < 32; i += kTransposeThreads / 32) K_t[int64_t{i} * seq_kv + x] = tile[x][i];
}

#define ENTRY(name, Br, Warps, D)                                                             \
  extern "C" __global__ void __launch_bounds__(Warps * 32)                                    \
      name(const float* Q, const float* K_t, const float* V, float* O, int seq_q, int seq_kv, \
           float scale, int diagonal) {                                                       \
    attention<Br, Warps, D>(Q, K_t, V, O, seq_q, seq_kv, scale, diagonal);                    \
  }
#define INSTANCE(name, Br, Warps, D)                                       \
  {#name, reinterpret_cast<const void*>(name), D, fa::Tile{Br, Bc, Warps}, \
   Attention<Br, Warps, D>::kSharedBytes},

#define INSTANCES(X)                     \
  X(fa_a5_transposed_k_d128, 32, 4, 128) \
  X(fa_a5_transposed_k_d64, 32, 4, 64)   \
  X(fa_a5_transposed_k_d32, 32, 4, 32)

INSTANCES(ENTRY)

namespace {

const fa::Instance kInstances[] = {INSTANCES(INSTANCE)};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  const auto seq_q = static_cast<std::int32_t>(problem.seq_q);
  const auto seq_kv = static_cast<std::int32_t>(problem.seq_kv);
  fa::Launch transpose;
  transpose.entry = "fa_a5_transposed_k_transpose";
  transpose.kernel = reinterpret_cast<const void*>(fa_a5_transposed_k_transpose);
  transpose.grid = {problem.seq_kv / 32 * (problem.head_dim / 32), problem.heads, problem.batch};
  transpose.block = kTransposeThreads;
  transpose.arguments = {fa::Tensor::k, fa::ScratchRef{0}, seq_kv,
                         static_cast<std::int32_t>(problem.head_dim)};
  fa::Launch launch;
  launch.entry = instance.entry;
  launch.kernel = instance.kernel;
  launch.grid = {problem.seq_q / instance.tile.Br, problem.heads, problem.batch};
  launch.block = instance.tile.warps * 32;
  launch.dynamic_shared = instance.shared_bytes;
  launch.arguments = {fa::Tensor::q, fa::ScratchRef{0}, fa::Tensor::v, fa::Tensor::o, seq_q, seq_kv,
                      static_cast<float>(problem.scale()),
                      // The last key that query 0 sees; without a mask, one past the end.
                      problem.causal ? seq_kv - seq_q : seq_kv};
  return fa::LaunchPlan{{transpose, launch}, {{"K^T", problem.kv_elements() * 4}}};
}

}  // namespace

namespace fa {
extern const RungKernels kernels_a5_transposed_k;
const RungKernels kernels_a5_transposed_k{kInstances, plan};
}  // namespace fa
