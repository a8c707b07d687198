// 21_wgmma          parent: 20_tma
// Idea: wgmma. A warpgroup of four warps hands whole products to the tensor cores and waits for
// them: Q, K and V go from shared memory into the unit, S is in registers and becomes P there.
//
// Tile              Br = 128, Bc = 128, 2 warpgroups x 4 warps x 16 rows
// Shared memory     Q 32 KB + 2 stages of K 32 KB and V 32 KB at head_dim 128
// Expected effect   no ldmatrix, one instruction for 64 rows instead of 64 mma.sync, and a rate of
//                   the tensor cores that mma.sync does not reach. Serial: product, softmax,
//                   product.

#include <cuda_fp16.h>

#include "kernels/catalogue.h"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace {

template <int Br, int Bc, int D>
struct Attention {
  static constexpr int kWarpgroups = Br / 64;  // of 64 query rows each
  static constexpr int kThreads = 128 * kWarpgroups;
  static constexpr int kQueryBytes = 64 * D * 2;  // Q of one warpgroup
  static constexpr int kTileBytes = Bc * D * 2;   // K or V of one step
  static constexpr int kAlign = 1024;             // of tiles with the 128-byte swizzle
  static constexpr std::size_t kSharedBytes =
      kAlign + kWarpgroups * kQueryBytes + 2 * 2 * kTileBytes + 8 * 3;
  static_assert(Br % 64 == 0, "a warpgroup owns the 64 rows of one wgmma");
  static_assert(Bc % 16 == 0, "P V takes keys in steps of 16, the k of one wgmma");
  static_assert(D % 64 == 0, "a panel of the 128-byte swizzle is 64 columns wide");

  // What a thread knows of its two rows, lane/4 and lane/4 + 8 of the warp's 16; the maximum times
  // scale * log2(e), the sum over the thread's own columns.
  struct Rows {
    float max[2] = {-INFINITY, -INFINITY}, sum[2] = {}, alpha[2];
  };

  // S = Q K^T, in the background.
  __device__ static void multiply_qk(float (&S)[Bc / 2], uint64_t q, uint64_t k) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
      wgmma(S, q + i / 4 * (64 * 128 >> 4) + i % 4 * 2, k + i / 4 * (Bc * 128 >> 4) + i % 4 * 2,
            i > 0);
    wgmma_commit();
  }

  // S becomes the exponentials; alpha is the factor of all that was summed before.
  __device__ static void softmax(float (&S)[Bc / 2], Rows& rows, float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float tile_max = -INFINITY;
#pragma unroll
      for (int i = 2 * r; i < Bc / 2; i += 4) tile_max = fmaxf(tile_max, fmaxf(S[i], S[i + 1]));
      tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffff, tile_max, 1));
      tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffff, tile_max, 2));
      const float new_max = fmaxf(rows.max[r], tile_max * scale_log2);
      rows.alpha[r] = ex2_approx(rows.max[r] - new_max);
      rows.max[r] = new_max;
      rows.sum[r] *= rows.alpha[r];
#pragma unroll
      for (int i = 2 * r; i < Bc / 2; i += 4) {
        S[i] = ex2_approx(fmaf(S[i], scale_log2, -new_max));
        S[i + 1] = ex2_approx(fmaf(S[i + 1], scale_log2, -new_max));
        rows.sum[r] += S[i] + S[i + 1];
      }
    }
  }

  __device__ static void rescale(float (&O)[D / 2], const Rows& rows) {
#pragma unroll
    for (int i = 0; i < D / 2; ++i) O[i] *= rows.alpha[i / 2 % 2];
  }

  // The accumulator layout, packed to halves, is the layout of an A operand.
  __device__ static void pack(uint32_t (&P)[Bc / 16][4], const float (&S)[Bc / 2]) {
#pragma unroll
    for (int i = 0; i < Bc / 4; ++i) {
      const half2 p = __floats2half2_rn(S[2 * i], S[2 * i + 1]);
      P[i / 4][i % 4] = reinterpret_cast<const uint32_t&>(p);
    }
  }

  // O += P V, in the background.
  __device__ static void multiply_pv(float (&O)[D / 2], const uint32_t (&P)[Bc / 16][4],
                                     uint64_t v) {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) wgmma_transposed(O, P[i], v + i * 128, 1);
    wgmma_commit();
  }
};

