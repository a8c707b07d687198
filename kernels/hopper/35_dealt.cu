// 35_dealt
// Idea: the scheduler thread sends a decoded tile instead of its number. It divides the number into
// head and rows ahead of time, and no other warp waits for these divisions.
//
// Tile              Br = 128, Bc = 128, 4 producer warps + 2 x 4 consumer warps x 16 rows; at
//                   head_dim 64 three consumers, Br = 192, Bc = 96
// Shared memory     Q 32 KB + O 32 KB + 5 slots of 32 KB at head_dim 128
// Expected effect   three divisions fewer per tile and warp (two in the PTX), some 200 clocks: 1 to
//                   2 % at N = 512, where a tile takes 15,700 clocks; below 0.5 % at N = 8192.

#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/ptx/stmatrix.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int Slots, int D>
struct Attention {
  static constexpr int kConsumers = Br / 64;  // warpgroups that compute 64 query rows each
  static constexpr int kBlocks = 2, kStride = 64 * kBlocks;  // blocks per cluster, rows per turn
  static constexpr int kThreads = 128 * (1 + kConsumers), kBlocksPerSm = 1, kHeadDim = D;
  static constexpr fa::Tile kTile{Br, Bc, kThreads / 32};
  static constexpr int kRegisters = kConsumers == 2 ? 240 : 160;  // per consumer thread
  static constexpr int kProducerRegisters = kConsumers == 2 ? 24 : 32;
  static constexpr int kAlign = 1024, kQueryBytes = 64 * D * 2;
  static constexpr int kTileBytes = Bc * D * 2;  // a slot: K or V of one key block
  static constexpr float kLargest = 1 << 15;     // a larger row sum is repaired
  static constexpr std::size_t kSharedBytes =
      kAlign + 2 * Br * D * 2 + Slots * kTileBytes + 8 * (2 * kConsumers + 2 * Slots + 2);
  static_assert(Br % 64 == 0, "a warpgroup computes the 64 rows of one wgmma");
  static_assert(kConsumers == 2 || kConsumers == 3, "setmaxnreg has values for two or three");
  static_assert(Bc % 16 == 0, "P V advances by 16 keys, the k of one mma");
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");

  struct RowTile {
    int head, kv_head, first_row;
    int full_key_blocks, key_blocks;  // key blocks that need no mask; key blocks in all
    int loads;                        // key blocks that the cluster loads
  };

  // A slot of the ring K0 V0 K1 V1 ..., and the phase parity of its mbarriers.
  struct Position {
    int slot = 0, parity = 0;

    __device__ void advance() {
      if (++slot == Slots) slot = 0, parity ^= 1;
    }
    __device__ Position next() const {
      Position at = *this;
      at.advance();
      return at;
    }
  };

  // Addresses in shared memory. Swizzled tiles are aligned to kAlign; an mbarrier takes 8 bytes.
  struct Shared {
    uint32_t query, output, ring, query_full, query_empty, full, empty, tile_full, tile_empty;

    __device__ explicit Shared(uint32_t memory) {
      query = (memory + kAlign - 1) & ~(kAlign - 1);
      output = query + Br * D * 2;
      ring = output + Br * D * 2;
      query_full = ring + Slots * kTileBytes;
      query_empty = query_full + 8 * kConsumers;
      full = query_empty + 8 * kConsumers;
      empty = full + 8 * Slots;
      tile_full = empty + 8 * Slots;
      tile_empty = tile_full + 8;
    }
    __device__ void wait_full(Position at) const { mbarrier_wait(full + 8 * at.slot, at.parity); }
    __device__ uint64_t tile(Position at) const {
      return wgmma_descriptor(ring + at.slot * kTileBytes, Bc * 128);
    }
    // Two threads arrive for the warpgroup, one at each block of the cluster: the wait for a
    // wgmma-group ends when the products of all four warps have read the slot.
    __device__ void release(Position at) const {
      if (threadIdx.x % 128 < kBlocks) cluster_arrive(empty + 8 * at.slot, threadIdx.x % 128);
    }
  };

