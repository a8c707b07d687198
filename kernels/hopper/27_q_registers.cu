// 27_q_registers
// Idea: Q is the same for all key blocks: it stays in registers as the A operand of Q K^T.
//
// Tile              Br = 128, Bc = 128, 4 producer warps + 2 x 4 consumer warps x 16 rows
// Shared memory     Q 32 KB + 6 slots of 32 KB at head_dim 128
// Expected effect   Q K^T reads a third less shared memory: less energy, and less time where power
//                   is the limit. The next Q can be loaded as soon as this one is in registers.

#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int Slots, int D>
struct Attention {
  static constexpr int kConsumers = Br / 64;  // warpgroups that compute 64 query rows each
  static constexpr int kThreads = 128 * (1 + kConsumers), kBlocksPerSm = 1, kHeadDim = D;
  static constexpr fa::Tile kTile{Br, Bc, kThreads / 32};
  static constexpr int kRegisters = kConsumers == 2 ? 240 : 160;  // per consumer thread
  static constexpr int kProducerRegisters = kConsumers == 2 ? 24 : 32;
  static constexpr int kAlign = 1024, kQueryBytes = 64 * D * 2;
  static constexpr int kTileBytes = Bc * D * 2;  // a slot: K or V of one key block
  static constexpr std::size_t kSharedBytes =
      kAlign + Br * D * 2 + Slots * kTileBytes + 8 * (2 * kConsumers + 2 * Slots);
  static_assert(Br % 64 == 0, "a warpgroup computes the 64 rows of one wgmma");
  static_assert(kConsumers == 2 || kConsumers == 3, "setmaxnreg has values for two or three");
  static_assert(Bc % 16 == 0, "P V advances by 16 keys, the k of one mma");
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");

  struct RowTile {
    int head, first_row, key_blocks;
  };

  // A slot of the ring K0 V0 K1 V1 ..., and the phase parity of its mbarriers.
  struct Position {
    int slot = 0, parity = 0;

    __device__ void advance() {
      if (++slot == Slots) slot = 0, parity ^= 1;
    }
  };

  // Addresses in shared memory. Swizzled tiles are aligned to kAlign; an mbarrier takes 8 bytes.
  struct Shared {
    uint32_t query, ring, query_full, query_empty, full, empty;

    __device__ explicit Shared(uint32_t memory) {
      query = (memory + kAlign - 1) & ~(kAlign - 1);
      ring = query + Br * D * 2;
      query_full = ring + Slots * kTileBytes;
      query_empty = query_full + 8 * kConsumers;
      full = query_empty + 8 * kConsumers;
      empty = full + 8 * Slots;
    }
    __device__ void wait_full(Position at) const { mbarrier_wait(full + 8 * at.slot, at.parity); }
    __device__ uint64_t tile(Position at) const {
      return wgmma_descriptor(ring + at.slot * kTileBytes, Bc * 128);
    }
    // One thread arrives for all four warps: they share one wgmma group, and its wait ends when
    // every warp's products have read the slot.
    __device__ void release(Position at) const {
      mbarrier_arrive_if(threadIdx.x % 128 == 0, empty + 8 * at.slot);
    }
  };

  // Two rows per thread: maximum of scale_log2 S, sum over the thread's columns, rescaling factor.
  struct Rows {
    float max[2] = {-INFINITY, -INFINITY}, sum[2] = {}, alpha[2];
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

  // Replaces row r of S by P = 2^(S * scale_log2 - max); returns the sum over the thread's columns.
  __device__ static float exponentials(float (&S)[Bc / 2], int r, float scale_log2, float max) {
    float sum = 0;
#pragma unroll
    for (int i = 2 * r; i < Bc / 2; i += 4) {
      S[i] = ex2_approx(fmaf(S[i], scale_log2, -max));
      S[i + 1] = ex2_approx(fmaf(S[i + 1], scale_log2, -max));
      sum += S[i] + S[i + 1];
    }
    return sum;
  }

  __device__ static void softmax(float (&S)[Bc / 2], Rows& rows, float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float new_max = fmaxf(rows.max[r], row_max(S, r) * scale_log2);
      rows.alpha[r] = ex2_approx(rows.max[r] - new_max);
      rows.max[r] = new_max;
      rows.sum[r] = rows.sum[r] * rows.alpha[r] + exponentials(S, r, scale_log2, new_max);
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

  // Starts O += P V. Descriptors count 16 bytes: + 128 is the next 16 rows of V.
  __device__ static void multiply_pv(float (&O)[D / 2], const uint32_t (&P)[Bc / 16][4],
                                     uint64_t v) {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) wgmma_transposed(O, P[i], v + i * 128, 1);
    wgmma_commit();
  }

  __device__ static int tile_count(const fa::TmaParameters& in) {
    return in.seq_q / Br * in.heads;
  }
  // A division costs little beside a long tile; CUTLASS uses FastDivmod.
  __device__ static RowTile tile_at(const fa::TmaParameters& in, int t) {
    const int row_tiles = in.seq_q / Br;
    return {t / row_tiles, t % row_tiles * Br, in.seq_kv / Bc};
  }

