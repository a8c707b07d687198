// 20_tma            parent: 06_batched
// Idea: the copy engine alone. One thread asks the TMA for whole tiles of Q, K and V, already in
// the swizzle, and mbarriers that count bytes tell when they are there. mma.sync multiplies as
// before.
//
// Tile              Br = 128, Bc = 64 (128 at head_dim 64), 4 warps x 32 rows
// Shared memory     Q 32 KB + 2 stages of K 16 KB and V 16 KB at head_dim 128
// Expected effect   no cp.async, no addresses for it, one block barrier a step instead of two; the
//                   tensor cores have the same work in the same order, so a few percent at most.

#include <cuda_fp16.h>

#include "kernels/catalogue.h"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/tma.cuh"

namespace {

template <int Br, int Bc, int Warps, int D>
struct Attention {
  static constexpr int kMTiles = Br / (Warps * 16);  // 16-row tiles a warp owns
  static constexpr int kChunks = D / 8;              // 16-byte chunks of a row
  static constexpr int kQueryBytes = Br * D * 2;
  static constexpr int kTileBytes = Bc * D * 2;  // K or V of one step
  static constexpr int kAlign = 1024;            // of tiles with the 128-byte swizzle
  static constexpr std::size_t kSharedBytes = kAlign + kQueryBytes + 2 * 2 * kTileBytes + 8 * 3;
  static_assert(kMTiles * Warps * 16 == Br, "each warp owns whole 16-row mma tiles");
  static_assert(Bc % 16 == 0, "P V takes keys in steps of 16, the k of one mma");
  static_assert(D % 64 == 0, "a panel of the 128-byte swizzle is 64 columns wide");

  // Byte offset of a 16-byte chunk in a tile of Rows rows, as the TMA writes it: panels of 64
  // columns, the chunk index XORed with the row. The eight rows of one ldmatrix phase are in
  // different banks.
  template <int Rows>
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(chunk / 8 * Rows * 128 + row * 128 + (((chunk ^ row) & 7) << 4));
  }

  // Address of (row0 + row, chunk0 + chunk) from the address of (row0, chunk0), for additions that
  // do not carry. XOR is linear: with constant row and chunk, one XOR and an immediate offset.
  template <int Rows>
  __device__ static uint32_t shift(uint32_t address, int row, int chunk) {
    return (address ^ (((row ^ chunk) & 7) << 4)) + row * 128 + chunk / 8 * Rows * 128;
  }

  // S = Q K^T: each K fragment serves every row tile.
  __device__ static void multiply_qk(float (&S)[kMTiles][Bc / 8][4], uint32_t q, uint32_t k) {
#pragma unroll
    for (int d = 0; d < kChunks; d += 2) {
      uint32_t a[kMTiles][4];
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) ldmatrix_x4(a[m], shift<Br>(q, m * 16, d));
#pragma unroll
      for (int n = 0; n < Bc / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4(b, shift<Bc>(k, n * 8, d));
#pragma unroll
        for (int m = 0; m < kMTiles; ++m) {
          mma_m16n8k16(S[m][n], a[m], b[0], b[1]);
          mma_m16n8k16(S[m][n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }

  // O += P V: each V fragment serves every row tile.
  __device__ static void multiply_pv(float (&O)[kMTiles][D / 8][4],
                                     const uint32_t (&P)[kMTiles][Bc / 16][4], uint32_t v) {
#pragma unroll
    for (int k = 0; k < Bc / 16; ++k) {
#pragma unroll
      for (int n = 0; n < D / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4_trans(b, shift<Bc>(v, k * 16, n));
#pragma unroll
        for (int m = 0; m < kMTiles; ++m) {
          mma_m16n8k16(O[m][n], P[m][k], b[0], b[1]);
          mma_m16n8k16(O[m][n + 1], P[m][k], b[2], b[3]);
        }
      }
    }
  }
};

template <int Br, int Bc, int Warps, int D>
__device__ __forceinline__ void attention(const CUtensorMap& Q, const CUtensorMap& K,
                                          const CUtensorMap& V, half* O_out, float* LSE, int seq_q,
                                          int seq_kv, float scale_log2) {
  using A = Attention<Br, Bc, Warps, D>;
  constexpr int kMTiles = A::kMTiles, kChunks = A::kChunks;
  extern __shared__ unsigned char memory[];
  unsigned char* shared = memory + (-shared_address(memory) & (A::kAlign - 1));
  const uint32_t q_tile = shared_address(shared);
  const uint32_t stages = q_tile + A::kQueryBytes;
  const uint32_t q_full = stages + 2 * 2 * A::kTileBytes;
  const uint32_t full = q_full + 8;  // mbarriers, 8 bytes each
  const int lane = threadIdx.x % 32;
  // The shuffle tells the compiler that all lanes agree: the row stays in a uniform register.
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * kMTiles * 16;

  const int head = blockIdx.z * gridDim.y + blockIdx.y;
  const int first_row = blockIdx.x * Br;
  const int64_t query_row = int64_t{head} * seq_q + first_row;
  const int steps = seq_kv / Bc;

  // Where this lane points ldmatrix: Q as the A operand; K and V as two adjacent B fragments each,
  // in the order that leaves the two registers of a fragment next to each other.
  const uint32_t q_lane = q_tile + A::template offset<Br>(warp_row + lane % 16, lane / 16);
  const uint32_t k_lane = stages + A::template offset<Bc>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  const uint32_t v_lane = stages + A::kTileBytes + A::template offset<Bc>(lane % 16, lane / 16);

  float O[kMTiles][D / 8][4] = {};
  float row_max[kMTiles][2], row_sum[kMTiles][2];  // rows lane/4 and lane/4 + 8 of each row tile
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
    row_max[m][0] = row_max[m][1] = -INFINITY;
    row_sum[m][0] = row_sum[m][1] = 0.f;
  }

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
    mbarrier_expect(q_full, A::kQueryBytes);
    tma_load(q_tile, Q, 0, first_row, 0, head, q_full);
    for (int j = 0; j < 2 && j < steps; ++j) load(j);
  }
  mbarrier_wait(q_full, 0);

  for (int j = 0; j < steps; ++j) {
    const uint32_t stage = j % 2 * 2 * A::kTileBytes;
    mbarrier_wait(full + j % 2 * 8, j / 2 % 2);

    float S[kMTiles][Bc / 8][4] = {};
    A::multiply_qk(S, q_lane, k_lane + stage);

    uint32_t P[kMTiles][Bc / 16][4];
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float tile_max = -INFINITY;
#pragma unroll
        for (int n = 0; n < Bc / 8; ++n)
          tile_max = fmaxf(tile_max, fmaxf(S[m][n][2 * r], S[m][n][2 * r + 1]));
        tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffff, tile_max, 1));
        tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffff, tile_max, 2));
        const float new_max = fmaxf(row_max[m][r], tile_max * scale_log2);
        const float alpha = ex2_approx(row_max[m][r] - new_max);
        row_max[m][r] = new_max;
        row_sum[m][r] *= alpha;
