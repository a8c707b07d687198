// 31_causal         parent: 30_wide_stores
// Idea: causal, and any sequence length. Blocks right of the diagonal are not visited; those that
// it crosses, or the end of the keys, are masked in a loop of their own after the others. The tiles
// of a head are dealt longest first, forth and back.
//
// Tile              Br = 128, Bc = 128, 4 producer warps + 2 x 4 consumer warps x 16 rows
// Shared memory     Q 32 KB + 6 slots of 32 KB at head_dim 128
// Expected effect   half the work for causal: the rate (half the operations) stays near the
//                   non-causal one, less the diagonal blocks, which are half wasted.

#include <cuda_fp16.h>

#include <algorithm>
#include <climits>
#include <type_traits>

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
  static constexpr int kFlagWords = 32;           // a bit for each tile of the block
  static constexpr int kAlign = 1024;             // of tiles with the 128-byte swizzle
  static constexpr std::size_t kSharedBytes =
      kAlign + kConsumers * kQueryBytes + Slots * kTileBytes +
      8 * (2 * kConsumers + 2 * Slots + 1) + 4 * (1 + kFlagWords);
  static_assert(Br % 64 == 0, "a consumer warpgroup owns the 64 rows of one wgmma");
  static_assert(Bc % 16 == 0, "P V takes keys in steps of 16, the k of one wgmma");
  static_assert(D % 64 == 0, "a panel of the 128-byte swizzle is 64 columns wide");

  // A place in the ring, and the parity of the round there.
  struct Place {
    int slot = 0, phase = 0;
    __device__ void next() {
      if (++slot == Slots) slot = 0, phase ^= 1;
    }
    __device__ Place after() const {
      Place place = *this;
      place.next();
      return place;
    }
  };

  // What a thread knows of its two rows, lane/4 and lane/4 + 8 of the warp's 16: the reference,
  // near the maximum times scale * log2(e); the sum over the thread's own columns.
  struct Rows {
    float max[2] = {-1e30f, -1e30f}, sum[2] = {}, alpha[2];  // finite even if no key is visible
  };

  // S = Q K^T, in the background.
  __device__ static void multiply_qk(float (&S)[Bc / 2], const uint32_t (&q)[D / 16][4],
                                     uint64_t k) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i) wgmma(S, q[i], k + i / 4 * (Bc * 128 >> 4) + i % 4 * 2, i > 0);
    wgmma_commit();
  }

  // Hides the keys from a row's limit on; both count from the block's first key.
  __device__ static void mask(float (&S)[Bc / 2], int limit0, int limit1, int lane) {
#pragma unroll
    for (int i = 0; i < Bc / 2; ++i) {
      const int key = i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (key >= (i / 2 % 2 == 0 ? limit0 : limit1)) S[i] = -INFINITY;
    }
  }

  // S becomes the exponentials. If the reference may move, alpha is the factor of all that was
  // summed before.
  template <bool Moves>
  __device__ static void softmax(float (&S)[Bc / 2], Rows& rows, float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if constexpr (Moves) {
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
      }
#pragma unroll
      for (int i = 2 * r; i < Bc / 2; i += 4) {
        S[i] = ex2_approx(fmaf(S[i], scale_log2, -rows.max[r]));
        S[i + 1] = ex2_approx(fmaf(S[i + 1], scale_log2, -rows.max[r]));
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

  // Four adjacent lanes transpose a 4 x 4 matrix of which each holds a row: lane i gets column i.
  __device__ static void transpose(uint32_t (&x)[4], int lane) {
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
      const bool upper = (lane & bit) != 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i & bit) continue;
        const uint32_t given = upper ? x[i] : x[i + bit];
        const uint32_t got = __shfl_xor_sync(0xffffffff, given, bit);
        (upper ? x[i] : x[i + bit]) = got;
      }
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
                                          int seq_q, int seq_kv, int causal, float scale_log2) {
  using A = Attention<Br, Bc, Slots, D>;
  extern __shared__ unsigned char shared[];
  const uint32_t q_tile = (shared_address(shared) + A::kAlign - 1) & ~(A::kAlign - 1);
  const uint32_t ring = q_tile + A::kConsumers * A::kQueryBytes;
  // mbarriers, 8 bytes each
  const uint32_t q_full = ring + Slots * A::kTileBytes, q_empty = q_full + 8 * A::kConsumers;
  const uint32_t full = q_empty + 8 * A::kConsumers, empty = full + 8 * Slots;
  const uint32_t done = empty + 8 * Slots;
  // Tiles that overflowed: the first word for any, then a bit each.
  uint32_t* overflow = reinterpret_cast<uint32_t*>(shared + (done + 8 - shared_address(shared)));
  const int row_tiles = (seq_q + Br - 1) / Br, tiles = row_tiles * heads;
  // The keys that a row sees beyond its own number; for all of them, beyond any row.
  const int diagonal = causal ? seq_kv - seq_q + 1 : INT_MAX / 2;
  const auto visible = [&](int row) { return max(0, min(seq_kv, row + diagonal)); };
  struct Tile {
    int head, first_row, full, steps;  // steps without a mask, and all
  };
  // Tiles are dealt forth and back: who had the longest of one turn has the shortest of the next.
  const auto tile_of = [&](int turn) {
    const int blocks = gridDim.x, block = blockIdx.x;
    const int t = turn * blocks + (turn % 2 == 0 ? block : blocks - 1 - block);
    return t < tiles ? t : -1;
  };
  // Heads and their row tiles last to first: the longest of a head comes first.
  const auto tile_at = [&](int t) {
    const int head = heads - 1 - t / row_tiles, first_row = (tiles - 1 - t - head * row_tiles) * Br;
    return Tile{head, first_row, visible(first_row) / Bc,
                (visible(min(first_row + Br, seq_q) - 1) + Bc - 1) / Bc};
  };

  if (threadIdx.x == 0) {
    for (int i = 0; i < A::kConsumers; ++i) {
      mbarrier_init(q_full + 8 * i, 1);
      mbarrier_init(q_empty + 8 * i, 1);
    }
    for (int i = 0; i < Slots; ++i) {
      mbarrier_init(full + 8 * i, 1);
      mbarrier_init(empty + 8 * i, A::kConsumers);
    }
    mbarrier_init(done, A::kConsumers);
    mbarrier_init_fence();
  }
  if (threadIdx.x <= A::kFlagWords) overflow[threadIdx.x] = 0;
  __syncthreads();

  // The second pass repeats what overflowed; tiles that share a bit are repeated together.
  const auto begins = [&](int pass) {
    if (pass == 1) mbarrier_wait(done, 0);
    return pass == 0 || overflow[0] != 0;
  };
  const auto takes = [&](int pass, int turn) {
    return pass == 0 || (overflow[1 + turn / 32 % A::kFlagWords] >> turn % 32 & 1) != 0;
  };

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
    for (int pass = 0; pass < 2 && begins(pass); ++pass)
      for (int turn = 0, t; (t = tile_of(turn)) >= 0; ++turn) {
        if (!takes(pass, turn)) continue;
        const auto [head, first_row, full_steps, steps] = tile_at(t);
        if (steps == 0) continue;
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
            tma_load(q_tile + i * A::kQueryBytes, Q, 0, first_row + i * 64, 0, head,
                     q_full + 8 * i);
          }
        }
        phase ^= 1;
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

  // Where this lane points ldmatrix in the first panel of its warp's rows of Q.
  const uint32_t q_lane = q_tile + group * A::kQueryBytes + (thread / 32 * 16 + lane % 16) * 128;

  int phase = 0;
  for (int pass = 0; pass < 2 && begins(pass); ++pass) {
    for (int turn = 0, t; (t = tile_of(turn)) >= 0; ++turn) {
      if (!takes(pass, turn)) continue;
      const auto [head, first_row, full_steps, steps] = tile_at(t);
      const int row0 = first_row + group * 64 + thread / 32 * 16 + lane / 4;
      float O[D / 2] = {};
      typename A::Rows rows;
      if (steps > 0) {
        uint32_t q[D / 16][4];
        mbarrier_wait(q_full + 8 * group, phase);
#pragma unroll
        for (int i = 0; i < D / 16; ++i)
          ldmatrix_x4(q[i],
                      q_lane + i / 4 * (64 * 128) + ((i % 4 * 2 + lane / 16 ^ lane % 8) << 4));

        float S[Bc / 2];
        uint32_t P[Bc / 16][4];
        await(at);
        wgmma_fence();
        A::multiply_qk(S, q, tile(at));
        wgmma_wait<0>();
        release(at);
        // Only a product that has used them shows that the ldmatrix of all four warps have read Q.
        barrier_sync(1 + group, 128);
        if (thread == 0) mbarrier_arrive(q_empty + 8 * group);
        if (full_steps == 0) A::mask(S, visible(row0), visible(row0 + 8), lane);
        A::template softmax<true>(S, rows, scale_log2);
        A::pack(P, S);
        at.next();
        if (steps > 1) await(at.after());

        const auto step = [&](auto reference_moves, auto masked, int j) {
          constexpr bool moves = reference_moves.value;
          const typename A::Place v = at;
          at.next();
          wgmma_fence();
          A::multiply_qk(S, q, tile(at));  // of this step
          await(v);
          wgmma_fence();
          A::multiply_pv(O, P, tile(v));  // of the step before
          wgmma_wait<1>();
          release(at);
          if constexpr (masked.value)
            A::mask(S, visible(row0) - j * Bc, visible(row0 + 8) - j * Bc, lane);
          A::template softmax<moves>(S, rows, scale_log2);
          if (j + 1 < steps) await(at.after().after());  // the next K
          wgmma_wait<0>();                               // P may be written, O be read
          release(v);
          if constexpr (moves) A::rescale(O, rows);
          A::pack(P, S);
          at.next();
        };
        int j = 1;
        if (pass == 0) {
          for (; j < full_steps; ++j) step(std::false_type{}, std::false_type{}, j);
          for (; j < steps; ++j) step(std::false_type{}, std::true_type{}, j);
        }
        for (; j < steps; ++j) step(std::true_type{}, std::true_type{}, j);
        await(at);
        wgmma_fence();
        A::multiply_pv(O, P, tile(at));
        wgmma_wait<0>();
        release(at);
        at.next();
        phase ^= 1;
      }

#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float sum = rows.sum[r];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        // An infinite P makes every column of the row infinite or NaN.
        const bool overflowed = row0 + r * 8 < seq_q && !(fabsf(O[2 * r]) < INFINITY);
        if (overflowed) {
          atomicOr(overflow, 1);
          atomicOr(overflow + 1 + turn / 32 % A::kFlagWords, 1u << turn % 32);
        }
        const float inverse = overflowed && pass == 0 ? NAN : sum == 0 ? 0 : __fdividef(1.f, sum);
        const int row = row0 + r * 8;
        half* out = O_out + (int64_t{head} * seq_q + row) * D + lane % 4 * 8;
        // What is not NaN there is the first pass's, and stays.
        const bool stays = row >= seq_q || (pass == 1 && !isnan(__half2float(*out)));
#pragma unroll
        for (int n = 0; n < D / 8; n += 4) {
          uint32_t piece[4];
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            const half2 two = __floats2half2_rn(O[4 * (n + k) + 2 * r] * inverse,
                                                O[4 * (n + k) + 2 * r + 1] * inverse);
            piece[k] = reinterpret_cast<const uint32_t&>(two);
          }
          A::transpose(piece, lane);
          if (!stays)
            *reinterpret_cast<uint4*>(out + n * 8) =
                make_uint4(piece[0], piece[1], piece[2], piece[3]);
        }
        if (LSE && lane % 4 == 0 && !stays)
          LSE[int64_t{head} * seq_q + row] = (rows.max[r] + __log2f(sum)) * 0.6931471805599453f;
      }
    }
    barrier_sync(1 + group, 128);
    if (pass == 0 && thread == 0) mbarrier_arrive(done);
  }
}

}  // namespace

