// 70_ordered
// Idea: thread blocks add to dQ in the order of their keys, so that each launch gives the same
// bits.
//
// Tile              Br = 64 queries (128 at head_dim 64), Bc = 128 keys, 4 producer warps +
//                   2 x 4 consumer warps x 16 keys
// Shared memory     K, V 64 KB + 2 slots of Q and dO 64 KB + dS 32 KB + dQ 32 KB at head_dim 128
// Expected effect   the same bits in each launch, 5 % slower: the writer reads a counter, and waits
//                   until each addition has landed

#include "kernels/planners.h"
#include "kernels/ptx/counter.cuh"
#include "kernels/ptx/halves.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/reduce.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/ptx/stmatrix.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/rung.h"

namespace {

// What the backward pass needs of each query besides its row: the log-sum-exp in base 2, and
// delta = the sum over the columns of dO O. A warp has eight rows, and a lane 16 bytes of a row.
template <class T, int D>
struct Rows : fa::StaticKernel<64, 0, 8, D> {
  using Element = T;
  static constexpr int kLanes = D / 8, kRows = 32 / kLanes;  // of a row, at a time

  __device__ static void run(const fa::BackwardParameters& in) {
    const int lane = threadIdx.x % 32, first = blockIdx.x * 64 + threadIdx.x / 32 * 8;
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t padded = int64_t{gridDim.x} * 64, heads = int64_t{gridDim.z} * gridDim.y;
#pragma unroll
    for (int i = 0; i < 8; i += kRows) {
      const int row = first + i + lane / kLanes;
      float lse = INFINITY, sum = 0;  // P of a row with an infinite log-sum-exp is 0
      if (row < in.seq_q) {
        const int64_t place = (head * in.seq_q + row) * kLanes + lane % kLanes;
        const uint4 o = static_cast<const uint4*>(in.O)[place];
        const uint4 dO = static_cast<const uint4*>(in.dO_rows)[place];
#pragma unroll
        for (int j = 0; j < 8; ++j)
          sum += static_cast<float>(reinterpret_cast<const T*>(&o)[j]) *
                 static_cast<float>(reinterpret_cast<const T*>(&dO)[j]);
        const float natural = in.LSE[head * in.seq_q + row];
        if (natural != -INFINITY) lse = natural * kLog2E;
      }
      sum = warp_sum<kLanes>(sum);
      if (lane % kLanes == 0) {
        in.terms[head * padded + row] = lse;
        in.terms[(heads + head) * padded + row] = sum;
      }
    }
  }
};

template <class T, int D>
struct Backward {
  using Element = T;
  static constexpr int Bc = 128, Br = 8192 / D;  // keys of a thread block, queries of a tile
  static constexpr int kConsumers = 2, kThreads = 128 * (1 + kConsumers);
  static constexpr int kBlocksPerSm = 1, kHeadDim = D;
  static constexpr fa::Tile kTile{Br, Bc, kThreads / 32};
  static constexpr int kAlign = 1024, kSlots = 2;
  static constexpr int kKeyBytes = Bc * D * 2, kQueryBytes = Br * D * 2;  // K or V, Q or dO
  static constexpr int kScoreBytes = Bc * Br * 2;                         // dS
  static constexpr int kSumBytes = 64 * 64 * 4;                           // a consumer's dQ
  static constexpr int kTermBytes = Br * 4;                               // LSE or delta
  static constexpr std::size_t kSharedBytes =
      kAlign + 2 * kKeyBytes + kSlots * (2 * kQueryBytes + kScoreBytes + 2 * kTermBytes) +
      kConsumers * kSumBytes + 8 * (6 * kSlots + 2 * kConsumers);

  // A slot of the rings of Q and dO, and the phase parity of its mbarriers.
  struct Position {
    int slot = 0, parity = 0;

    __device__ void advance() {
      if (++slot == kSlots) slot = 0, parity ^= 1;
    }
  };

