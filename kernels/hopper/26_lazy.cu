// 26_lazy           parent: 25_persistent
// Idea: the reference of a row need not be its maximum. It moves only when the maximum has grown by
// more than 8 (a factor of 256, which P in halves can hold); as long as no row of the warp moves, O
// is not rescaled at all.
//
// Tile              Br = 128, Bc = 128, 4 producer warps + 2 x 4 consumer warps x 16 rows
// Shared memory     Q 32 KB + 6 slots of 32 KB at head_dim 128
// Expected effect   64 of some 460 instructions a step are skipped, and with them the time between
//                   the end of P V and the next products.

#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/catalogue.h"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace {

template <int Br, int Bc, int Slots, int D>
struct Attention {
  static constexpr int kConsumers = Br / 64;  // warpgroups of 64 query rows
  static constexpr int kThreads = 128 * (1 + kConsumers);
  static constexpr int kQueryBytes = 64 * D * 2;  // Q of one consumer
  static constexpr int kTileBytes = Bc * D * 2;   // a slot: K or V of one step
  static constexpr float kSlack = 8;              // P may reach 2^8
  static constexpr int kAlign = 1024;             // of tiles with the 128-byte swizzle
  static constexpr std::size_t kSharedBytes =
      kAlign + kConsumers * kQueryBytes + Slots * kTileBytes + 8 * (2 * kConsumers + 2 * Slots);
  static_assert(Br % 64 == 0, "a consumer warpgroup owns the 64 rows of one wgmma");
  static_assert(Bc % 16 == 0, "P V takes keys in steps of 16, the k of one wgmma");
  static_assert(D % 64 == 0, "a panel of the 128-byte swizzle is 64 columns wide");

  // A place in the ring, and the parity of the round there.
  struct Place {
    int slot = 0, phase = 0;
    __device__ void next() {
      if (++slot == Slots) slot = 0, phase ^= 1;
    }
  };

  // What a thread knows of its two rows, lane/4 and lane/4 + 8 of the warp's 16: the reference,
  // near the maximum times scale * log2(e); the sum over the thread's own columns.
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
      tile_max *= scale_log2;
      const float new_max = tile_max > rows.max[r] + kSlack ? tile_max : rows.max[r];
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
    if (!__any_sync(0xffffffff, rows.alpha[0] != 1.f || rows.alpha[1] != 1.f)) return;
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

template <int Br, int Bc, int Slots, int D>
__device__ __forceinline__ void attention(const CUtensorMap& Q, const CUtensorMap& K,
                                          const CUtensorMap& V, half* O_out, float* LSE, int heads,
                                          int seq_q, int seq_kv, float scale_log2) {
  using A = Attention<Br, Bc, Slots, D>;
  extern __shared__ unsigned char shared[];
  const uint32_t q_tile = (shared_address(shared) + A::kAlign - 1) & ~(A::kAlign - 1);
  const uint32_t ring = q_tile + A::kConsumers * A::kQueryBytes;
  // mbarriers, 8 bytes each
  const uint32_t q_full = ring + Slots * A::kTileBytes, q_empty = q_full + 8 * A::kConsumers;
  const uint32_t full = q_empty + 8 * A::kConsumers, empty = full + 8 * Slots;
  const int row_tiles = seq_q / Br, tiles = row_tiles * heads;
  const int steps = seq_kv / Bc;

  if (threadIdx.x == 0) {
    for (int i = 0; i < A::kConsumers; ++i) {
      mbarrier_init(q_full + 8 * i, 1);
      mbarrier_init(q_empty + 8 * i, 1);
    }
    for (int i = 0; i < Slots; ++i) {
      mbarrier_init(full + 8 * i, 1);
      mbarrier_init(empty + 8 * i, A::kConsumers);
    }
    mbarrier_init_fence();
  }
  __syncthreads();

  // The shuffle tells the compiler that all lanes agree: descriptors stay in uniform registers.
  const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0) - 1;
  if (group < 0) {  // the producers: warp 0 for K and V, warp 1 for Q
    registers_release<24>();
    if (threadIdx.x >= 64 || !elect_one()) return;
    typename A::Place at;
    const auto load = [&](const CUtensorMap& map, int j, int head) {
      mbarrier_wait(empty + 8 * at.slot, at.phase ^ 1);
      mbarrier_expect(full + 8 * at.slot, A::kTileBytes);
      tma_load(ring + at.slot * A::kTileBytes, map, 0, j * Bc, 0, head, full + 8 * at.slot);
      at.next();
    };
    int phase = 0;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x, phase ^= 1) {
      const int head = t / row_tiles, first_row = t % row_tiles * Br;
      if (threadIdx.x < 32) {
#pragma unroll 1
        for (int j = 0; j < steps; ++j) {
          load(K, j, head);
          load(V, j, head);
        }
      } else {
        for (int i = 0; i < A::kConsumers; ++i) {
          mbarrier_wait(q_empty + 8 * i, phase ^ 1);
          mbarrier_expect(q_full + 8 * i, A::kQueryBytes);
          tma_load(q_tile + i * A::kQueryBytes, Q, 0, first_row + i * 64, 0, head, q_full + 8 * i);
        }
      }
    }
    return;
  }

  registers_acquire<240>();
  const int thread = threadIdx.x % 128, lane = thread % 32;
  typename A::Place at;
  const auto await = [&](const typename A::Place& p) { mbarrier_wait(full + 8 * p.slot, p.phase); };
  const auto release = [&](const typename A::Place& p) {
    if (thread == 0) mbarrier_arrive(empty + 8 * p.slot);
  };
  const auto tile = [&](const typename A::Place& p) {
    return wgmma_descriptor(ring + p.slot * A::kTileBytes, Bc * 128);
  };

  const uint64_t q = wgmma_descriptor(q_tile + group * A::kQueryBytes, 64 * 128);

  int phase = 0;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, phase ^= 1) {
    const int head = t / row_tiles, first_row = t % row_tiles * Br;
    float O[D / 2] = {};
    typename A::Rows rows;
    mbarrier_wait(q_full + 8 * group, phase);

    float S[Bc / 2];
    uint32_t P[Bc / 16][4];
    await(at);
    wgmma_fence();
    A::multiply_qk(S, q, tile(at));
    wgmma_wait<0>();
    release(at);
    A::softmax(S, rows, scale_log2);
    A::pack(P, S);
    at.next();

    for (int j = 1; j < steps; ++j) {
      const typename A::Place v = at;
      at.next();
      await(at);
      wgmma_fence();
      A::multiply_qk(S, q, tile(at));  // of this step
      await(v);
      wgmma_fence();
      A::multiply_pv(O, P, tile(v));  // of the step before
      wgmma_wait<1>();
      release(at);
      A::softmax(S, rows, scale_log2);
      wgmma_wait<0>();  // P may be written, O be read
      release(v);
      A::rescale(O, rows);
      A::pack(P, S);
      at.next();
    }
    if (thread == 0) mbarrier_arrive(q_empty + 8 * group);
    await(at);
    wgmma_fence();
    A::multiply_pv(O, P, tile(at));
    wgmma_wait<0>();
    release(at);
    at.next();

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
}

}  // namespace