#define ENTRY(name, Br, Bc, slots, D)                                                        \
  extern "C" __global__ void __launch_bounds__(Attention<Br, Bc, slots, D>::kThreads, 1)     \
      name(const __grid_constant__ CUtensorMap Q, const __grid_constant__ CUtensorMap K,     \
           const __grid_constant__ CUtensorMap V, half* O, float* LSE, int heads, int seq_q, \
           int seq_kv, int causal, float scale_log2) {                                       \
    attention<Br, Bc, slots, D>(Q, K, V, O, LSE, heads, seq_q, seq_kv, causal, scale_log2);  \
  }
#define INSTANCE(name, Br, Bc, slots, D)                         \
  {#name, reinterpret_cast<const void*>(name), D,                \
   fa::Tile{Br, Bc, Attention<Br, Bc, slots, D>::kThreads / 32}, \
   Attention<Br, Bc, slots, D>::kSharedBytes},

#define INSTANCES(X)                     \
  X(fa_31_causal_d128, 128, 128, 6, 128) \
  X(fa_31_causal_d64, 128, 128, 10, 64)

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
  fa::Launch launch;
  launch.entry = instance.entry;
  launch.kernel = instance.kernel;
  const int64_t heads = problem.batch * problem.heads;
  const int64_t row_tiles = (problem.seq_q + instance.tile.Br - 1) / instance.tile.Br;
  launch.grid = {std::min(heads * row_tiles, kMultiprocessors)};
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
                      static_cast<std::int32_t>(problem.causal),
                      static_cast<float>(problem.scale() * 1.4426950408889634)};
  return fa::LaunchPlan{{launch}};
}

}  // namespace

namespace fa {
extern const RungKernels kernels_31_causal;
const RungKernels kernels_31_causal{kInstances, plan};
}  // namespace fa