  // Addresses in shared memory. Swizzled tiles are aligned to kAlign; an mbarrier takes 8 bytes.
  struct Shared {
    uint32_t k, v, q, dO, dS, sums, lse, delta, q_full, dO_full, q_empty, dO_empty, dS_full,
        dS_empty, sums_full, sums_empty;

    const unsigned char* bytes;  // k as a pointer

    __device__ explicit Shared(const unsigned char* memory) {
      const uint32_t address = shared_address(memory);
      k = (address + kAlign - 1) & ~(kAlign - 1);
      bytes = memory + (k - address);
      v = k + kKeyBytes;
      q = v + kKeyBytes;
      dO = q + kSlots * kQueryBytes;
      dS = dO + kSlots * kQueryBytes;
      sums = dS + kSlots * kScoreBytes;
      lse = sums + kConsumers * kSumBytes;
      delta = lse + kSlots * kTermBytes;
      q_full = delta + kSlots * kTermBytes;
      dO_full = q_full + 8 * kSlots;
      q_empty = dO_full + 8 * kSlots;
      dO_empty = q_empty + 8 * kSlots;
      dS_full = dO_empty + 8 * kSlots;
      dS_empty = dS_full + 8 * kSlots;
      sums_full = dS_empty + 8 * kSlots;
      sums_empty = sums_full + 8 * kConsumers;
    }

    // LSE or delta of a slot, for ordinary loads.
    __device__ const unsigned char* terms(uint32_t ring, int slot) const {
      return bytes + (ring - k) + slot * kTermBytes;
    }
  };

  // The queries that see some key of the thread block, in tiles of Br, for each of the heads that
  // share its keys.
  struct Work {
    int first_key, kv_head, first_tile, tiles;

    __device__ explicit Work(const fa::BackwardParameters& in) {
      first_key = blockIdx.y * Bc;
      kv_head = blockIdx.z * gridDim.x + blockIdx.x;
      const int offset = in.seq_kv - in.seq_q, right = in.causal ? 0 : in.right;
      const int last_key = min(first_key + Bc, in.seq_kv) - 1;
      const int first_row = right < 0 ? 0 : max(0, first_key - offset - right);
      const int last_row =
          in.left < 0 ? in.seq_q - 1 : min(in.seq_q - 1, last_key - offset + in.left);
      first_tile = first_row / Br;
      tiles = last_row < first_row ? 0 : last_row / Br - first_tile + 1;
    }
    __device__ int iterations(const fa::BackwardParameters& in) const { return tiles * in.group; }
  };

  // A tile of queries: its head among those that share the keys, and its number in the head. All
  // heads of the last tile come first. So thread blocks reach a tile in the order of their keys,
  // although later keys have fewer tiles.
  struct QueryTile {
    int head, tile;

    __device__ explicit QueryTile(const Work& work)
        : head(0), tile(work.first_tile + work.tiles - 1) {}
    __device__ void advance(const fa::BackwardParameters& in) {
      if (++head == in.group) head = 0, --tile;
    }
  };

  // One thread starts the copies: in each iteration those of Q, dO and their terms. K comes with
  // the first Q, and V with the first dO.
  __device__ static void load(const fa::BackwardParameters& in, const Shared& shared,
                              const Work& work) {
    const int padded = (in.seq_q + Br - 1) / Br * Br;
    const int64_t all_rows = int64_t{gridDim.z} * gridDim.x * in.group * padded;
    Position at;
    QueryTile query(work);
#pragma unroll 1
    for (int iteration = 0; iteration < work.iterations(in); ++iteration) {
      const int head = work.kv_head * in.group + query.head, row = query.tile * Br;
      const int key_bytes = iteration == 0 ? kKeyBytes : 0;
      const float* terms = in.terms + int64_t{head} * padded + row;
      query.advance(in);
      const uint32_t q_full = shared.q_full + 8 * at.slot, dO_full = shared.dO_full + 8 * at.slot;
      mbarrier_wait(shared.q_empty + 8 * at.slot, at.parity ^ 1);
      mbarrier_expect(q_full, key_bytes + kQueryBytes + kTermBytes);
      if (key_bytes > 0) tma_load(shared.k, in.K, 0, work.first_key, 0, work.kv_head, q_full);
      tma_load(shared.q + at.slot * kQueryBytes, in.Q, 0, row, 0, head, q_full);
      bulk_load(shared.lse + at.slot * kTermBytes, terms, kTermBytes, q_full);
      mbarrier_wait(shared.dO_empty + 8 * at.slot, at.parity ^ 1);
      mbarrier_expect(dO_full, key_bytes + kQueryBytes + kTermBytes);
      if (key_bytes > 0) tma_load(shared.v, in.V, 0, work.first_key, 0, work.kv_head, dO_full);
      tma_load(shared.dO + at.slot * kQueryBytes, in.dO, 0, row, 0, head, dO_full);
      bulk_load(shared.delta + at.slot * kTermBytes, terms + all_rows, kTermBytes, dO_full);
      at.advance();
    }
  }