#define ENTRY(name, Br, Bc, slots, D)                                                        \
  extern "C" __global__ void __launch_bounds__(Attention<Br, Bc, slots, D>::kThreads, 1)     \
      name(const __grid_constant__ CUtensorMap Q, const __grid_constant__ CUtensorMap K,     \
           const __grid_constant__ CUtensorMap V, half* O, float* LSE, int heads, int seq_q, \
           int seq_kv, float scale_log2) {                                                   \
    attention<Br, Bc, slots, D>(Q, K, V, O, LSE, heads, seq_q, seq_kv, scale_log2);          \
  }
#define INSTANCE(name, Br, Bc, slots, D)                         \
  {#name, reinterpret_cast<const void*>(name), D,                \
   fa::Tile{Br, Bc, Attention<Br, Bc, slots, D>::kThreads / 32}, \
   Attention<Br, Bc, slots, D>::kSharedBytes},

#define INSTANCES(X)                   \
  X(fa_26_lazy_d128, 128, 128, 6, 128) \
  X(fa_26_lazy_d64, 128, 128, 10, 64)

INSTANCES(ENTRY)

namespace {

constexpr int64_t kMultiprocessors = 132;  // of an H100 or H200; others are served, less evenly

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
  const int64_t heads = problem.batch * problem.heads;
  launch.grid = {std::min(heads * (problem.seq_q / instance.tile.Br), kMultiprocessors)};
  launch.block = instance.tile.warps * 32;
  launch.dynamic_shared = instance.shared_bytes;
  launch.arguments = {tile_map(fa::Tensor::q, problem, problem.seq_q, 64),
                      tile_map(fa::Tensor::k, problem, problem.seq_kv, instance.tile.Bc),
                      tile_map(fa::Tensor::v, problem, problem.seq_kv, instance.tile.Bc),
                      fa::Tensor::o,
                      fa::Tensor::lse,
                      static_cast<std::int32_t>(heads),
                      static_cast<std::int32_t>(problem.seq_q),
                      static_cast<std::int32_t>(problem.seq_kv),
                      static_cast<float>(problem.scale() * 1.4426950408889634)};
  return fa::LaunchPlan{{launch}};
}

}  // namespace

namespace fa {
extern const RungKernels kernels_26_lazy;
const RungKernels kernels_26_lazy{kInstances, plan};
}  // namespace fa
