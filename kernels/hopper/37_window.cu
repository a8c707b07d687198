// 37_window
// Idea: a query sees a window of keys, so many before and after its own place. The window bounds
// the copies and the products; a causal mask is a window with nothing after.
//
// Tile              Br = 128, Bc = 128, 4 producer warps + 2 x 4 consumer warps x 16 rows; at
//                   head_dim 64 three consumers, Br = 192, Bc = 96
// Shared memory     Q 32 KB + O 32 KB + 5 slots of 32 KB at head_dim 128
// Expected effect   64 rows with W keys each need W + 64 keys, rounded to key blocks of 128: with
//                   W = 1024 nine, of which two or three are masked.

#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/halves.cuh"
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

template <class T, int Br, int Bc, int Slots, int D>
struct Attention {
  using Element = T;
  static constexpr int kConsumers = Br / 64;  // warpgroups that compute 64 query rows each
  static constexpr int kBlocks = 2, kStride = 64 * kBlocks;  // blocks per cluster, rows per turn
  static constexpr int kThreads = 128 * (1 + kConsumers), kBlocksPerSm = 1, kHeadDim = D;
  static constexpr fa::Tile kTile{Br, Bc, kThreads / 32};
  static constexpr int kRegisters = kConsumers == 2 ? 240 : 160;  // per consumer thread
  static constexpr int kProducerRegisters = kConsumers == 2 ? 24 : 32;
  static constexpr int kAlign = 1024, kQueryBytes = 64 * D * 2;
  static constexpr int kTileBytes = Bc * D * 2;  // a slot: K or V of one key block
  static constexpr bool kHalf = std::is_same_v<T, half>;
  static constexpr float kLargest = kHalf ? 0x1p15f : 0x1p100f;  // a larger row sum is repaired
  static constexpr std::size_t kSharedBytes =
      kAlign + 2 * Br * D * 2 + Slots * kTileBytes + 8 * (2 * kConsumers + 2 * Slots + 2);
  static_assert(Br % 64 == 0, "a warpgroup computes the 64 rows of one wgmma");
  static_assert(kConsumers == 2 || kConsumers == 3, "setmaxnreg has values for two or three");
  static_assert(Bc % 16 == 0, "P V advances by 16 keys, the k of one mma");
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");

  struct RowTile {
    int batch, head, kv_head, first_row;
    int first_block, end_block;  // key blocks of the consumer's rows
    int first_full, end_full;    // those of them that need no mask
    int first_load, end_load;    // key blocks that the cluster loads
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
    for (int i = 0; i < D / 16; ++i)
      wgmma<T>(S, q[i], k + i / 4 * (Bc * 128 >> 4) + i % 4 * 2, i > 0);
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

  // A row sees the keys from first_key() up to one before end_key(). The window is aligned
  // bottom-right; rows beyond the last one count as the last.
  __device__ static int first_key(const fa::ModelParameters& in, int row) {
    return max(0, min(row, in.seq_q - 1) - in.seq_q + in.seq_kv - in.left);
  }
  __device__ static int end_key(const fa::ModelParameters& in, int row) {
    return max(0, min(in.seq_kv, row + 1 - in.seq_q + in.seq_kv + in.right));
  }

  // Masks the keys of block j that the thread's rows do not see.
  __device__ static void mask(float (&S)[Bc / 2], const fa::ModelParameters& in, int row, int j) {
    const int first = j * Bc + threadIdx.x % 4 * 2;
    const int begins[] = {first_key(in, row) - first, first_key(in, row + 8) - first};
    const int ends[] = {end_key(in, row) - first, end_key(in, row + 8) - first};
#pragma unroll
    for (int i = 0; i < Bc / 2; ++i) {
      const int key = i / 4 * 8 + i % 2, r = i / 2 % 2;
      if (key < begins[r] || key >= ends[r]) S[i] = -INFINITY;
    }
  }

