// 81_two_tiles
// Idea: two tiles of queries, each with a softmax warpgroup: the tensor cores multiply for one tile
// during the softmax of the other. A third warpgroup, the correction, rescales O, so that no
// exponential waits for it.
//
// Tile              Br = 2 x 128, Bc = 128, 8 softmax warps, 4 correction warps, a producer warp, a
//                   warp for the products
// Shared memory     Q 64 KB + 4 slots of 32 KB at head_dim 128
// Tensor memory     all 512 columns at head_dim 128: 2 x S 128, 2 x O 128; P overwrites half of S
// Expected effect   tensor cores and exponentials are busy at the same time. Never timed by us.

#include "kernels/ptx/global.cuh"
#include "kernels/ptx/halves.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/tcgen05.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int Slots, int D>
struct Attention {
  static constexpr int kTiles = Br / 128;  // of 128 query rows, each with a softmax warpgroup
  static constexpr int kThreads = 128 * (kTiles + 2), kBlocksPerSm = 1, kHeadDim = D;
  static constexpr fa::Tile kTile{Br, Bc, kThreads / 32};
  static constexpr int kSoftmaxRegisters = 192, kCorrectionRegisters = 88, kOtherRegisters = 40;
  static constexpr int kAlign = 1024;
  static constexpr int kTileBytes = Bc * D * 2;  // a slot: K or V of one key block
  static constexpr int kColumns = 512;           // of tensor memory
  static constexpr uint32_t kScoresShape = tensor_shape(128, Bc, false);
  static constexpr uint32_t kOutputShape = tensor_shape(128, D, true);
  static constexpr float kSlack = 8;  // P is at most 2^8, which fits a half
  static constexpr std::size_t kSharedBytes =
      kAlign + Br * D * 2 + Slots * kTileBytes + 8 * (3 + 4 * kTiles + 2 * Slots);
  static_assert(kTiles == 2, "S and O of two tiles fill tensor memory");
  static_assert(Bc % 64 == 0, "a tcgen05.st stores 32 columns, 64 elements of P");
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
    uint32_t query, ring, query_full, finished, tensor;
    uint32_t scores_full, factors_full, probabilities_full, output_ready;  // of each tile
    uint32_t full, empty;