  // One arrival per warp, after all its lanes: each warp loads LSE and delta itself, and no wait
  // for a product covers these loads.
  __device__ static void release(uint32_t barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
  }

  // Starts S^T = K Q^T, or dP^T = V dO^T: rows are the consumer's 64 keys, columns the queries.
  // Descriptors count 16 bytes: + 2 is the next 16 columns of a panel.
  __device__ static void multiply_rows(float (&S)[Br / 2], uint64_t keys, uint64_t queries) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
      wgmma<T>(S, keys + i / 4 * (Bc * 128 >> 4) + i % 4 * 2,
               queries + i / 4 * (Br * 128 >> 4) + i % 4 * 2, i > 0);
    wgmma_commit();
  }

  // Starts dV += P^T dO, or dK += dS^T Q. Descriptors count 16 bytes: + 128 is the next 16 rows.
  __device__ static void multiply_columns(float (&sum)[D / 2],
                                          const uint32_t (&weights)[Br / 16][4], uint64_t queries) {
#pragma unroll
    for (int i = 0; i < Br / 16; ++i) wgmma_transposed<T>(sum, weights[i], queries + i * 128, 1);
    wgmma_commit();
  }

  // Starts dQ = dS K, of the 64 columns of the consumer or, at head_dim 64, of its 64 queries.
  __device__ static void multiply_queries(float (&dQ)[32], uint64_t dS, uint64_t k) {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i)
      wgmma_transposed<T>(dQ, dS + i / 4 * (Br * 128 >> 4) + i % 4 * 2, k + i * 128, i > 0);
    wgmma_commit();
  }

  // Index among the block's 128 keys; the thread's second key is eight further.
  __device__ static int own_key() {
    return (threadIdx.x - 128) / 32 * 16 + threadIdx.x % 32 / 4;
  }

  // Sets scores to -INFINITY where the query does not see the key.
  __device__ static void mask(float (&S)[Br / 2], const fa::BackwardParameters& in,
                              const Work& work, int first_row) {
    const int key = work.first_key + own_key(), offset = in.seq_kv - in.seq_q;
    const int row = first_row + threadIdx.x % 4 * 2 + offset;
    const int right = in.causal ? 0 : in.right < 0 ? in.seq_q : in.right;
    const int left = in.left < 0 ? in.seq_kv : in.left;
#pragma unroll
    for (int i = 0; i < Br / 2; ++i) {
      const int own = key + i / 2 % 2 * 8, place = row + i / 4 * 8 + i % 2;
      if (own >= in.seq_kv || own > place + right || own < place - left) S[i] = -INFINITY;
    }
  }

  // The terms of the queries of columns 8 i + 2 t and 8 i + 2 t + 1, t the lane's place in its
  // quad.
  __device__ static float2 terms_at(const unsigned char* terms, int i) {
    return reinterpret_cast<const float2*>(terms)[i * 4 + threadIdx.x % 4];
  }

  // Replaces S by P = 2^(S scale_log2 - LSE).
  __device__ static void exponentials(float (&S)[Br / 2], const unsigned char* lse,
                                      float scale_log2) {
#pragma unroll
    for (int i = 0; i < Br / 8; ++i) {
      const float2 x = terms_at(lse, i);
      float* s = S + 4 * i;
      s[0] = ex2_approx(fmaf(s[0], scale_log2, -x.x));
      s[1] = ex2_approx(fmaf(s[1], scale_log2, -x.y));
      s[2] = ex2_approx(fmaf(s[2], scale_log2, -x.x));
      s[3] = ex2_approx(fmaf(s[3], scale_log2, -x.y));
    }
  }

  // Replaces dP by dS = P (dP - delta).
  __device__ static void differences(float (&dP)[Br / 2], const float (&P)[Br / 2],
                                     const unsigned char* delta) {
#pragma unroll
    for (int i = 0; i < Br / 8; ++i) {
      const float2 x = terms_at(delta, i);
      float* s = dP + 4 * i;
      const float* p = P + 4 * i;
      s[0] = p[0] * (s[0] - x.x);
      s[1] = p[1] * (s[1] - x.y);
      s[2] = p[2] * (s[2] - x.x);
      s[3] = p[3] * (s[3] - x.y);
    }
  }

  // The accumulator layout, packed, is the layout of an A operand.
  __device__ static void pack(uint32_t (&weights)[Br / 16][4], const float (&S)[Br / 2]) {
#pragma unroll
    for (int i = 0; i < Br / 4; ++i) weights[i / 4][i % 4] = packed<T>(S[2 * i], S[2 * i + 1]);
  }

  // Stores dS with a row for each query, in panels of 64 keys, one of each consumer. Chunk index
  // XOR row, 16 bytes each: 128-byte swizzle.
  __device__ static void store_scores(uint32_t dS, const uint32_t (&weights)[Br / 16][4],
                                      int consumer) {
    const int lane = threadIdx.x % 32, row = lane / 16 * 8 + lane % 8;
    const int chunk = threadIdx.x % 128 / 32 * 2 + lane / 8 % 2;
    const uint32_t place = dS + consumer * (Br * 128) + row * 128 + ((chunk ^ row % 8) << 4);
#pragma unroll
    for (int i = 0; i < Br / 16; ++i) stmatrix_x4_transposed(place + i * (16 * 128), weights[i]);
  }

  // Lays the consumer's dQ out in shared memory for the writer, after the writer's TMA has read the
  // previous dQ. The permutation avoids bank conflicts: an 8-byte store serves 16 lanes per
  // wavefront.
  __device__ static void stage_queries(const float (&dQ)[32], const Shared& shared, int consumer,
                                       int parity) {
    const uint32_t staged = shared.sums + consumer * kSumBytes;
    const int row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    const uint32_t pair = staged + (row * 64 + threadIdx.x % 4 * 2) * 4;
    mbarrier_wait(shared.sums_empty + 8 * consumer, parity ^ 1);
#pragma unroll
    for (int i = 0; i < 16; ++i)
      store_shared_v2(pair + i % 2 * (8 * 64 * 4) + (i / 2 ^ row % 8) * 32, dQ[2 * i],
                      dQ[2 * i + 1]);
    fence_async_proxy();
    release(shared.sums_full + 8 * consumer);
  }

  // One thread adds what a consumer has laid out to the sums of its tiles, after the thread blocks
  // of earlier keys, which start earlier, though CUDA does not promise it. The first one stores, so
  // that nothing need be zeroed, and the last one leaves a zero in the counter for the next launch.
  __device__ static void write(const fa::BackwardParameters& in, const Shared& shared,
                               const Work& work, int consumer) {
    const int padded_tiles = (in.seq_q + Br - 1) / Br, offset = in.seq_kv - in.seq_q;
    const int right = in.causal ? 0 : in.right < 0 ? in.seq_q : in.right;
    const unsigned block = work.first_key / Bc;
    QueryTile query(work);
#pragma unroll 1
    for (int iteration = 0; iteration < work.iterations(in); ++iteration) {
      const int64_t tile =
          int64_t{work.kv_head * in.group + query.head} * padded_tiles + query.tile;
      const int place = query.tile * Br + offset;
      const unsigned first = in.left < 0 ? 0 : max(0, place - in.left) / Bc;
      const unsigned last = min(in.seq_kv - 1, place + Br - 1 + right) / Bc;
      unsigned* counter = in.counters + 2 * tile + consumer;
      while (read_in_order(counter) != block - first) {
      }
      mbarrier_wait(shared.sums_full + 8 * consumer, iteration % 2);
      fence_async_proxy_global();  // orders the addition behind the read of the counter
      float* sums = in.sums + tile * (Br * D) + consumer * (kSumBytes / 4);
      const uint32_t staged = shared.sums + consumer * kSumBytes;
      if (block == first) {
        bulk_store(sums, staged, kSumBytes);
      } else {
        bulk_add(sums, staged, kSumBytes);
      }
      bulk_commit();
      bulk_wait_read();
      mbarrier_arrive(shared.sums_empty + 8 * consumer);
      bulk_wait();  // the addition has landed; its completion includes a proxy fence
      pass_turn(counter, last - first);
      query.advance(in);
    }
  }

  // Exchanges registers in a quad: before, lane t holds columns 2 t and 2 t + 1 of each eight of
  // 32; after, all of the t-th eight. A 4 x 4 transposition takes two exchanges of two registers.
  __device__ static void transpose(uint32_t (&x)[4]) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int step = 1; step <= 2; step *= 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i & step) continue;
        uint32_t &low = x[i], &high = x[i + step];
        const uint32_t other = __shfl_xor_sync(0xffffffff, t & step ? low : high, step);
        (t & step ? low : high) = other;
      }
    }
  }

  // Stores 64 rows of dK or dV, 16 bytes a lane: a quad stores two whole sectors of 32 bytes.
  __device__ static void store_keys(const fa::BackwardParameters& in, void* gradient,
                                    const float (&sum)[D / 2], const Work& work, float factor) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int key = work.first_key + own_key() + r * 8;
      T* row = static_cast<T*>(gradient) + (int64_t{work.kv_head} * in.seq_kv + key) * D +
               threadIdx.x % 4 * 8;