  // A row gets its reference from the first block in which it sees a key. Until then the reference
  // is kUnseen, finite, and all its sums are 0.
  static constexpr float kUnseen = -1e30f;
  __device__ static void start_rows(const float (&S)[Bc / 2], Rows& rows, float scale_log2) {
    for (int r = 0; r < 2; ++r)
      if (__any_sync(0xffffffff, rows.reference[r] == kUnseen)) {
        const float top = fmaxf(ceilf(row_max(S, r) * scale_log2), kUnseen);
        if (rows.reference[r] == kUnseen) rows.reference[r] = top;
      }
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
                                 const Query& q, const fa::ModelParameters& in, const RowTile& tile,
                                 int j) {
    const T* keys = static_cast<const T*>(in.keys) + tile.batch * in.key_strides[0] +
                    tile.kv_head * in.key_strides[1] + j * Bc * in.key_strides[2];
#pragma unroll
    for (int n = 0; n < Bc / 8; ++n) {
      const int index = min(n * 8 + static_cast<int>(threadIdx.x % 32 / 4), in.seq_kv - 1 - j * Bc);
      const T* key = keys + index * in.key_strides[2] + threadIdx.x % 4 * 2;
      const auto* k = reinterpret_cast<const volatile uint32_t*>(key);
      float s[4] = {};
      __syncwarp();  // without this and volatile, ptxas loads all of K first and spills
#pragma unroll
      for (int i = 0; i < D / 16; ++i) mma_m16n8k16<T>(s, q[i], k[i * 8], k[i * 8 + 4]);
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
                                const fa::ModelParameters& in, const RowTile& tile, int j) {
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
      restore(S, rows, top, q, in, tile, j);
  }

  // The accumulator layout, packed to T, is the layout of an A operand.
  __device__ static void pack(uint32_t (&P)[Bc / 16][4], const float (&S)[Bc / 2]) {
#pragma unroll
    for (int i = 0; i < Bc / 4; ++i) P[i / 4][i % 4] = packed<T>(S[2 * i], S[2 * i + 1]);
  }

  // Starts O += P V. Descriptors count 16 bytes: + 128 is the next 16 rows of V.
  __device__ static void multiply_pv(float (&O)[D / 2], const uint32_t (&P)[Bc / 16][4],
                                     uint64_t v) {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) wgmma_transposed<T>(O, P[i], v + i * 128, 1);
    wgmma_commit();
  }

  __device__ static int tile_count(const fa::ModelParameters& in) {
    return (in.seq_q + kBlocks * Br - 1) / (kBlocks * Br) * in.batch * in.heads;
  }
  // A decoded tile: batch entry, head, head of K and V, end of the cluster's rows; the batch entry
  // is -1 past the last.
  struct alignas(16) ScheduledTile {
    int batch, head, kv_head, end;
  };
  // One thread divides, ahead of time; CUTLASS uses FastDivmod.
  __device__ static ScheduledTile divide(const fa::ModelParameters& in, int t) {
    const int heads = in.batch * in.heads, row_tiles = tile_count(in) / heads;
    const int last = t - (heads - in.section) * row_tiles;  // index among the last heads' tiles
    const int index = last < 0 ? t / row_tiles : heads - in.section + last % in.section;
    const int end = (row_tiles - (last < 0 ? t % row_tiles : last / in.section)) * kBlocks * Br;
    const int batch = index / in.heads, head = index % in.heads;
    return {t < tile_count(in) ? batch : -1, head, head / in.group, end};
  }
  __device__ static RowTile tile_at(const fa::ModelParameters& in, ScheduledTile tile,
                                    int consumer) {
    const int first_row = tile.end - kBlocks * Br + consumer * kStride + cluster_rank() * 64;
    const int first_block = first_key(in, first_row) / Bc;
    // A tile that sees no key has one key block, which is masked.
    const auto end_block = [&](int end_row) {
      return max(first_block + 1, (end_key(in, min(end_row, in.seq_q) - 1) + Bc - 1) / Bc);
    };
    // The last row must see a key before the first block without a mask. Without a left end,
    // block 0 needs no mask.
    const int first_full = first_key(in, first_row + 63) / Bc + (in.left < in.seq_kv);
    return {tile.batch,
            tile.head,
            tile.kv_head,
            first_row,
            first_block,
            end_block(first_row + 64),
            first_full,
            end_key(in, first_row) / Bc,
            first_key(in, tile.end - kBlocks * Br) / Bc,
            end_block(tile.end)};
  }

  // The next tile. Written by the scheduler of block 0 in both blocks.
  __device__ static ScheduledTile& next_tile() {
    __shared__ ScheduledTile tile;
    return tile;
  }