    __device__ explicit Shared(uint32_t memory) {
      query = (memory + kAlign - 1) & ~(kAlign - 1);
      ring = query + Br * D * 2;
      query_full = ring + Slots * kTileBytes;
      finished = query_full + 8;
      tensor = finished + 8;  // the address of the allocated tensor memory
      scores_full = tensor + 8;
      factors_full = scores_full + 8 * kTiles;
      probabilities_full = factors_full + 8 * kTiles;
      output_ready = probabilities_full + 8 * kTiles;
      full = output_ready + 8 * kTiles;
      empty = full + 8 * Slots;
    }
    __device__ void wait_full(Position at) const { mbarrier_wait(full + 8 * at.slot, at.parity); }
    __device__ uint64_t tile(Position at) const {
      return tensor_descriptor(ring + at.slot * kTileBytes, Bc * 128);
    }
    // The slot is empty when the products that were issued so far have read it.
    __device__ void release(Position at) const { tensor_commit(empty + 8 * at.slot); }
  };

  // Columns of a tile in tensor memory. P overwrites the upper half of S, which is in registers by
  // then; the next S follows the product that reads P, in the order in which products are issued.
  __device__ static uint32_t scores(uint32_t tensor, int i) { return tensor + i * Bc; }
  __device__ static uint32_t probabilities(uint32_t tensor, int i) {
    return scores(tensor, i) + Bc / 2;
  }
  __device__ static uint32_t output(uint32_t tensor, int i) { return tensor + kTiles * Bc + i * D; }

  // The thread's row: reference near the maximum of scale_log2 S, and sum.
  struct Row {
    float reference = -INFINITY, sum = 0;
  };

  // Starts S = Q K^T. Descriptors count 16 bytes: + 2 is the next 16 columns of a panel.
  // i / 4 is the panel: Br rows of Q, Bc rows of K.
  __device__ static void multiply_qk(uint32_t S, uint64_t q, uint64_t k) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
      tensor_multiply(S, q + i / 4 * (Br * 128 >> 4) + i % 4 * 2,
                      k + i / 4 * (Bc * 128 >> 4) + i % 4 * 2, kScoresShape, i > 0);
  }

  // Starts O += P V, of the first key block O = P V. A column of P has two keys. Descriptors count
  // 16 bytes: + 128 is the next 16 rows of V.
  __device__ static void multiply_pv(uint32_t O, uint32_t P, uint64_t v, bool accumulate) {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i)
      tensor_multiply(O, P + i * 8, v + i * 128, kOutputShape, accumulate || i > 0);
  }

  __device__ static float row_max(const float (&S)[Bc]) {
    float x = -INFINITY;
#pragma unroll
    for (int i = 0; i < Bc; ++i) x = fmaxf(x, S[i]);
    return x;
  }

  // P = 2^(S * scale_log2 - reference), packed to halves; returns the sum of the row.
  __device__ static float exponentials(uint32_t (&P)[Bc / 2], const float (&S)[Bc],
                                       float scale_log2, float reference) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Bc / 2; ++i) {
      const float p0 = ex2_approx(fmaf(S[2 * i], scale_log2, -reference));
      const float p1 = ex2_approx(fmaf(S[2 * i + 1], scale_log2, -reference));
      P[i] = packed<half>(p0, p1);
      sum += p0 + p1;
    }
    return sum;
  }

  // Multiplies the thread's row of O in tensor memory by alpha.
  __device__ static void rescale(uint32_t O, float alpha) {
#pragma unroll
    for (int c = 0; c < D; c += 32) {
      float o[32];
      tensor_load(o, O + c);
      tensor_wait_load(o);
#pragma unroll
      for (int i = 0; i < 32; ++i) o[i] *= alpha;
      tensor_store(O + c, o);
    }
  }

  // One thread starts the copy of Q of a tile.
  __device__ static void load_query(const fa::TmaParameters& in, const Shared& shared,
                                    const RowTile& tile) {
    mbarrier_expect(shared.query_full, Br * D * 2);
    tma_load(shared.query, in.Q, 0, tile.first_row, 0, tile.head, shared.query_full);
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

  // One thread issues the products of the tiles: Q K^T of a tile right behind its P V.
  __device__ static void multiply_tiles(const Shared& shared, const RowTile& tile,
                                        uint32_t tensor) {
    const auto start_qk = [&](int i, Position k) {
      multiply_qk(scores(tensor, i), tensor_descriptor(shared.query + i * 128 * 128, Br * 128),
                  shared.tile(k));
      tensor_commit(shared.scores_full + 8 * i);
    };
    Position at;
    mbarrier_wait(shared.query_full, 0);
    shared.wait_full(at);
    for (int i = 0; i < kTiles; ++i) start_qk(i, at);
    shared.release(at);
    at.advance();
#pragma unroll 1
    for (int j = 0; j < tile.key_blocks; ++j) {
      const Position v = at;
      const bool has_next = j + 1 < tile.key_blocks;
      at.advance();
      shared.wait_full(v);
      if (has_next) shared.wait_full(at);
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        mbarrier_wait(shared.probabilities_full + 8 * i, j % 2);
        if (j > 0) mbarrier_wait(shared.output_ready + 8 * i, (j - 1) % 2);
        tensor_fence_after();
        multiply_pv(output(tensor, i), probabilities(tensor, i), shared.tile(v), j > 0);
        if (has_next) start_qk(i, at);
      }
      shared.release(v);
      if (has_next) shared.release(at);
      at.advance();
    }
    tensor_commit(shared.finished);
  }

  // The softmax of the thread's row in tile i, and O / sum.
  __device__ static void softmax_tile(const fa::TmaParameters& in, const Shared& shared,
                                      const RowTile& tile, uint32_t tensor, int i, float& factor) {
    Row row;
#pragma unroll 1
    for (int j = 0; j < tile.key_blocks; ++j) {
      float S[Bc];
      uint32_t P[Bc / 2];
      mbarrier_wait(shared.scores_full + 8 * i, j % 2);  // and the previous P V is complete
      tensor_fence_after();
#pragma unroll
      for (int c = 0; c < Bc; c += 32) tensor_load(S + c, scores(tensor, i) + c);
      tensor_wait_load(S);
      const float block_max = row_max(S) * in.scale_log2;
      const float reference = block_max > row.reference + kSlack ? block_max : row.reference;
      const float alpha = ex2_approx(row.reference - reference);
      if (j > 0) {  // The correction has read the old factor: the P V before this S waited for it.
        factor = alpha;
        mbarrier_arrive(shared.factors_full + 8 * i);
      }
      row = {reference, row.sum * alpha + exponentials(P, S, in.scale_log2, reference)};
#pragma unroll
      for (int c = 0; c < Bc / 2; c += 32) tensor_store(probabilities(tensor, i) + c, P + c);
      tensor_wait_store();
      tensor_fence_before();
      mbarrier_arrive(shared.probabilities_full + 8 * i);
    }
    mbarrier_wait(shared.finished, 0);
    tensor_fence_after();
    store_row(in, row, tile.head, tile.first_row + threadIdx.x, output(tensor, i));
  }

  // Rescales O of both tiles between their products.
  __device__ static void correct_tiles(const Shared& shared, const RowTile& tile, uint32_t tensor,
                                       const float (&factors)[kTiles][128]) {
#pragma unroll 1
    for (int j = 1; j < tile.key_blocks; ++j) {
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        mbarrier_wait(shared.factors_full + 8 * i, (j - 1) % 2);
        const float alpha = factors[i][threadIdx.x % 128];
        tensor_fence_after();
        if (__any_sync(0xffffffff, alpha < 1)) rescale(output(tensor, i), alpha);
        tensor_wait_store();
        tensor_fence_before();
        mbarrier_arrive(shared.output_ready + 8 * i);
      }
    }
  }

  // Stores O / sum and the log-sum-exp of the thread's row.
  __device__ static void store_row(const fa::TmaParameters& in, const Row& row, int head, int index,
                                   uint32_t O) {
    const int64_t place = int64_t{head} * in.seq_q + index;
    const float inverse = __fdividef(1.f, row.sum);
    if (in.LSE) in.LSE[place] = (row.reference + __log2f(row.sum)) * kLn2;
#pragma unroll
    for (int c = 0; c < D; c += 32) {
      float o[32];
      tensor_load(o, O + c);
      tensor_wait_load(o);
#pragma unroll
      for (int i = 0; i < 32; i += 16) {
        uint32_t bits[8];  // a sector of the row
#pragma unroll
        for (int k = 0; k < 8; ++k)
          bits[k] = packed<half>(o[i + 2 * k] * inverse, o[i + 2 * k + 1] * inverse);
        store_global_v8(in.O + place * D + c + i, bits);
      }
    }
  }

  __device__ static void run(const fa::TmaParameters& in) {
    extern __shared__ unsigned char memory[];
    __shared__ float factors[kTiles][128];
    const Shared shared(shared_address(memory));
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), group = warp / 4;
    if (threadIdx.x == 0) {
      mbarrier_init(shared.query_full, 1);
      mbarrier_init(shared.finished, 1);
      for (int i = 0; i < kTiles; ++i) {
        mbarrier_init(shared.scores_full + 8 * i, 1);
        mbarrier_init(shared.factors_full + 8 * i, 128);
        mbarrier_init(shared.probabilities_full + 8 * i, 128);
        mbarrier_init(shared.output_ready + 8 * i, 128);
      }
      for (int i = 0; i < 2 * Slots; ++i) mbarrier_init(shared.full + 8 * i, 1);  // empty behind
      mbarrier_init_fence();
    }
    if (warp == 0) {
      tensor_allocate(shared.tensor, kColumns);
      tensor_relinquish();
    }
    __syncthreads();
    const uint32_t tensor = load_shared_word(shared.tensor);
    const uint32_t lanes = tensor + (warp % 4 * 32 << 16);

    const int head = blockIdx.z * gridDim.y + blockIdx.y, first_row = blockIdx.x * Br;
    const RowTile tile{head, first_row, in.seq_kv / Bc};
    if (group < kTiles) {
      registers_acquire<kSoftmaxRegisters>();
      softmax_tile(in, shared, tile, lanes, group, factors[group][threadIdx.x % 128]);
    } else if (group == kTiles) {
      registers_release<kCorrectionRegisters>();
      correct_tiles(shared, tile, lanes, factors);
    } else {
      registers_release<kOtherRegisters>();
      if (warp % 4 == 0 && elect_one()) {  // the producer
        load_query(in, shared, tile);
        Position at;
#pragma unroll 1
        for (int j = 0; j < tile.key_blocks; ++j) load_key_block(in, shared, tile, j, at);
      } else if (warp % 4 == 1 && elect_one()) {
        multiply_tiles(shared, tile, tensor);
      }
    }
    __syncthreads();  // all rows of O are loaded
    if (warp == 0) tensor_free(tensor, kColumns);
  }
};

}  // namespace

#define INSTANCES(X)                                   \
  X(fa_81_two_tiles_d128, Attention<256, 128, 4, 128>) \
  X(fa_81_two_tiles_d64, Attention<256, 128, 8, 64>)

INSTANCES(FA_TMA_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(81_two_tiles, "80", sm_100a, f16, lse,
        "two tiles of queries take turns on the tensor cores; a correction group rescales O",
        kInstances, fa::plan_tma_whole_queries,
        .why_large = "Each tile has mbarriers, and the rescaling moves to warps of its own.");
