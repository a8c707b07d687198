// 39_varlen
// Idea: sequences of different lengths one behind another in packed tensors, without padding. A
// fifth dimension of a tensor map says where a sequence ends, so that the TMA neither loads nor
// stores a row of its neighbour.
//
// Tile              Br = 128, Bc = 128, 4 producer warps + 2 x 4 consumer warps x 16 rows; at
//                   head_dim 64 three consumers, Br = 192, Bc = 96. Long sequences at head_dim 128
//                   have clusters of two thread blocks, Br = 256 together
// Shared memory     Q 32 KB + O 32 KB + 5 slots of 32 KB at head_dim 128
// Expected effect   the rate of one dense problem of equal work, less the rows that a sequence's
//                   last tile has too many, up to 255 in a cluster, 127 or 191 alone

#include "kernels/planners.h"
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

template <class T, int Blocks, int Br, int Bc, int Slots, int D>
struct Attention {
  using Element = T;
  static constexpr int kConsumers = Br / 64;  // warpgroups that compute 64 query rows each
  static constexpr int kBlocks = Blocks, kStride = 64 * kBlocks;  // per cluster; rows per turn
  static constexpr int kThreads = 128 * (1 + kConsumers), kBlocksPerSm = 1, kHeadDim = D;
  static constexpr fa::Tile kTile{kBlocks * Br, Bc, kThreads / 32};
  static constexpr int kRegisters = kConsumers == 2 ? 240 : 160;  // per consumer thread
  static constexpr int kProducerRegisters = kConsumers == 2 ? 24 : 32;
  static constexpr int kAlign = 1024, kQueryBytes = 64 * D * 2;
  static constexpr int kTileBytes = Bc * D * 2;  // a slot: K or V of one key block
  static constexpr bool kHalf = std::is_same_v<T, half>;
  static constexpr float kLargest = kHalf ? 0x1p15f : 0x1p100f;  // a larger row sum is repaired
  static constexpr float kDominates = 4;  // a block's sum is this many times that of earlier ones
  static constexpr std::size_t kSharedBytes =
      kAlign + 2 * Br * D * 2 + Slots * kTileBytes + 8 * (2 * kConsumers + 2 * Slots + 2);
  static_assert(Br % 64 == 0, "a warpgroup computes the 64 rows of one wgmma");
  static_assert(kConsumers == 2 || kConsumers == 3, "setmaxnreg has values for two or three");
  static_assert(Bc % 16 == 0, "P V advances by 16 keys, the k of one mma");
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");

  // The queries and keys of a sequence, and their last coordinate in the tensor maps: one past the
  // last row of a packed sequence, else the batch entry.
  struct alignas(16) Sequence {
    int queries, keys, query_place, key_place;
  };
  // A decoded tile: head, head of K and V, end of the cluster's rows. The head is -1 past the last.
  struct ScheduledTile : Sequence {
    int head, kv_head, end, unused;
  };
  struct RowTile : ScheduledTile {
    int first_row;
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

    // Whether an element of P may be too large, since no P exceeds its sum; or, where the
    // log-sum-exp is wanted for gradients, whether a key of the last block may dominate the row.
    __device__ bool must_rise(const fa::ModelParameters& in, int r) const {
      const bool dominated = in.LSE && block_sum[r] > kDominates * sum[r];
      return dominated || block_sum[r] > kLargest;
    }
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
  // bottom-right in each sequence; rows beyond the last one count as the last.
  __device__ static int first_key(const fa::ModelParameters& in, const Sequence& of, int row) {
    return max(0, min(row, of.queries - 1) - of.queries + of.keys - in.left);
  }
  __device__ static int end_key(const fa::ModelParameters& in, const Sequence& of, int row) {
    return max(0, min(of.keys, row + 1 - of.queries + of.keys + in.right));
  }