  // One thread gets the next tile number when all warps have read the current tile, up to the end.
  __device__ static void schedule_tiles(const fa::ModelParameters& in, const Shared& shared) {
    const int tiles = cluster_rank() == 0 ? tile_count(in) : 0;  // for the cluster
    for (int round = 0, t = blockIdx.x / kBlocks; t < tiles; ++round) {
      mbarrier_wait(shared.tile_empty, round % 2 ^ 1);
      if (round > 0) t = gridDim.x / kBlocks + atomicAdd(in.counter, 1);
      const ScheduledTile tile = divide(in, t);
      const int4 bits = {tile.batch, tile.head, tile.kv_head, tile.end};
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
  __device__ static void load_query(const fa::ModelParameters& in, const Shared& shared,
                                    const RowTile& tile, int parity) {
    for (int i = 0; i < kConsumers; ++i) {
      mbarrier_wait(shared.query_empty + 8 * i, parity ^ 1);
      mbarrier_expect(shared.query_full + 8 * i, kQueryBytes);
      tma_load(shared.query + i * kQueryBytes, in.Q, 0, tile.first_row + i * kStride, 0, tile.head,
               tile.batch, shared.query_full + 8 * i);
    }
  }

  // One thread starts the copies of K and V of key block j into two slots.
  __device__ static void load_key_block(const fa::ModelParameters& in, const Shared& shared,
                                        const RowTile& tile, int j, Position& at) {
    const auto load = [&](const CUtensorMap& map) {
      const uint32_t slot = shared.ring + at.slot * kTileBytes, full = shared.full + 8 * at.slot;
      mbarrier_wait(shared.empty + 8 * at.slot, at.parity ^ 1);
      mbarrier_expect(full, kTileBytes);
      if (at.slot % kBlocks == cluster_rank())
        tma_load_multicast(slot, map, 0, j * Bc, 0, tile.kv_head, tile.batch, full,
                           (1 << kBlocks) - 1);
      at.advance();
    };
    load(in.K);
    load(in.V);
  }

  // Q K^T and the softmax of key block j, P V of key block j - 1.
  template <bool Masked>
  __device__ __forceinline__ static void compute_key_block(
      const fa::ModelParameters& in, const Shared& shared, const Query& q, float (&S)[Bc / 2],
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
    if constexpr (Masked) {
      mask(S, in, row, j);
      start_rows(S, rows, in.scale_log2);
    }
    softmax(S, rows, in.scale_log2);
    if (j + 1 < tile.end_block) shared.wait_full(at.next().next());  // the next K
    wgmma_wait<0>(O);  // from here on P may be overwritten and O may be read
    shared.release(v);
    repair(S, O, rows, q, in, tile, j);
    pack(P, S);
    at.advance();
  }

  // Stores O / sum and the log-sum-exp of the thread's two rows.
  __device__ static void store_rows(const fa::ModelParameters& in, const float (&O)[D / 2],
                                    const Rows& rows, const RowTile& tile, int first_row) {
    const int lane = threadIdx.x % 32;
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = quad_sum(rows.sum[r] + rows.block_sum[r]);
      inverse[r] = sum == 0 ? 0 : __fdividef(1.f, sum);
      const int row = first_row + r * 8;
      if (in.LSE && lane % 4 == 0 && row < in.seq_q)
        in.LSE[(int64_t{tile.batch} * in.heads + tile.head) * in.seq_q + row] =
            (rows.reference[r] + __log2f(sum)) * kLn2;
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
      for (int i = 0; i < 4; ++i)
        fragment[i] =
            packed<T>(O[4 * n + 2 * i] * inverse[i % 2], O[4 * n + 2 * i + 1] * inverse[i % 2]);
      const int chunk = n % 8 + lane / 16;  // of 8 columns, within its panel
      stmatrix_x4(output + (n / 8 * 16 + lane % 16) * 128 + ((chunk ^ lane % 8) << 4), fragment);
    }
    fence_async_proxy();
    __syncwarp();
    if (lane == 0) {
      tma_store(in.O_rows, output, 0, first_row, 0, tile.head, tile.batch);
      bulk_commit();
    }
  }

  // Passes over key blocks that other consumers need.
  __device__ static void skip(const Shared& shared, int key_blocks, int consumer, Position& at) {
    for (int i = 0; i < 2 * key_blocks; ++i, at.advance()) {
      shared.wait_full(at);
      barrier_sync(1 + consumer, 128);  // all warps have passed the wait: the slot may change
      shared.release(at);
    }
  }

  // A consumer computes its 64 rows of a tile.
  __device__ static void compute_tile(const fa::ModelParameters& in, const Shared& shared,
                                      const RowTile& tile, int consumer, int parity, Position& at) {
    const int row =
        tile.first_row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;  // the first of two
    float O[D / 2] = {}, S[Bc / 2];
    Query q;
    uint32_t P[Bc / 16][4];
    Rows rows;
    mbarrier_wait(shared.query_full + 8 * consumer, parity);
    load_fragments(q, shared.query + consumer * kQueryBytes);
    skip(shared, tile.first_block - tile.first_load, consumer, at);
    shared.wait_full(at);
    wgmma_fence();
    multiply_qk(S, q, shared.tile(at));
    wgmma_wait<0>(S);
    shared.release(at);
    // The product has used the fragments, so after the barrier the ldmatrix of all warps are done.
    barrier_sync(1 + consumer, 128);
    if (threadIdx.x % 128 == 0) mbarrier_arrive(shared.query_empty + 8 * consumer);
    int j = tile.first_block;
    if (j < tile.first_full || j >= tile.end_full) mask(S, in, row, j);
    rows.reference[0] = rows.reference[1] = kUnseen;
    start_rows(S, rows, in.scale_log2);
    softmax(S, rows, in.scale_log2);
    pack(P, S);
    at.advance();
    if (j + 1 < tile.end_block) shared.wait_full(at.next());  // the next K
    // Three loops: in one with a branch ptxas moves the exponentials behind the wait for P V.
    for (++j; j < min(tile.first_full, tile.end_block); ++j)
      compute_key_block<true>(in, shared, q, S, P, O, rows, at, tile, row, j);
    for (; j < tile.end_full; ++j)
      compute_key_block<false>(in, shared, q, S, P, O, rows, at, tile, row, j);
    for (; j < tile.end_block; ++j)
      compute_key_block<true>(in, shared, q, S, P, O, rows, at, tile, row, j);
    shared.wait_full(at);
    wgmma_fence();
    multiply_pv(O, P, shared.tile(at));
    wgmma_wait<0>(O);
    shared.release(at);
    at.advance();
    skip(shared, tile.end_load - tile.end_block, consumer, at);
    store_rows(in, O, rows, tile, row);
  }

  __device__ static void run(const fa::ModelParameters& in) {
    extern __shared__ unsigned char memory[];
    const Shared shared(shared_address(memory));
    if (threadIdx.x == 0) {
      // query_full, and query_empty right behind it
      for (int i = 0; i < 2 * kConsumers; ++i) mbarrier_init(shared.query_full + 8 * i, 1);
      for (int i = 0; i < Slots; ++i) mbarrier_init(shared.full + 8 * i, 1);
      for (int i = 0; i < Slots; ++i) mbarrier_init(shared.empty + 8 * i, kBlocks * kConsumers);
      mbarrier_init(shared.tile_full, 1);
      mbarrier_init(shared.tile_empty, kBlocks * (2 + 128 * kConsumers));
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
      for (int round = 0; (next = wait_tile(shared, round)).batch >= 0; ++round) {
        cluster_arrive(shared.tile_empty, 0);
        const RowTile tile = tile_at(in, next, 0);
        if (threadIdx.x >= 32) load_query(in, shared, tile, round % 2);
#pragma unroll 1
        for (int j = tile.first_load; threadIdx.x < 32 && j < tile.end_load; ++j)
          load_key_block(in, shared, tile, j, at);
      }
    } else {
      registers_acquire<kRegisters>();
      for (int round = 0;; ++round) {
        // All lanes wait. After a wait of one lane, ptxas treats a loop that begins at first_block
        // as different in each lane, and keeps the ring's slot outside the uniform registers.
        const ScheduledTile next = wait_tile(shared, round);
        if (next.batch < 0) break;
        cluster_arrive(shared.tile_empty, 0);
        compute_tile(in, shared, tile_at(in, next, consumer), consumer, round % 2, at);
      }
      bulk_wait_read();
      cluster_sync();  // the other block may still arrive at barriers of this block
    }
  }
};

}  // namespace

#define INSTANCES(X)                                               \
  X(fa_37_window_d128, Attention<__nv_bfloat16, 128, 128, 5, 128>) \
  X(fa_37_window_d64, Attention<__nv_bfloat16, 192, 96, 12, 64>)   \
  X(fa_37_window_d128_half, Attention<half, 128, 128, 5, 128>)     \
  X(fa_37_window_d64_half, Attention<half, 192, 96, 12, 64>)

INSTANCES(FA_MODEL_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(37_window, "36", sm_90a, f16, causal | ragged | lse | grouped | strided | windowed,
        "a window before and behind the query bounds copies and products", kInstances,
        fa::plan_tma_views, .why_large = "a tile's key blocks have six bounds instead of three");
