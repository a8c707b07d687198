// a4_padded         parent: a3
// Idea: four floats of padding behind each row of the K tile move the rows of neighbouring lanes to
// other banks.
//
// Tile              Br = 32, Bc = 32, 4 warps x 8 rows; a lane owns one key of S and every 32nd
//                   column of O
// Shared memory     Q 16 KB + K 16.5 KB + V 16 KB + P 4 KB at head_dim 128
// Expected effect   the 8-way conflict of the K reads is gone: a float4 from each of 32 rows took
//                   32 wavefronts and takes the 4 that 512 bytes need.
// Variant           doubled: where a row's width must be a power of two, the only padding is the
//                   same again in zeros. Twice the work in Q K^T, and the rows stay in their banks.

#include <cfloat>

#include "kernels/catalogue.h"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"

namespace {

constexpr int Bc = 32;  // keys of a tile: one a lane

template <int Br, int Warps, int D, int Width>
struct Attention {
  static constexpr int kThreads = Warps * 32;
  static constexpr int kRows = Br / Warps;  // rows a warp owns
  static constexpr int kColumns = D / 32;   // columns of O a lane owns
  // Floats from one row of the K tile to the next.
  static constexpr int kPitch = Width == D ? D + 4 : Width;
  static constexpr std::size_t kSharedBytes =
      (Br * Width + Bc * kPitch + Bc * D + Br * Bc) * sizeof(float);
  static_assert(kRows * Warps == Br, "each warp owns whole rows");
  static_assert(kColumns * 32 == D, "the lanes of a warp share the columns of O");

  // Copies Rows rows of D floats; in shared memory they are Pitch apart and, with zeros behind,
  // Columns long.
  template <int Rows, int Pitch, int Columns = D>
  __device__ static void load_tile(float* shared, const float* global) {
#pragma unroll
    for (int i = threadIdx.x * 4; i < Rows * Columns; i += kThreads * 4) {
      const int row = i / Columns, column = i % Columns;
      *reinterpret_cast<float4*>(shared + row * Pitch + column) =
          column < D ? *reinterpret_cast<const float4*>(global + row * D + column) : float4{};
    }
  }

  // S = Q K^T for the warp's rows; `k` is the row of the lane's key.
  __device__ static void multiply_qk(float (&S)[kRows], const float* q, const float* k) {
#pragma unroll 8
    for (int d = 0; d < Width; d += 4) {
      const float4 y = load_shared_v4(k + d);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 x = load_shared_v4(q + r * Width + d);
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

template <int Br, int Warps, int D, int Width>
__device__ __forceinline__ void attention(const float* Q, const float* K, const float* V,
                                          float* O_out, int seq_q, int seq_kv, float scale,
                                          int diagonal) {
  using A = Attention<Br, Warps, D, Width>;
  extern __shared__ __align__(16) float shared[];
  float* const q_tile = shared;
  float* const k_tile = q_tile + Br * Width;
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
  A::template load_tile<Br, Width, Width>(q_tile, Q);

  for (int j = 0; j < seq_kv; j += Bc) {
    A::template load_tile<Bc, A::kPitch, Width>(k_tile, K + int64_t{j} * D);
    A::template load_tile<Bc, D>(v_tile, V + int64_t{j} * D);
    __syncthreads();  // the tiles have landed

    float S[A::kRows] = {};
    A::multiply_qk(S, q_tile + warp_row * Width, k_tile + lane * A::kPitch);
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

#define ENTRY(name, Br, Warps, D, Width)                                                    \
  extern "C" __global__ void __launch_bounds__(Warps * 32)                                  \
      name(const float* Q, const float* K, const float* V, float* O, int seq_q, int seq_kv, \
           float scale, int diagonal) {                                                     \
    attention<Br, Warps, D, Width>(Q, K, V, O, seq_q, seq_kv, scale, diagonal);             \
  }
#define INSTANCE(name, Br, Warps, D, Width)              \
  {#name, reinterpret_cast<const void*>(name), D,        \
   fa::Tile{Br, Bc, Warps, Width == D ? "" : "doubled"}, \
   Attention<Br, Warps, D, Width>::kSharedBytes},

#define INSTANCES(X)                            \
  X(fa_a4_padded_d128, 32, 4, 128, 128)         \
  X(fa_a4_padded_d64, 32, 4, 64, 64)            \
  X(fa_a4_padded_d32, 32, 4, 32, 32)            \
  X(fa_a4_padded_doubled_d128, 32, 4, 128, 256) \
  X(fa_a4_padded_doubled_d64, 32, 4, 64, 128)   \
  X(fa_a4_padded_doubled_d32, 32, 4, 32, 64)

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
extern const RungKernels kernels_a4_padded;
const RungKernels kernels_a4_padded{kInstances, plan};
}  // namespace fa