  // Two rows per thread: reference near the maximum, sum over the thread's columns, and the sum of
  // the last key block, which is not yet in it.
  struct Rows {
    float reference[2], sum[2] = {}, block_sum[2] = {};
  };

  // The warp's 16 rows of Q as A operands. The TMA put chunk c of row r at place c XOR (r mod 8).
  using Query = uint32_t[D / 16][4];
  __device__ static void load_fragments(Query& q, uint32_t query) {
    const int lane = threadIdx.x % 32;
    const uint32_t row = query + (threadIdx.x % 128 / 32 * 16 + lane % 16) * 128;
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
      ldmatrix_x4(q[i], row + i / 4 * (64 * 128) + ((i % 4 * 2 + lane / 16 ^ lane % 8) << 4));
  }

  // Starts S = Q K^T. Descriptors count 16 bytes: + 2 is the next 16 columns of a panel.
  // i / 4 is the panel: Bc rows of K.
  __device__ static void multiply_qk(float (&S)[Bc / 2], const Query& q, uint64_t k) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i) wgmma(S, q[i], k + i / 4 * (Bc * 128 >> 4) + i % 4 * 2, i > 0);
    wgmma_commit();
  }

  __device__ static float row_max(const float (&S)[Bc / 2], int r) {
    float x = -INFINITY;
#pragma unroll
    for (int i = 2 * r; i < Bc / 2; i += 4) x = fmaxf(x, fmaxf(S[i], S[i + 1]));
    return quad_max(x);
  }

  // Replaces row r of S by P = 2^(S * scale_log2 - reference); returns the sum over the thread's
  // columns.
  __device__ static float exponentials(float (&S)[Bc / 2], int r, float scale_log2,
                                       float reference) {
    float sum = 0;
#pragma unroll
    for (int i = 2 * r; i < Bc / 2; i += 4) {
      S[i] = ex2_approx(fmaf(S[i], scale_log2, -reference));
      S[i + 1] = ex2_approx(fmaf(S[i + 1], scale_log2, -reference));
      sum += S[i] + S[i + 1];
    }
    return sum;
  }

  // The number of keys that a row sees; the causal mask is aligned bottom-right.
  __device__ static int visible(const fa::TmaParameters& in, int row) {
    const int hidden = in.causal ? max(0, in.seq_q - 1 - row) : 0;
    return max(0, in.seq_kv - hidden);
  }

  // Masks the keys of block j that the thread's rows do not see.
  __device__ static void mask(float (&S)[Bc / 2], const fa::TmaParameters& in, int row, int j) {
    const int first_key = j * Bc + threadIdx.x % 4 * 2;
    const int limits[] = {visible(in, row) - first_key, visible(in, row + 8) - first_key};
#pragma unroll
    for (int i = 0; i < Bc / 2; ++i)
      if (i / 4 * 8 + i % 2 >= limits[i / 2 % 2]) S[i] = -INFINITY;
  }

  __device__ static void softmax(float (&S)[Bc / 2], Rows& rows, float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rows.sum[r] += rows.block_sum[r];
      rows.block_sum[r] = exponentials(S, r, scale_log2, rows.reference[r]);
    }
  }

  // Recomputes P with mma.sync and a new reference in rows with an infinite sum. P = 0 stays 0: the
  // new reference is higher, and a masked key must stay hidden.
  __device__ static void restore(float (&S)[Bc / 2], Rows& rows, const float (&top)[2],
                                 const Query& q, const fa::TmaParameters& in, int head, int j) {
    const half* keys = in.keys + (int64_t{head} * in.seq_kv + j * Bc) * D;
#pragma unroll
    for (int n = 0; n < Bc / 8; ++n) {
      const int index = min(n * 8 + static_cast<int>(threadIdx.x % 32 / 4), in.seq_kv - 1 - j * Bc);
      const half* key = keys + index * D + threadIdx.x % 4 * 2;
      const auto* k = reinterpret_cast<const volatile uint32_t*>(key);
      float s[4] = {};
      __syncwarp();  // without this and volatile, ptxas loads all of K first and spills
#pragma unroll
      for (int i = 0; i < D / 16; ++i) mma_m16n8k16(s, q[i], k[i * 8], k[i * 8 + 4]);
      for (int i = 0; i < 4; ++i)
        if (top[i / 2] == INFINITY)
          S[4 * n + i] =
              S[4 * n + i] == 0 ? -INFINITY : fmaf(s[i], in.scale_log2, -rows.reference[i / 2]);
    }
    for (int r = 0; r < 2; ++r) {
      const float e = ceilf(row_max(S, r));
      if (top[r] == INFINITY) rows.reference[r] += e, rows.block_sum[r] = exponentials(S, r, 1, e);
    }
  }

  // Raises the reference where an element of P may be too large. The test is on the sum, because no
  // P exceeds it. The rows r of a warp's eight quads are skipped together.
  __device__ static void repair(float (&S)[Bc / 2], float (&O)[D / 2], Rows& rows, const Query& q,
                                const fa::TmaParameters& in, int head, int j) {
    if (!__any_sync(0xffffffff, fmaxf(rows.block_sum[0], rows.block_sum[1]) > kLargest)) return;
    const float top[] = {quad_max(rows.block_sum[0]), quad_max(rows.block_sum[1])};
    for (int r = 0; r < 2; ++r) {
      if (!__any_sync(0xffffffff, rows.block_sum[r] > kLargest)) continue;
      const bool finite = top[r] < INFINITY;
      // At most 126: 2^-127 is not a normal number.
      const float e = finite && top[r] > kLargest ? fminf(floorf(__log2f(top[r])), 126) : 0;
      const float factor = __int_as_float((127 - static_cast<int>(e)) << 23);
      const float alpha = finite ? factor : 0;
      rows.reference[r] += e;
      rows.sum[r] *= alpha;
      rows.block_sum[r] *= factor;
#pragma unroll
      for (int i = 2 * r; i < Bc / 2; i += 4) S[i] *= factor, S[i + 1] *= factor;
#pragma unroll
      for (int i = 2 * r; i < D / 2; i += 4) O[i] *= alpha, O[i + 1] *= alpha;
    }
    if (__any_sync(0xffffffff, fmaxf(top[0], top[1]) == INFINITY))
      restore(S, rows, top, q, in, head, j);
  }

  // The accumulator layout, packed to halves, is the layout of an A operand.
  __device__ static void pack(uint32_t (&P)[Bc / 16][4], const float (&S)[Bc / 2]) {
#pragma unroll
    for (int i = 0; i < Bc / 4; ++i) {
      const half2 p = __floats2half2_rn(S[2 * i], S[2 * i + 1]);
      P[i / 4][i % 4] = reinterpret_cast<const uint32_t&>(p);
    }
  }

  // Starts O += P V. Descriptors count 16 bytes: + 128 is the next 16 rows of V.
  __device__ static void multiply_pv(float (&O)[D / 2], const uint32_t (&P)[Bc / 16][4],
                                     uint64_t v) {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) wgmma_transposed(O, P[i], v + i * 128, 1);
    wgmma_commit();
  }

  __device__ static int tile_count(const fa::TmaParameters& in) {
    return (in.seq_q + kBlocks * Br - 1) / (kBlocks * Br) * in.heads;
  }
  // A decoded tile: head, head of K and V, end of the cluster's rows; is_tile is 0 past the last.
  struct alignas(16) ScheduledTile {
    int head, kv_head, end, is_tile;
  };
  // One thread divides, ahead of time; CUTLASS uses FastDivmod.
  __device__ static ScheduledTile divide(const fa::TmaParameters& in, int t) {
    const int row_tiles = tile_count(in) / in.heads;
    const int last = t - (in.heads - in.section) * row_tiles;  // index among the last heads' tiles
    const int head = last < 0 ? t / row_tiles : in.heads - in.section + last % in.section;
    const int end = (row_tiles - (last < 0 ? t % row_tiles : last / in.section)) * kBlocks * Br;
    return {head, head / in.group, end, t < tile_count(in)};
  }
  __device__ static RowTile tile_at(const fa::TmaParameters& in, ScheduledTile tile, int consumer) {
    const int first_row = tile.end - kBlocks * Br + consumer * kStride + cluster_rank() * 64;
    // A tile that sees no key has one key block, which is masked.
    const int key_blocks = max(1, (visible(in, min(first_row + 64, in.seq_q) - 1) + Bc - 1) / Bc);
    const int loads = max(1, (visible(in, min(tile.end, in.seq_q) - 1) + Bc - 1) / Bc);
    return {tile.head, tile.kv_head, first_row, visible(in, first_row) / Bc, key_blocks, loads};
  }

  // The next tile. Written by the scheduler of block 0 in both blocks.
  __device__ static ScheduledTile& next_tile() {
    __shared__ ScheduledTile tile;
    return tile;
  }

  // One thread gets the next tile number when all warps have read the current tile, up to the end.
  __device__ static void schedule_tiles(const fa::TmaParameters& in, const Shared& shared) {
    const int tiles = cluster_rank() == 0 ? tile_count(in) : 0;  // for the cluster
    for (int round = 0, t = blockIdx.x / kBlocks; t < tiles; ++round) {
      mbarrier_wait(shared.tile_empty, round % 2 ^ 1);
      if (round > 0) t = gridDim.x / kBlocks + atomicAdd(in.counter, 1);
      const ScheduledTile tile = divide(in, t);
      const int4 bits = {tile.head, tile.kv_head, tile.end, tile.is_tile};
      for (int i = 0; i < kBlocks; ++i)
        cluster_send(shared_address(&next_tile()), bits, shared.tile_full, i);
    }
    // For the next launch: the last thread block clears the tile counter; atomicInc wraps to 0.
    __threadfence();
    if (atomicInc(in.counter + 1, gridDim.x - 1) == gridDim.x - 1) atomicExch(in.counter, 0);
  }
  __device__ static ScheduledTile wait_tile(const Shared& shared, int round) {
    cluster_wait(shared.tile_full, round % 2);
    return next_tile();
  }

  // One thread starts the copies of Q of a tile, each when its consumer has released Q.
  __device__ static void load_query(const fa::TmaParameters& in, const Shared& shared,
                                    const RowTile& tile, int parity) {
    for (int i = 0; i < kConsumers; ++i) {
      mbarrier_wait(shared.query_empty + 8 * i, parity ^ 1);
      mbarrier_expect(shared.query_full + 8 * i, kQueryBytes);
      tma_load(shared.query + i * kQueryBytes, in.Q, 0, tile.first_row + i * kStride, 0, tile.head,
               shared.query_full + 8 * i);
    }
  }

  // One thread starts the copies of K and V of key block j into two slots.
  __device__ static void load_key_block(const fa::TmaParameters& in, const Shared& shared,
                                        const RowTile& tile, int j, Position& at) {
    const auto load = [&](const CUtensorMap& map) {
      const uint32_t slot = shared.ring + at.slot * kTileBytes, full = shared.full + 8 * at.slot;
      mbarrier_wait(shared.empty + 8 * at.slot, at.parity ^ 1);
      mbarrier_expect(full, kTileBytes);
      if (at.slot % kBlocks == cluster_rank())
        tma_load_multicast(slot, map, 0, j * Bc, 0, tile.kv_head, full, (1 << kBlocks) - 1);
      at.advance();
    };
    load(in.K);
    load(in.V);
  }

  // Q K^T and the softmax of key block j, P V of key block j - 1.
  template <bool Masked>
  __device__ __forceinline__ static void compute_key_block(
      const fa::TmaParameters& in, const Shared& shared, const Query& q, float (&S)[Bc / 2],
      uint32_t (&P)[Bc / 16][4], float (&O)[D / 2], Rows& rows, Position& at, const RowTile& tile,
      int row, int j) {
    const Position v = at;
    at.advance();
    wgmma_fence();
    multiply_qk(S, q, shared.tile(at));  // of key block j
    shared.wait_full(v);
    wgmma_fence();
    multiply_pv(O, P, shared.tile(v));  // of key block j - 1
    wgmma_wait<1>(S);
    shared.release(at);
    if constexpr (Masked) mask(S, in, row, j);
    softmax(S, rows, in.scale_log2);
    if (j + 1 < tile.key_blocks) shared.wait_full(at.next().next());  // the next K
    wgmma_wait<0>(O);  // from here on P may be overwritten and O may be read
    shared.release(v);
    repair(S, O, rows, q, in, tile.kv_head, j);
    pack(P, S);
    at.advance();
  }

  // Stores O / sum and the log-sum-exp of the thread's two rows.
  __device__ static void store_rows(const fa::TmaParameters& in, const float (&O)[D / 2],
                                    const Rows& rows, int head, int first_row) {
    const int lane = threadIdx.x % 32;
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = quad_sum(rows.sum[r] + rows.block_sum[r]);
      inverse[r] = sum == 0 ? 0 : __fdividef(1.f, sum);
      const int row = first_row + r * 8;
      if (in.LSE && lane % 4 == 0 && row < in.seq_q)
        in.LSE[int64_t{head} * in.seq_q + row] = (rows.reference[r] + __log2f(sum)) * kLn2;
    }
    extern __shared__ unsigned char memory[];
    const Shared shared(shared_address(memory));
    // The producer's four warps come first.
    const uint32_t output = shared.output + (threadIdx.x / 32 - 4) * (16 * D * 2);
    bulk_wait_read();  // the warp's copy of the previous tile
    __syncwarp();
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      uint32_t fragment[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const half2 two = __floats2half2_rn(O[4 * n + 2 * i] * inverse[i % 2],
                                            O[4 * n + 2 * i + 1] * inverse[i % 2]);
        fragment[i] = reinterpret_cast<const uint32_t&>(two);
      }
      const int chunk = n % 8 + lane / 16;  // of 8 columns, within its panel
      stmatrix_x4(output + (n / 8 * 16 + lane % 16) * 128 + ((chunk ^ lane % 8) << 4), fragment);
    }
    fence_async_proxy();
    __syncwarp();
    if (lane == 0) {
      tma_store(in.O_rows, output, 0, first_row, 0, head);
      bulk_commit();
    }
  }

  // A consumer computes its 64 rows of a tile.
  __device__ static void compute_tile(const fa::TmaParameters& in, const Shared& shared,
                                      const RowTile& tile, int consumer, int parity, Position& at) {
    const int row =
        tile.first_row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;  // the first of two
    float O[D / 2] = {}, S[Bc / 2];
    Query q;
    uint32_t P[Bc / 16][4];
    Rows rows;
    mbarrier_wait(shared.query_full + 8 * consumer, parity);
    load_fragments(q, shared.query + consumer * kQueryBytes);
    shared.wait_full(at);
    wgmma_fence();
    multiply_qk(S, q, shared.tile(at));
    wgmma_wait<0>(S);
    shared.release(at);
    // The product has used the fragments, so after the barrier the ldmatrix of all warps are done.
    barrier_sync(1 + consumer, 128);
    if (threadIdx.x % 128 == 0) mbarrier_arrive(shared.query_empty + 8 * consumer);
    if (tile.full_key_blocks == 0) mask(S, in, row, 0);
    for (int r = 0; r < 2; ++r)  // finite even where all scores are -INFINITY
      rows.reference[r] = fmaxf(ceilf(row_max(S, r) * in.scale_log2), -1e30f);
    softmax(S, rows, in.scale_log2);
    pack(P, S);
    at.advance();
    if (tile.key_blocks > 1) shared.wait_full(at.next());  // the next K
    int j = 1;
    for (; j < tile.full_key_blocks; ++j)
      compute_key_block<false>(in, shared, q, S, P, O, rows, at, tile, row, j);
    for (; j < tile.key_blocks; ++j)
      compute_key_block<true>(in, shared, q, S, P, O, rows, at, tile, row, j);
    shared.wait_full(at);
    wgmma_fence();
    multiply_pv(O, P, shared.tile(at));
    wgmma_wait<0>(O);
    shared.release(at);
    at.advance();
    // Other consumers of the cluster need these slots; the producer waits for this arrival too.
    for (j = 2 * tile.key_blocks; j < 2 * tile.loads; ++j, at.advance()) {
      shared.wait_full(at);
      barrier_sync(1 + consumer, 128);  // all warps have passed the wait: the slot may change
      shared.release(at);
    }
    store_rows(in, O, rows, tile.head, row);
  }

  __device__ static void run(const fa::TmaParameters& in) {
    extern __shared__ unsigned char memory[];
    const Shared shared(shared_address(memory));
    if (threadIdx.x == 0) {
      // query_full, and query_empty right behind it
      for (int i = 0; i < 2 * kConsumers; ++i) mbarrier_init(shared.query_full + 8 * i, 1);
      for (int i = 0; i < Slots; ++i) mbarrier_init(shared.full + 8 * i, 1);
      for (int i = 0; i < Slots; ++i) mbarrier_init(shared.empty + 8 * i, kBlocks * kConsumers);
      mbarrier_init(shared.tile_full, 1);
      mbarrier_init(shared.tile_empty, kBlocks * (2 + 4 * kConsumers));
      mbarrier_init_fence();
    }
    cluster_sync();

    // The shuffle tells the compiler that all lanes agree: descriptors stay in uniform registers.
    const int consumer = __shfl_sync(0xffffffff, threadIdx.x / 128, 0) - 1;
    Position at;
    if (consumer < 0) {  // the producers: warp 0 for K and V, warp 1 for Q; warp 2 schedules
      registers_release<kProducerRegisters>();
      if (threadIdx.x >= 96 || !elect_one()) return;
      if (threadIdx.x >= 64) return schedule_tiles(in, shared);
      ScheduledTile next;
      for (int round = 0; (next = wait_tile(shared, round)).is_tile; ++round) {
        cluster_arrive(shared.tile_empty, 0);
        const RowTile tile = tile_at(in, next, 0);
        if (threadIdx.x >= 32) load_query(in, shared, tile, round % 2);
#pragma unroll 1
        for (int j = 0; threadIdx.x < 32 && j < tile.loads; ++j)
          load_key_block(in, shared, tile, j, at);
      }
    } else {
      registers_acquire<kRegisters>();
      for (int round = 0;; ++round) {
        ScheduledTile next = {};
        if (threadIdx.x % 32 == 0) next = wait_tile(shared, round);
        next = {__shfl_sync(0xffffffff, next.head, 0), __shfl_sync(0xffffffff, next.kv_head, 0),
                __shfl_sync(0xffffffff, next.end, 0), __shfl_sync(0xffffffff, next.is_tile, 0)};
        if (!next.is_tile) break;
        if (threadIdx.x % 32 == 0)
          cluster_arrive(shared.tile_empty, 0);  // the lane that has read it
        compute_tile(in, shared, tile_at(in, next, consumer), consumer, round % 2, at);
      }
      bulk_wait_read();
      cluster_sync();  // the other block may still arrive at barriers of this block
    }
  }
};

}  // namespace

#define INSTANCES(X)                               \
  X(fa_35_dealt_d128, Attention<128, 128, 5, 128>) \
  X(fa_35_dealt_d64, Attention<192, 96, 12, 64>)

INSTANCES(FA_TMA_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(35_dealt, "34", sm_90a, f16, causal | ragged | lse | grouped,
        "the scheduler thread decodes the tile number, with its divisions, ahead of time",
        kInstances, fa::plan_tma_clusters);