#pragma unroll
        for (int n = 0; n < Bc / 8; ++n) {
          const float p0 = ex2_approx(fmaf(S[m][n][2 * r], scale_log2, -new_max));
          const float p1 = ex2_approx(fmaf(S[m][n][2 * r + 1], scale_log2, -new_max));
          row_sum[m][r] += p0 + p1;
          const half2 p = __floats2half2_rn(p0, p1);
          P[m][n / 2][n % 2 * 2 + r] = reinterpret_cast<const uint32_t&>(p);
        }
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          O[m][n][2 * r] *= alpha;
          O[m][n][2 * r + 1] *= alpha;
        }
      }
    }

    A::multiply_pv(O, P, v_lane + stage);
    if (j + 2 < steps) {
      __syncthreads();  // nobody reads K_j and V_j any more
      if (threadIdx.x == 0) load(j + 2);
    }
  }

  // O / l goes through the warp's own rows of the Q tile, so that the stores are 16 bytes wide.
  __syncwarp();
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = row_sum[m][r];
      sum += __shfl_xor_sync(0xffffffff, sum, 1);
      sum += __shfl_xor_sync(0xffffffff, sum, 2);
      const float inverse = __fdividef(1.f, sum);
      const int row = warp_row + m * 16 + r * 8 + lane / 4;
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        *reinterpret_cast<half2*>(shared + A::template offset<Br>(row, n) + lane % 4 * 4) =
            __floats2half2_rn(O[m][n][2 * r] * inverse, O[m][n][2 * r + 1] * inverse);
      if (LSE && lane % 4 == 0)
        LSE[query_row + row] = (row_max[m][r] + __log2f(sum)) * 0.6931471805599453f;
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < kMTiles * 16 * kChunks; i += 32) {
    const int row = warp_row + i / kChunks, chunk = i % kChunks;
    *reinterpret_cast<uint4*>(O_out + (query_row + row) * D + chunk * 8) =
        *reinterpret_cast<const uint4*>(shared + A::template offset<Br>(row, chunk));
  }
}

}  // namespace

// 8 warps per SM: the budget is 255 registers a thread, which ptxas would otherwise not use up.
#define ENTRY(name, Br, Bc, warps, D)                                                         \
  extern "C" __global__ void __launch_bounds__(warps * 32, 8 / warps)                         \
      name(const __grid_constant__ CUtensorMap Q, const __grid_constant__ CUtensorMap K,      \
           const __grid_constant__ CUtensorMap V, half* O, float* LSE, int seq_q, int seq_kv, \
           float scale_log2) {                                                                \
    attention<Br, Bc, warps, D>(Q, K, V, O, LSE, seq_q, seq_kv, scale_log2);                  \
  }
#define INSTANCE(name, Br, Bc, warps, D)                                   \
  {#name, reinterpret_cast<const void*>(name), D, fa::Tile{Br, Bc, warps}, \
   Attention<Br, Bc, warps, D>::kSharedBytes},

#define INSTANCES(X)                 \
  X(fa_20_tma_d128, 128, 64, 4, 128) \
  X(fa_20_tma_d64, 128, 128, 4, 64)  \
  X(fa_20_tma_128x128w8_d128, 128, 128, 8, 128)

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
  launch.arguments = {tile_map(fa::Tensor::q, problem, problem.seq_q, instance.tile.Br),
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
extern const RungKernels kernels_20_tma;
const RungKernels kernels_20_tma{kInstances, plan};
}  // namespace fa