  // Masks the keys of block j that the thread's rows do not see.
  __device__ static void mask(float (&S)[Bc / 2], const fa::ModelParameters& in,
                              const RowTile& tile, int row, int j) {
    const int first = j * Bc + threadIdx.x % 4 * 2;
    const int begins[] = {first_key(in, tile, row) - first, first_key(in, tile, row + 8) - first};
    const int ends[] = {end_key(in, tile, row) - first, end_key(in, tile, row + 8) - first};
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
        const float top = fmaxf(row_max(S, r) * scale_log2, kUnseen);
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
    const T* keys = static_cast<const T*>(in.keys) + tile.kv_head * in.key_strides[1] +
                    (in.cu_seqlens_k ? (tile.key_place - tile.keys) * in.key_strides[2]
                                     : tile.key_place * in.key_strides[0]) +
                    j * Bc * in.key_strides[2];
#pragma unroll
    for (int n = 0; n < Bc / 8; ++n) {
      const int index = min(n * 8 + static_cast<int>(threadIdx.x % 32 / 4), tile.keys - 1 - j * Bc);
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
      const float e = row_max(S, r);
      if (top[r] == INFINITY) rows.reference[r] += e, rows.block_sum[r] = exponentials(S, r, 1, e);
    }
  }

  // Raises the reference to the maximum of the key block, whose P is then 1. A largest P that is
  // rounded to T, where the sum is not, changes all elements of O by one factor, and gradients
  // amplify that. The rows r of a warp's eight quads are skipped together.
  __device__ static void repair(float (&S)[Bc / 2], float (&O)[D / 2], Rows& rows, const Query& q,
                                const fa::ModelParameters& in, const RowTile& tile, int j) {
    const bool rise[] = {rows.must_rise(in, 0), rows.must_rise(in, 1)};
    if (!__any_sync(0xffffffff, rise[0] || rise[1])) return;
    const float top[] = {quad_max(rows.block_sum[0]), quad_max(rows.block_sum[1])};
    for (int r = 0; r < 2; ++r) {
      if (!__any_sync(0xffffffff, rise[r])) continue;
      // restore() computes the P of an infinite sum again.
      const bool finite = top[r] < INFINITY;
      const bool rises = quad_max(rise[r]) > 0;
      const float most = row_max(S, r);
      // At most 2^126, because the reciprocal of a larger number is not normal.
      const float largest = finite && rises ? fminf(fmaxf(most, 1), 0x1p126f) : 1;
      const float factor = __fdividef(1, largest), alpha = finite ? factor : 0;
      rows.reference[r] += __log2f(largest);
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

  __device__ static Sequence sequence_at(const fa::ModelParameters& in, int b) {
    int packed = in.cu_seqlens_q != nullptr;
    // Hides the value from nvcc, which would copy the scheduler's loop for both cases and spill.
    asm volatile("" : "+r"(packed));
    if (!packed) return {in.seq_q, in.seq_kv, b, b};
    const int query_end = in.cu_seqlens_q[b + 1], key_end = in.cu_seqlens_k[b + 1];
    return {query_end - in.cu_seqlens_q[b], key_end - in.cu_seqlens_k[b], query_end,
            max(1, key_end)};
  }
  __device__ static int row_tiles(const Sequence& of) {
    return (of.queries + kBlocks * Br - 1) / (kBlocks * Br);
  }
  // {head, head of K and V, end} of a tile: the rows that see most keys first, of as many heads as
  // have their keys in half of the L2. The scheduler divides, ahead of time; CUTLASS uses
  // FastDivmod.
  __device__ static int4 divide(const fa::ModelParameters& in, const Sequence& of, int index) {
    const int section = max(1, min(in.heads, in.section / max(1, of.keys)));
    const int first_head = index / (section * row_tiles(of)) * section;
    const int heads = min(section, in.heads - first_head);
    index -= first_head * row_tiles(of);  // among the tiles of these heads
    const int head = first_head + index % heads;
    return {head, head / in.group, (row_tiles(of) - index / heads) * kBlocks * Br, 0};
  }
  __device__ static RowTile tile_at(const fa::ModelParameters& in, ScheduledTile tile,
                                    int consumer) {
    const int first_row = tile.end - kBlocks * Br + consumer * kStride + cluster_rank() * 64;
    const int first_block = first_key(in, tile, first_row) / Bc;
    // A tile that sees no key has one key block, which is masked.
    const auto end_block = [&](int end_row) {
      return max(first_block + 1,
                 (end_key(in, tile, min(end_row, tile.queries) - 1) + Bc - 1) / Bc);
    };
    // The last row must see a key before the first block without a mask. Without a left end,
    // block 0 needs no mask.
    const int first_full = first_key(in, tile, first_row + 63) / Bc + (in.left < tile.keys);
    return {tile,
            first_row,
            first_block,
            end_block(first_row + 64),
            first_full,
            end_key(in, tile, first_row) / Bc,
            first_key(in, tile, tile.end - kBlocks * Br) / Bc,
            end_block(tile.end)};
  }

  // The next tile. Written by the scheduler of block 0 in both blocks.
  __device__ static ScheduledTile& next_tile() {
    __shared__ ScheduledTile tile;
    return tile;
  }

  // A warp's walk over the sequences, 32 at a time. In each pass it takes those whose number of
  // keys has one bit length, most bits first, so that no long tile is among the last. Tile numbers
  // only grow, so the walk never turns back.
  struct Walk {
    int bits;       // length class of this pass
    int first = 0;  // first of the 32 sequences
    int tiles = 0;  // tiles before it
  };
  // The sequence of tile t, which becomes the tile's index there; -1 past the last tile.
  __device__ static int find_sequence(const fa::ModelParameters& in, Walk& walk, int& t) {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (; walk.bits >= 0; --walk.bits, walk.first = 0) {
#pragma unroll 1
      for (; walk.first < in.batch; walk.first += 32) {
        int tiles = 0;  // of the lane's sequence
        if (walk.first + lane < in.batch) {
          const Sequence of = sequence_at(in, walk.first + lane);
          if (32 - __clz(of.keys) == walk.bits) tiles = row_tiles(of) * in.heads;
        }
        int end = tiles;  // the sum of its tiles and of those of the lanes below
#pragma unroll
        for (int i = 1; i < 32; i *= 2) {
          const int below = __shfl_up_sync(0xffffffff, end, i);
          if (lane >= i) end += below;
        }
        const int found = __ffs(__ballot_sync(0xffffffff, t < walk.tiles + end)) - 1;
        if (found >= 0) {
          t -= walk.tiles + __shfl_sync(0xffffffff, end - tiles, found);
          return walk.first + found;
        }
        walk.tiles += __shfl_sync(0xffffffff, end, 31);
      }
    }
    return -1;
  }

  // One warp gets the next tile number when all warps have read the current tile, up to the end.
  __device__ static void schedule_tiles(const fa::ModelParameters& in, const Shared& shared) {
    const auto send = [&](int part, int4 bits) {
      if (threadIdx.x % 32 < kBlocks)
        cluster_send(shared_address(&next_tile()) + 16 * part, bits, shared.tile_full,
                     threadIdx.x % 32);
    };
    Walk walk = {.bits = 32 - __clz(in.seq_kv)};
    bool more = cluster_rank() == 0;  // for the cluster
    for (int round = 0, t = blockIdx.x / kBlocks; more; ++round) {
      mbarrier_wait(shared.tile_empty, round % 2 ^ 1);
      if (round > 0 && threadIdx.x % 32 == 0) t = gridDim.x / kBlocks + atomicAdd(in.counter, 1);
      t = __shfl_sync(0xffffffff, t, 0);
      const int b = find_sequence(in, walk, t);
      more = b >= 0;
      const Sequence of = sequence_at(in, max(0, b));
      send(0, {of.queries, of.keys, of.query_place, of.key_place});
      send(1, more ? divide(in, of, t) : int4{-1, 0, 0, 0});
    }
    // For the next launch: the last thread block clears the tile counter; atomicInc wraps to 0.
    __threadfence();
    if (threadIdx.x % 32 == 0 && atomicInc(in.counter + 1, gridDim.x - 1) == gridDim.x - 1)
      atomicExch(in.counter, 0);
  }
  // Past the last tile. Reads both 16-byte halves of the message, so that the arrival that a caller
  // makes afterwards depends on both: cluster_arrive() does not order reads by itself.
  __device__ static bool is_end(const ScheduledTile& tile) {
    return min(tile.head, tile.queries) < 0;
  }
  __device__ static ScheduledTile wait_tile(const Shared& shared, int round) {
    cluster_wait(shared.tile_full, round % 2);
    return next_tile();
  }

  // One thread starts the copies of Q of a tile, each when its consumer has released Q. A box needs
  // a row inside the sequence: of one without, the TMA still accesses the address of coordinates 0.
  __device__ static void load_query(const fa::ModelParameters& in, const Shared& shared,
                                    const RowTile& tile, int parity) {
    for (int i = 0; i < kConsumers; ++i) {
      mbarrier_wait(shared.query_empty + 8 * i, parity ^ 1);
      mbarrier_expect(shared.query_full + 8 * i, kQueryBytes);
      const int row = min(tile.first_row + i * kStride, tile.queries - 1);
      tma_load(shared.query + i * kQueryBytes, in.Q, 0, in.seq_q - tile.queries + row, 0, tile.head,
               tile.query_place, shared.query_full + 8 * i);
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
        tma_load_multicast(slot, map, 0, in.seq_kv - max(1, tile.keys) + j * Bc, 0, tile.kv_head,
                           tile.key_place, full, (1 << kBlocks) - 1);
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
      mask(S, in, tile, row, j);
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
    const float sink = in.sinks ? in.sinks[tile.head] / kLn2 : -INFINITY;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // The larger of the two is the new reference, so that neither exponential overflows.
      const float reference = fmaxf(rows.reference[r], sink);
      const float factor = ex2_approx(rows.reference[r] - reference);
      const float keys = quad_sum(rows.sum[r] + rows.block_sum[r]);
      const float sum = factor * keys + ex2_approx(sink - reference);
      inverse[r] = sum == 0 ? 0 : __fdividef(factor, sum);
      const int row = first_row + r * 8;
      if (in.LSE && lane % 4 == 0 && row < tile.queries)
        in.LSE[in.cu_seqlens_q
                   ? int64_t{tile.head} * in.total_q + tile.query_place - tile.queries + row
                   : (int64_t{tile.query_place} * in.heads + tile.head) * in.seq_q + row] =
            (reference + __log2f(sum)) * kLn2;
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
    if (lane == 0 && first_row < tile.queries) {
      tma_store(in.O_rows, output, 0, in.seq_q - tile.queries + first_row, 0, tile.head,
                tile.query_place);
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
    if (j < tile.first_full || j >= tile.end_full) mask(S, in, tile, row, j);
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
    if (tile.keys == 0) {  // the row that was loaded is another sequence's, and may be infinite
      for (float& o : O) o = 0;
      __syncwarp();  // keeps the branch, which ptxas would replace by a select for each element
    }
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
      mbarrier_init(shared.tile_full, 2);
      mbarrier_init(shared.tile_empty, kBlocks * (2 + 128 * kConsumers));
      mbarrier_init_fence();
    }
    cluster_sync();

    // The shuffle tells the compiler that all lanes agree: descriptors stay in uniform registers.
    const int consumer = __shfl_sync(0xffffffff, threadIdx.x / 128, 0) - 1;
    Position at;
    if (consumer < 0) {  // the producers: warp 0 for K and V, warp 1 for Q; warp 2 schedules
      registers_release<kProducerRegisters>();
      if (threadIdx.x >= 96) return;
      if (threadIdx.x >= 64) return schedule_tiles(in, shared);
      if (!elect_one()) return;
      ScheduledTile next;
      for (int round = 0; !is_end(next = wait_tile(shared, round)); ++round) {
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
        if (is_end(next)) break;
        cluster_arrive(shared.tile_empty, 0);
        compute_tile(in, shared, tile_at(in, next, consumer), consumer, round % 2, at);
      }
      bulk_wait_read();
      cluster_sync();  // the other block may still arrive at barriers of this block
    }
  }
};

}  // namespace

#define INSTANCES(X)                                                       \
  X(fa_39_varlen_d128, Attention<__nv_bfloat16, 1, 128, 128, 5, 128>)      \
  X(fa_39_varlen_d64, Attention<__nv_bfloat16, 1, 192, 96, 12, 64>)        \
  X(fa_39_varlen_d128_half, Attention<half, 1, 128, 128, 5, 128>)          \
  X(fa_39_varlen_d64_half, Attention<half, 1, 192, 96, 12, 64>)            \
  X(fa_39_varlen_pair_d128, Attention<__nv_bfloat16, 2, 128, 128, 5, 128>) \
  X(fa_39_varlen_pair_d128_half, Attention<half, 2, 128, 128, 5, 128>)

INSTANCES(FA_MODEL_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
static fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                           const fa::DeviceDescription& device) {
  return fa::plan_tma_varlen(problem, instance, std::span(kInstances).last(2), device);
}
FA_RUNG(39_varlen, "38", sm_90a, f16,
        causal | ragged | lse | grouped | strided | windowed | sinks | packed,
        "sequences of different lengths in packed tensors, whose maps end with each sequence",
        kInstances, plan,
        .why_large =
            "lengths become those of a sequence wherever a row is compared with them, a warp finds "
            "tiles, and where the LSE is wanted the guard watches for keys that dominate");