#pragma unroll
      for (int n = 0; n < D / 8; n += 4) {
        uint32_t x[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* pair = sum + 4 * (n + i) + 2 * r;
          x[i] = packed<T>(pair[0] * factor, pair[1] * factor);
        }
        transpose(x);
        if (key < in.seq_kv)
          *reinterpret_cast<uint4*>(row + n * 8) = make_uint4(x[0], x[1], x[2], x[3]);
      }
    }
  }

  __device__ static void compute(const fa::BackwardParameters& in, const Shared& shared,
                                 const Work& work, int consumer) {
    const uint64_t k = wgmma_descriptor(shared.k + consumer * (64 * 128), Bc * 128);
    const uint64_t v = wgmma_descriptor(shared.v + consumer * (64 * 128), Bc * 128);
    const auto queries = [](uint32_t ring, Position at) {
      return wgmma_descriptor(ring + at.slot * kQueryBytes, Br * 128);
    };
    float dK[D / 2] = {}, dV[D / 2] = {}, S[Br / 2], dP[Br / 2], dQ[32];
    uint32_t P_packed[Br / 16][4], dS_packed[Br / 16][4];
    const int iterations = work.iterations(in);
    if (iterations == 0) {  // no query sees a key of the thread block
      store_keys(in, in.dV, dV, work, 1);
      store_keys(in, in.dK, dK, work, 1);
      return;
    }
    const int rows = D == 64 ? consumer : 0, columns = consumer - rows;  // in units of 64
    const uint64_t k_columns = wgmma_descriptor(shared.k + columns * (Bc * 128), Bc * 128);
    const auto scores = [&](Position of) {
      return wgmma_descriptor(shared.dS + of.slot * kScoreBytes + rows * (64 * 128), Br * 128);
    };
    QueryTile query(work);
    Position at, last;
    const auto start_scores = [&](Position of) {
      mbarrier_wait(shared.q_full + 8 * of.slot, of.parity);
      wgmma_fence();
      multiply_rows(S, k, queries(shared.q, of));
    };
    const auto start_differences = [&](Position of) {
      mbarrier_wait(shared.dO_full + 8 * of.slot, of.parity);
      wgmma_fence();
      multiply_rows(dP, v, queries(shared.dO, of));
    };
    const auto finish_scores = [&](Position of) {
      wgmma_wait<1>(S);
      const bool beyond = work.first_key + Bc > in.seq_kv;
      const int place = query.tile * Br + in.seq_kv - in.seq_q, right = in.causal ? 0 : in.right;
      const bool diagonal = right >= 0 && place + right < work.first_key + Bc - 1;
      const bool behind = in.left >= 0 && place + Br - 1 - in.left > work.first_key;
      if (beyond || diagonal || behind) mask(S, in, work, query.tile * Br);
      query.advance(in);
      exponentials(S, shared.terms(shared.lse, of.slot), in.scale_log2);
      wgmma_wait<0>(dP);
      differences(dP, S, shared.terms(shared.delta, of.slot));
      pack(P_packed, S);
      pack(dS_packed, dP);
    };
    const auto share_scores = [&](Position of) {
      mbarrier_wait(shared.dS_empty + 8 * of.slot, of.parity ^ 1);
      store_scores(shared.dS + of.slot * kScoreBytes, dS_packed, consumer);
      fence_async_proxy();
      release(shared.dS_full + 8 * of.slot);
    };
    wgmma_tie(dK);  // or the compiler could move the zeroing past the fence
    wgmma_tie(dV);
    start_scores(at);
    start_differences(at);
    finish_scores(at);
    share_scores(at);
    // The products of a tile. First: none came before it; Last: none follows.
    const auto iterate = [&]<bool First, bool Last>(std::bool_constant<First>,
                                                    std::bool_constant<Last>, int i) {
      barrier_sync(1 + consumer, 256);  // wait for the turn
      if constexpr (!First) mbarrier_wait(shared.dS_full + 8 * last.slot, last.parity);
      wgmma_fence();
      if constexpr (!First) multiply_queries(dQ, scores(last), k_columns);
      multiply_columns(dV, P_packed, queries(shared.dO, at));
      multiply_columns(dK, dS_packed, queries(shared.q, at));
      if constexpr (!First) {
        wgmma_wait<2>(dQ);
        release(shared.dS_empty + 8 * last.slot);
        stage_queries(dQ, shared, consumer, (i - 1) % 2);
      }
      if constexpr (Last) {  // nobody waits for the last turn of consumer 1 to be passed
        if (consumer == 0) barrier_arrive(2, 256);
        wgmma_wait<0>(dV, dK);
        last = at;
      } else {
        Position next = at;
        next.advance();
        // Each wait frees registers: P's for S, dS's for dP.
        wgmma_wait<1>(dV);
        release(shared.dO_empty + 8 * at.slot);
        start_scores(next);
        wgmma_wait<1>(dK);
        release(shared.q_empty + 8 * at.slot);
        start_differences(next);
        barrier_arrive(2 - consumer, 256);  // pass the turn: barrier 1 + (1 - consumer)
        finish_scores(next);
        share_scores(next);
        last = at;
        at = next;
      }
    };
    if (consumer == 1) barrier_arrive(1, 256);  // the first turn is that of consumer 0
    const std::true_type yes;
    const std::false_type no;
    if (iterations == 1) {
      iterate(yes, yes, 0);
    } else {
      iterate(yes, no, 0);
#pragma unroll 1
      for (int i = 1; i < iterations - 1; ++i) iterate(no, no, i);
      iterate(no, yes, iterations - 1);
    }
    mbarrier_wait(shared.dS_full + 8 * last.slot, last.parity);
    wgmma_fence();
    multiply_queries(dQ, scores(last), k_columns);
    store_keys(in, in.dV, dV, work, 1);
    wgmma_wait<0>(dQ);
    stage_queries(dQ, shared, consumer, (iterations - 1) % 2);
    store_keys(in, in.dK, dK, work, in.scale);
  }

  __device__ static void run(const fa::BackwardParameters& in) {
    extern __shared__ unsigned char memory[];
    const Shared shared(memory);
    if (threadIdx.x == 0) {
      // q_full and dO_full are adjacent; so are q_empty to dS_empty, where all eight warps arrive.
      for (int i = 0; i < 2 * kSlots; ++i) mbarrier_init(shared.q_full + 8 * i, 1);
      for (int i = 0; i < 4 * kSlots; ++i) mbarrier_init(shared.q_empty + 8 * i, 4 * kConsumers);
      for (int i = 0; i < kConsumers; ++i) mbarrier_init(shared.sums_full + 8 * i, 4);
      for (int i = 0; i < kConsumers; ++i) mbarrier_init(shared.sums_empty + 8 * i, 1);
      mbarrier_init_fence();
    }
    __syncthreads();
    const Work work(in);
    // The shuffle tells the compiler that all lanes agree: descriptors stay in uniform registers.
    const int consumer = __shfl_sync(0xffffffff, threadIdx.x / 128, 0) - 1;
    if (consumer < 0) {
      registers_release<24>();
      const int warp = threadIdx.x / 32;
      if (warp > kConsumers || !elect_one()) return;
      warp == 0 ? load(in, shared, work) : write(in, shared, work, warp - 1);
    } else {
      registers_acquire<240>();
      compute(in, shared, work, consumer);
    }
  }
};

