// 80_tensor_memory
// Idea: tcgen05. One thread issues the products of the thread block, and their sums S and O are in
// tensor memory. A warpgroup loads S from there, a row per thread, and stores P for the next
// product.
//
// Tile              Br = 128, Bc = 128, 4 softmax warps, a producer warp, a warp for the products
// Shared memory     Q 32 KB + 6 slots of 32 KB at head_dim 128
// Tensor memory     S 128, P 64 and O 128 columns at head_dim 128
// Expected effect   S and O take no registers between products, and no thread is bound to a
//                   fragment of them. Products and softmax are serial. Never timed by us.

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
  static constexpr int kSoftmaxThreads = Br;  // one per row
  static constexpr int kThreads = kSoftmaxThreads + 64, kBlocksPerSm = 1, kHeadDim = D;
  static constexpr fa::Tile kTile{Br, Bc, kThreads / 32};
  static constexpr int kAlign = 1024;
  static constexpr int kTileBytes = Bc * D * 2;  // a slot: K or V of one key block
  // Columns of tensor memory. P takes half of a column per element.
  static constexpr int kScores = 0, kProbabilities = Bc, kOutput = Bc + Bc / 2;
  static constexpr int kColumns = kOutput + D <= 256 ? 256 : 512;
  static constexpr uint32_t kScoresShape = tensor_shape(Br, Bc, false);
  static constexpr uint32_t kOutputShape = tensor_shape(Br, D, true);
  static constexpr float kSlack = 8;  // P is at most 2^8, which fits a half
  static constexpr std::size_t kSharedBytes =
      kAlign + Br * D * 2 + Slots * kTileBytes + 8 * (5 + 2 * Slots);
  static_assert(Br == 128, "a row per lane of tensor memory");
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
    uint32_t query, ring, query_full, scores_full, probabilities_full, finished, tensor;
    uint32_t full, empty;

    __device__ explicit Shared(uint32_t memory) {
      query = (memory + kAlign - 1) & ~(kAlign - 1);
      ring = query + Br * D * 2;
      query_full = ring + Slots * kTileBytes;
      scores_full = query_full + 8;
      probabilities_full = scores_full + 8;
      finished = probabilities_full + 8;
      tensor = finished + 8;  // the address of the allocated tensor memory
      full = tensor + 8;
      empty = full + 8 * Slots;
    }
    __device__ void wait_full(Position at) const { mbarrier_wait(full + 8 * at.slot, at.parity); }
    __device__ uint64_t tile(Position at) const {
      return tensor_descriptor(ring + at.slot * kTileBytes, Bc * 128);
    }
    // The slot is empty when the products that were issued so far have read it.
    __device__ void release(Position at) const { tensor_commit(empty + 8 * at.slot); }
  };

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

  // One thread issues the products of a tile.
  __device__ static void multiply_tile(const Shared& shared, const RowTile& tile, uint32_t tensor) {
    const uint64_t q = tensor_descriptor(shared.query, Br * 128);
    Position at;
    mbarrier_wait(shared.query_full, 0);
#pragma unroll 1
    for (int j = 0; j < tile.key_blocks; ++j) {
      shared.wait_full(at);
      multiply_qk(tensor + kScores, q, shared.tile(at));
      shared.release(at);
      tensor_commit(shared.scores_full);
      at.advance();
      shared.wait_full(at);
      mbarrier_wait(shared.probabilities_full, j % 2);
      tensor_fence_after();
      multiply_pv(tensor + kOutput, tensor + kProbabilities, shared.tile(at), j > 0);
      shared.release(at);
      at.advance();
    }
    tensor_commit(shared.finished);
  }

  // The softmax of the thread's row, and O / sum.
  __device__ static void softmax_tile(const fa::TmaParameters& in, const Shared& shared,
                                      const RowTile& tile, uint32_t tensor) {
    Row row;
#pragma unroll 1
    for (int j = 0; j < tile.key_blocks; ++j) {
      float S[Bc];
      uint32_t P[Bc / 2];
      mbarrier_wait(shared.scores_full, j % 2);  // and the previous P V is complete
      tensor_fence_after();
#pragma unroll
      for (int c = 0; c < Bc; c += 32) tensor_load(S + c, tensor + kScores + c);
      tensor_wait_load(S);
      const float block_max = row_max(S) * in.scale_log2;
      const float reference = block_max > row.reference + kSlack ? block_max : row.reference;
      const float alpha = ex2_approx(row.reference - reference);
      row = {reference, row.sum * alpha + exponentials(P, S, in.scale_log2, reference)};
      if (j > 0 && __any_sync(0xffffffff, alpha < 1)) rescale(tensor + kOutput, alpha);
#pragma unroll
      for (int c = 0; c < Bc / 2; c += 32) tensor_store(tensor + kProbabilities + c, P + c);
      tensor_wait_store();
      tensor_fence_before();
      mbarrier_arrive(shared.probabilities_full);
    }
    mbarrier_wait(shared.finished, 0);
    tensor_fence_after();
    store_row(in, row, tile.head, tile.first_row + threadIdx.x, tensor + kOutput);
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
    const Shared shared(shared_address(memory));
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    if (threadIdx.x == 0) {
      mbarrier_init(shared.query_full, 1);
      mbarrier_init(shared.scores_full, 1);
      mbarrier_init(shared.probabilities_full, kSoftmaxThreads);
      mbarrier_init(shared.finished, 1);
      for (int i = 0; i < 2 * Slots; ++i) mbarrier_init(shared.full + 8 * i, 1);  // empty behind
      mbarrier_init_fence();
    }
    if (warp == 0) {
      tensor_allocate(shared.tensor, kColumns);
      tensor_relinquish();
    }
    __syncthreads();
    const uint32_t tensor = load_shared_word(shared.tensor);

    const int head = blockIdx.z * gridDim.y + blockIdx.y, first_row = blockIdx.x * Br;
    const RowTile tile{head, first_row, in.seq_kv / Bc};
    if (warp < Br / 32) {
      softmax_tile(in, shared, tile, tensor + (warp * 32 << 16));
    } else if (warp == Br / 32) {  // the producer
      if (elect_one()) {
        load_query(in, shared, tile);
        Position at;
#pragma unroll 1
        for (int j = 0; j < tile.key_blocks; ++j) load_key_block(in, shared, tile, j, at);
      }
    } else if (elect_one()) {
      multiply_tile(shared, tile, tensor);
    }
    __syncthreads();  // all rows of O are loaded
    if (warp == 0) tensor_free(tensor, kColumns);
  }
};

}  // namespace

#define INSTANCES(X)                                       \
  X(fa_80_tensor_memory_d128, Attention<128, 128, 6, 128>) \
  X(fa_80_tensor_memory_d64, Attention<128, 128, 10, 64>)

INSTANCES(FA_TMA_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(80_tensor_memory, "23", sm_100a, f16, lse,
        "tcgen05: one thread issues the products, and S, P and O are in tensor memory", kInstances,
        fa::plan_tma_whole_queries,
        .why_large = "The softmax loads rows of S, and a warp of its own issues the products.");