  // One thread starts the copies of Q of a tile, each when its consumer has released Q.
  __device__ static void load_query(const fa::TmaParameters& in, const Shared& shared,
                                    const RowTile& tile, int parity) {
    for (int i = 0; i < kConsumers; ++i) {
      mbarrier_wait(shared.query_empty + 8 * i, parity ^ 1);
      mbarrier_expect(shared.query_full + 8 * i, kQueryBytes);
      tma_load(shared.query + i * kQueryBytes, in.Q, 0, tile.first_row + i * 64, 0, tile.head,
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
      tma_load(slot, map, 0, j * Bc, 0, tile.head, full);
      at.advance();
    };
    load(in.K);
    load(in.V);
  }

  // Q K^T and the softmax of key block j, P V of key block j - 1.
  __device__ __forceinline__ static void compute_key_block(
      const fa::TmaParameters& in, const Shared& shared, const Query& q, float (&S)[Bc / 2],
      uint32_t (&P)[Bc / 16][4], float (&O)[D / 2], Rows& rows, Position& at, const RowTile& tile,
      int j) {
    const Position v = at;
    at.advance();
    shared.wait_full(at);
    wgmma_fence();
    multiply_qk(S, q, shared.tile(at));  // of key block j
    shared.wait_full(v);
    wgmma_fence();
    multiply_pv(O, P, shared.tile(v));  // of key block j - 1
    wgmma_wait<1>(S);
    shared.release(at);
    softmax(S, rows, in.scale_log2);
    wgmma_wait<0>(O);  // from here on P may be overwritten and O may be read
    shared.release(v);
    rescale(O, rows);
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
      const float sum = quad_sum(rows.sum[r]);
      inverse[r] = __fdividef(1.f, sum);
      const int row = first_row + r * 8;
      if (in.LSE && lane % 4 == 0)
        in.LSE[int64_t{head} * in.seq_q + row] = (rows.max[r] + __log2f(sum)) * kLn2;
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = first_row + r * 8;
      half* out = in.O + (int64_t{head} * in.seq_q + row) * D + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        *reinterpret_cast<half2*>(out + n * 8) =
            __floats2half2_rn(O[4 * n + 2 * r] * inverse[r], O[4 * n + 2 * r + 1] * inverse[r]);
    }
  }

  // A consumer computes its 64 rows of a tile.
  __device__ static void compute_tile(const fa::TmaParameters& in, const Shared& shared,
                                      const RowTile& tile, int consumer, int parity, Position& at) {
    const int row = tile.first_row + consumer * 64 + threadIdx.x % 128 / 32 * 16 +
                    threadIdx.x % 32 / 4;  // the first of two
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
    softmax(S, rows, in.scale_log2);
    pack(P, S);
    at.advance();
    for (int j = 1; j < tile.key_blocks; ++j)
      compute_key_block(in, shared, q, S, P, O, rows, at, tile, j);
    shared.wait_full(at);
    wgmma_fence();
    multiply_pv(O, P, shared.tile(at));
    wgmma_wait<0>(O);
    shared.release(at);
    at.advance();
    store_rows(in, O, rows, tile.head, row);
  }

  __device__ static void run(const fa::TmaParameters& in) {
    extern __shared__ unsigned char memory[];
    const Shared shared(shared_address(memory));
    if (threadIdx.x == 0) {
      // query_full, and query_empty right behind it
      for (int i = 0; i < 2 * kConsumers; ++i) mbarrier_init(shared.query_full + 8 * i, 1);
      for (int i = 0; i < Slots; ++i) mbarrier_init(shared.full + 8 * i, 1);
      for (int i = 0; i < Slots; ++i) mbarrier_init(shared.empty + 8 * i, kConsumers);
      mbarrier_init_fence();
    }
    __syncthreads();

    // The shuffle tells the compiler that all lanes agree: descriptors stay in uniform registers.
    const int consumer = __shfl_sync(0xffffffff, threadIdx.x / 128, 0) - 1;
    Position at;
    if (consumer < 0) {  // the producers: warp 0 for K and V, warp 1 for Q
      registers_release<kProducerRegisters>();
      if (threadIdx.x >= 64 || !elect_one()) return;
      for (int round = 0, t = blockIdx.x; t < tile_count(in); ++round, t += gridDim.x) {
        const RowTile tile = tile_at(in, t);
        if (threadIdx.x >= 32) load_query(in, shared, tile, round % 2);
#pragma unroll 1
        for (int j = 0; threadIdx.x < 32 && j < tile.key_blocks; ++j)
          load_key_block(in, shared, tile, j, at);
      }
    } else {
      registers_acquire<kRegisters>();
      for (int round = 0, t = blockIdx.x; t < tile_count(in); ++round, t += gridDim.x)
        compute_tile(in, shared, tile_at(in, t), consumer, round % 2, at);
    }
  }
};

}  // namespace

#define INSTANCES(X)                                     \
  X(fa_27_q_registers_d128, Attention<128, 128, 6, 128>) \
  X(fa_27_q_registers_d64, Attention<128, 128, 10, 64>)

INSTANCES(FA_TMA_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(27_q_registers, "26", sm_90a, f16, lse, "Q stays in registers as the A operand of Q K^T",
        kInstances, fa::plan_tma_persistent);