template <int Br, int Bc, int D>
__device__ __forceinline__ void attention(const CUtensorMap& Q, const CUtensorMap& K,
                                          const CUtensorMap& V, half* O_out, float* LSE, int seq_q,
                                          int seq_kv, float scale_log2) {
  using A = Attention<Br, Bc, D>;
  extern __shared__ unsigned char shared[];
  const uint32_t q_tile = (shared_address(shared) + A::kAlign - 1) & ~(A::kAlign - 1);
  const uint32_t stages = q_tile + A::kWarpgroups * A::kQueryBytes;
  const uint32_t q_full = stages + 2 * 2 * A::kTileBytes;
  const uint32_t full = q_full + 8;  // mbarriers, 8 bytes each
  const int head = blockIdx.z * gridDim.y + blockIdx.y;
  const int first_row = blockIdx.x * Br;
  const int steps = seq_kv / Bc;

  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) mbarrier_init(q_full + 8 * i, 1);
    mbarrier_init_fence();
  }
  __syncthreads();

  const auto load = [&](int j) {
    const uint32_t k_tile = stages + j % 2 * 2 * A::kTileBytes;
    mbarrier_expect(full + j % 2 * 8, 2 * A::kTileBytes);
    tma_load(k_tile, K, 0, j * Bc, 0, head, full + j % 2 * 8);
    tma_load(k_tile + A::kTileBytes, V, 0, j * Bc, 0, head, full + j % 2 * 8);
  };
  if (threadIdx.x == 0) {
    mbarrier_expect(q_full, A::kWarpgroups * A::kQueryBytes);
    for (int i = 0; i < A::kWarpgroups; ++i)
      tma_load(q_tile + i * A::kQueryBytes, Q, 0, first_row + i * 64, 0, head, q_full);
    for (int j = 0; j < 2 && j < steps; ++j) load(j);
  }

  // The shuffle tells the compiler that all lanes agree: descriptors stay in uniform registers.
  const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  const int thread = threadIdx.x % 128, lane = thread % 32;
  float O[D / 2] = {};
  typename A::Rows rows;
  const uint64_t q = wgmma_descriptor(q_tile + group * A::kQueryBytes, 64 * 128);
  mbarrier_wait(q_full, 0);

  float S[Bc / 2];
  uint32_t P[Bc / 16][4];
  for (int j = 0; j < steps; ++j) {
    const uint64_t k = wgmma_descriptor(stages + j % 2 * 2 * A::kTileBytes, Bc * 128);
    mbarrier_wait(full + j % 2 * 8, j / 2 % 2);
    wgmma_fence();
    A::multiply_qk(S, q, k);
    wgmma_wait<0>();
    A::softmax(S, rows, scale_log2);
    A::rescale(O, rows);
    A::pack(P, S);
    wgmma_fence();
    A::multiply_pv(O, P, k + (A::kTileBytes >> 4));
    wgmma_wait<0>();
    if (j + 2 < steps) {
      __syncthreads();  // nobody reads K_j and V_j any more
      if (threadIdx.x == 0) load(j + 2);
    }
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float sum = rows.sum[r];
    sum += __shfl_xor_sync(0xffffffff, sum, 1);
    sum += __shfl_xor_sync(0xffffffff, sum, 2);
    const float inverse = __fdividef(1.f, sum);
    const int row = first_row + group * 64 + thread / 32 * 16 + r * 8 + lane / 4;
    half* out = O_out + (int64_t{head} * seq_q + row) * D + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
      *reinterpret_cast<half2*>(out + n * 8) =
          __floats2half2_rn(O[4 * n + 2 * r] * inverse, O[4 * n + 2 * r + 1] * inverse);
    if (LSE && lane % 4 == 0)
      LSE[int64_t{head} * seq_q + row] = (rows.max[r] + __log2f(sum)) * 0.6931471805599453f;
  }
}

}  // namespace

#define ENTRY(name, Br, Bc, D)                                                                \
  extern "C" __global__ void __launch_bounds__(Attention<Br, Bc, D>::kThreads, 1)             \
      name(const __grid_constant__ CUtensorMap Q, const __grid_constant__ CUtensorMap K,      \
           const __grid_constant__ CUtensorMap V, half* O, float* LSE, int seq_q, int seq_kv, \
           float scale_log2) {                                                                \
    attention<Br, Bc, D>(Q, K, V, O, LSE, seq_q, seq_kv, scale_log2);                         \
  }
#define INSTANCE(name, Br, Bc, D)                 \
  {#name, reinterpret_cast<const void*>(name), D, \
   fa::Tile{Br, Bc, Attention<Br, Bc, D>::kThreads / 32}, Attention<Br, Bc, D>::kSharedBytes},

#define INSTANCES(X)                 \
  X(fa_21_wgmma_d128, 128, 128, 128) \
  X(fa_21_wgmma_d64, 128, 128, 64)

INSTANCES(ENTRY)

namespace {

const fa::Instance kInstances[] = {INSTANCES(INSTANCE)};

// {64 columns, sequence, panels, batch and heads}: one copy brings all panels of a tile.
fa::TensorMap tile_map(fa::Tensor tensor, const fa::Problem& problem, int64_t seq, int rows) {
  const int64_t D = problem.head_dim;
  return {.tensor = tensor,
          .rank = 4,
          .extents = {64, seq, D / 64, problem.batch * problem.heads},
          .strides = {1, D, 64, seq * D},
          .box = {64, rows, problem.head_dim / 64, 1},
          .swizzle = fa::Swizzle::b128};
}

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  fa::Launch launch;
  launch.entry = instance.entry;
  launch.kernel = instance.kernel;
  launch.grid = {problem.seq_q / instance.tile.Br, problem.heads, problem.batch};
  launch.block = instance.tile.warps * 32;
  launch.dynamic_shared = instance.shared_bytes;
  launch.arguments = {tile_map(fa::Tensor::q, problem, problem.seq_q, 64),
                      tile_map(fa::Tensor::k, problem, problem.seq_kv, instance.tile.Bc),
                      tile_map(fa::Tensor::v, problem, problem.seq_kv, instance.tile.Bc),
                      fa::Tensor::o,
                      fa::Tensor::lse,
                      static_cast<std::int32_t>(problem.seq_q),
                      static_cast<std::int32_t>(problem.seq_kv),
                      static_cast<float>(problem.scale() * 1.4426950408889634)};
  return fa::LaunchPlan{{launch}};
}

}  // namespace

namespace fa {
extern const RungKernels kernels_21_wgmma;
const RungKernels kernels_21_wgmma{kInstances, plan};
}  // namespace fa