// dQ = scale times the sums of a 64 x 64 part, or 0 where the whole tile of Br queries sees no key:
// such sums were never stored. The XOR undoes the permutation of stage_queries.
template <class T, int D>
struct Finish : fa::StaticKernel<64, 0, 4, D> {
  using Element = T;

  __device__ static void run(const fa::BackwardParameters& in) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const float* sums = in.sums + (head * gridDim.x + blockIdx.x) * (64 * 64);
    const int first_row = blockIdx.x / (D / 64) * 64, first_column = blockIdx.x % (D / 64) * 64;
    T* dQ = static_cast<T*>(in.dQ) + head * in.seq_q * D + first_column;
    constexpr int Br = 8192 / D;
    const int last_row = first_row | (Br - 1) /* of its tile */, right = in.causal ? 0 : in.right;
    const bool stored = right < 0 || last_row + in.seq_kv - in.seq_q + right >= 0;
#pragma unroll
    for (int i = threadIdx.x; i < 64 * 64 / 4; i += 128) {
      const float4 x = stored ? reinterpret_cast<const float4*>(sums)[i] : float4{};
      const int row = i / 16, column = i % 16 * 4 ^ row % 8 * 8;
      if (first_row + row >= in.seq_q) return;
      const uint2 four{packed<T>(x.x * in.scale, x.y * in.scale),
                       packed<T>(x.z * in.scale, x.w * in.scale)};
      *reinterpret_cast<uint2*>(dQ + int64_t{first_row + row} * D + column) = four;
    }
  }
};

}  // namespace

FA_BACKWARD_KERNELS(fa_70_ordered, Backward, Rows, Finish)
static fa::PlanResult plan_in_order(const fa::Problem& problem, const fa::Instance& instance,
                                    const fa::DeviceDescription& device) {
  return fa::key_blocks_in_order(plan(problem, instance, device), problem, device);
}
FA_RUNG(70_ordered, "69", sm_90a, f16,
        causal | ragged | grouped | windowed | sinks | backward | deterministic,
        "thread blocks add to dQ in the order of their keys", kInstances, plan_in_order);
