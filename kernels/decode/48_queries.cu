// 48_queries
// Idea: several new queries. A column of the mma is a row of Q of any head of the group, and each
//       fragment of K and V meets two blocks of 8 columns.
//
// Tile              up to 16 rows of Q of a group x 64 keys, 4 warps
// Shared memory     3 stages of K 16 KB + V 16 KB and 16 KB of states at head_dim 128
// Expected effect   the bytes of one query and nearly its time: few mma and exponentials are added.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/movmatrix.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/rung.h"

namespace {

template <int Bc, int D>
struct Decode : fa::StaticKernel<16, Bc, Bc / 16, D> {
  static constexpr int kWarps = Bc / 16, kHeads = 8;  // rows and columns of an mma
  static constexpr int kSets = 2;                     // of 8 columns
  static constexpr int kStages = 3;
  static constexpr int kTileBytes = Bc * D * 2;
  static constexpr int kPlaces = 2 * kSets * kHeads;
  static constexpr int kPart = D + 32;          // floats of a place: O and the log-sum-exp
  static constexpr int kPitch = D + 4;          // of O in shared memory, against conflicts
  static constexpr float kSlack = 8;            // P is at most 2^kSlack
  static constexpr int kLanes = D / 4;          // that merge a head, 16 bytes each
  static constexpr int kMerged = 16;            // parts that are on their way at a time
  static constexpr int kBlocksPerSm = 256 / D;  // those that shared memory has room for
  static constexpr int kStateFloats = kWarps * kHeads * kPitch;
  static constexpr std::size_t kSharedBytes =
      kStages * 2 * kTileBytes + (kStateFloats + kWarps * kHeads * 2) * sizeof(float);
  static constexpr int kChunks = D / 8;                 // 16-byte chunks of a row
  static constexpr int kWarpRows = 32 / kChunks;        // rows that a warp copies at a time
  static constexpr int kCopyRows = kWarps * kWarpRows;  // and a thread block
  static_assert(Bc / kWarps <= 32, "a lane looks up a row at most");
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");

  // The columns of O that a lane merges.
  struct alignas(16) Columns {
    float of[4] = {};
  };

  // What a warp has of its keys: O transposed, and of two query heads a lane a reference near the
  // maximum and the lane's sum.
  struct State {
    float o[D / 16][4] = {};
    float max[2] = {-1e30f, -1e30f}, sum[2] = {};  // finite: no inf - inf without a key
  };

  // A head of K and V and its tiles, counted over all heads of the batch; a key.
  struct Position {
    int entry = 0, head = 0, length = 0, begin = 0, end = 0, key = 0, first_share = 0,
        last_share = 0;
  };

  __device__ static int length_of(const fa::DecodeParameters& in, int entry) {
    if (entry >= in.batch) return 0;
    return in.lengths == nullptr ? in.seq_kv : in.lengths[entry];
  }

  __device__ static int tiles_of(const fa::DecodeParameters& in, int entry) {
    return (length_of(in, entry) + Bc - 1) / Bc * (in.heads / in.group);
  }

  // Of all heads of the batch.
  __device__ static int all_tiles(const fa::DecodeParameters& in) {
    int tiles = 0;
    for (int entry = threadIdx.x % 32; entry < in.batch; entry += 32) tiles += tiles_of(in, entry);
    return __reduce_add_sync(0xffffffff, tiles);
  }

  // No share is empty: a replayed launch may have fewer tiles than thread blocks.
  __device__ static int shares_of(int all) { return min(static_cast<int>(gridDim.x), all); }

  // All tiles are divided evenly: where a share begins, and whose a tile is.
  __device__ static int share_begin(int all, int share) {
    const int shares = shares_of(all);
    return all / shares * share + all % shares * share / shares;
  }
  __device__ static int share_of(int all, int tile) {
    return static_cast<int>(((tile + int64_t{1}) * shares_of(all) - 1) / all);
  }

  // Where a tile lies. The lanes look at an entry each, and add up the tiles of those before.
  __device__ static Position position_of(const fa::DecodeParameters& in, int all, int tile) {
    const int lane = threadIdx.x % 32;
    for (int base = 0, before = 0;; base += 32) {
      int upto = tiles_of(in, base + lane);  // with the lanes below
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        const int below = __shfl_up_sync(0xffffffff, upto, offset);
        if (lane >= offset) upto += below;
      }
      const unsigned behind = __ballot_sync(0xffffffff, before + upto > tile);
      if (behind != 0) {
        const int own = __ffs(static_cast<int>(behind)) - 1;
        Position at;
        at.entry = base + own;
        at.length = length_of(in, at.entry);
        const int tiles = (at.length + Bc - 1) / Bc;
        before += __shfl_sync(0xffffffff, upto, own) - tiles * (in.heads / in.group);
        at.head = (tile - before) / tiles;
        at.begin = before + at.head * tiles;
        at.end = at.begin + tiles;
        at.key = (tile - at.begin) * Bc;
        at.first_share = share_of(all, at.begin);
        at.last_share = share_of(all, at.end - 1);
        return at;
      }
      before += __shfl_sync(0xffffffff, upto, 31);
    }
  }

  __device__ static int64_t first_query(const fa::DecodeParameters& in, const Position& at) {
    return int64_t{at.entry} * in.heads + at.head * in.group;
  }

  // Entries without a key: zeros and -infinity.
  __device__ static void store_empty(const fa::DecodeParameters& in) {
    for (int entry = blockIdx.x; entry < in.batch; entry += gridDim.x) {
      if (length_of(in, entry) > 0) continue;
      const int64_t query = int64_t{entry} * in.heads;
      for (int i = threadIdx.x; i < in.heads * D; i += blockDim.x) in.O[query * D + i] = half{};
      for (int i = threadIdx.x; in.LSE != nullptr && i < in.heads; i += blockDim.x)
        in.LSE[query + i] = -INFINITY;
    }
  }

  // Byte offset of a 16-byte chunk in a tile. XOR with the row spreads the eight rows of an
  // ldmatrix phase over all 32 banks.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(row * D * 2 + ((chunk ^ (row & 7)) << 4));
  }

  // Address of (row, chunk0 + chunk) from the address of (row, chunk0), for an even chunk.
  __device__ static uint32_t shift(uint32_t address, int chunk) {
    return (address ^ ((chunk & 7) << 4)) + (chunk & ~7) * 16;
  }

  // Of the rows of a tile that the warp copies, kWarpRows at a time, the one that is `i`.
  __device__ static int row_of(int i) {
    const int warp = threadIdx.x / 32;
    return i / kWarpRows * kCopyRows + warp * kWarpRows + i % kWarpRows;
  }

  // Where a key lies: its page and its row there.
  struct Place {
    int page = 0, row = 0;
  };

  // Looks up the rows that the warp will copy, one a lane. Without pages an entry is one page.
  __device__ static Place look_up(const fa::DecodeParameters& in, const Position& at) {
    const int64_t table = int64_t{at.entry} * ((in.seq_kv + in.page - 1) >> in.page_bits);
    const int key = at.key + row_of(threadIdx.x % 32);
    Place place{at.entry, static_cast<int>(key & ((1u << in.page_bits) - 1))};
    if (in.page_table != nullptr && key < at.length)
      place.page = in.page_table[table + (key >> in.page_bits)];
    return place;
  }

  // Starts the copies of a K and a V tile; rows behind the length become zeros.
  __device__ static void load_tiles(uint32_t stage, const fa::DecodeParameters& in,
                                    const Position& at, const Place& place) {
    const int chunk = threadIdx.x % kChunks, kv_heads = in.heads / in.group;
    const int64_t own = ((int64_t{place.page} * kv_heads + at.head) * in.page + place.row) * D;
#pragma unroll
    for (int i = 0, row = threadIdx.x / kChunks; i < Bc / kCopyRows; ++i, row += kCopyRows) {
      const int source = i * kWarpRows + threadIdx.x % 32 / kChunks;  // row_of(source) is row
      const int64_t first = __shfl_sync(0xffffffff, own, source);
      const int64_t element = at.key + row < at.length ? first + chunk * 8 : 0;
      const int bytes = at.key + row < at.length ? 16 : 0;
      cp_async_16(stage + offset(row, chunk), in.K + element, bytes);
      cp_async_16(stage + kTileBytes + offset(row, chunk), in.V + element, bytes);
    }
  }

  // The B operand of K Q^T: columns are query heads, those that there are.
  __device__ static void load_query(uint32_t (&q)[D / 16][2], const half* Q, int heads) {
    const int head = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < D / 8; ++i)
      q[i / 2][i % 2] =
          head < heads ? *reinterpret_cast<const uint32_t*>(Q + head * D + i * 8 + column) : 0;
  }

  // S = K Q^T of the warp's 16 keys.
  __device__ static void multiply_qk(float (&S)[kSets][4], const uint32_t (&q)[kSets][D / 16][2],
                                     uint32_t k) {
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      uint32_t a[4];
      ldmatrix_x4(a, shift(k, 2 * d));
#pragma unroll
      for (int n = 0; n < kSets; ++n) mma_m16n8k16(S[n], a, q[n][d][0], q[n][d][1]);
    }
  }

  // Hides the keys that a query does not see.
  __device__ static void mask(float (&S)[4], const fa::DecodeParameters& in, int head, int rows) {
    const int key = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int query = (head + threadIdx.x % 4 * 2 + i % 2) % in.seq_q;
      if (key + i / 2 * 8 >= rows - in.causal * (in.seq_q - 1 - query)) S[i] = -INFINITY;
    }
  }

  // Raises the references that a score exceeds by too much, and rescales the state to them.
  __device__ static void raise(State& state, const float (&S)[4], float scale_log2) {
    float alpha[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top = fmaxf(S[r], S[r + 2]);
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, offset));
      const bool above = fmaf(top, scale_log2, -state.max[r]) > kSlack;
      const float new_max = above ? top * scale_log2 : state.max[r];
      alpha[r] = ex2_approx(state.max[r] - new_max);
      state.max[r] = new_max;
      state.sum[r] *= alpha[r];
    }
#pragma unroll
    for (int m = 0; m < D / 16; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) state.o[m][i] *= alpha[i % 2];
  }

  // Online softmax of the warp's keys: P = 2^(scale_log2 S - max) as the B operand of V^T P.
  __device__ static void softmax(uint32_t (&P)[2], float (&S)[4], State& state, float scale_log2) {
    const float above[] = {fmaf(fmaxf(S[0], S[2]), scale_log2, -state.max[0]),
                           fmaf(fmaxf(S[1], S[3]), scale_log2, -state.max[1])};
    if (__any_sync(0xffffffff, fmaxf(above[0], above[1]) > kSlack)) raise(state, S, scale_log2);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      S[r] = ex2_approx(fmaf(S[r], scale_log2, -state.max[r]));
      S[r + 2] = ex2_approx(fmaf(S[r + 2], scale_log2, -state.max[r]));
      state.sum[r] += S[r] + S[r + 2];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const half2 p = __floats2half2_rn(S[2 * i], S[2 * i + 1]);
      P[i] = movmatrix_trans(reinterpret_cast<const uint32_t&>(p));
    }
  }

  // O += V^T P.
  __device__ static void multiply_pv(State (&state)[kSets], const uint32_t (&P)[kSets][2],
                                     uint32_t v) {
#pragma unroll
    for (int m = 0; m < D / 16; ++m) {
      uint32_t a[4];
      ldmatrix_x4_trans(a, shift(v, 2 * m));
#pragma unroll
      for (int n = 0; n < kSets; ++n) mma_m16n8k16(state[n].o[m], a, P[n][0], P[n][1]);
    }
  }

  // What 16 keys add to the state; those from `rows` on are hidden.
  __device__ static void compute_keys(State (&state)[kSets], const uint32_t (&q)[kSets][D / 16][2],
                                      const fa::DecodeParameters& in, uint32_t k, uint32_t v,
                                      int rows) {
    float S[kSets][4] = {};
    uint32_t P[kSets][2];
    multiply_qk(S, q, k);
    const int hidden = 16 - rows + in.causal * (in.seq_q - 1);  // keys, of some rows
#pragma unroll
    for (int n = 0; n < kSets; ++n) {
      if (hidden > 0) mask(S[n], in, n * kHeads, rows);
      softmax(P[n], S[n], state[n], in.scale_log2);
    }
    multiply_pv(state, P, v);
  }

  // Leaves the warp's state in shared memory: O [head][column], maximum and sum of each head.
  __device__ static void share_state(float* O, float* statistics, const State& state) {
    const int lane = threadIdx.x % 32, head = lane % 4 * 2, row = lane / 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = state.sum[r];
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, offset);
#pragma unroll
      for (int i = 0; i < D / 8; ++i)
        O[(head + r) * kPitch + i * 8 + row] = state.o[i / 2][i % 2 * 2 + r];
      if (row == 0) statistics[(head + r) * 2] = state.max[r];
      if (row == 0) statistics[(head + r) * 2 + 1] = sum;
    }
  }

  // Where a share leaves O and the log-sum-exp of a head: the second half of its places is for the
  // head that begins within it.
  __device__ static float* part_of(const fa::DecodeParameters& in, int share, int first_share,
                                   int head) {
    const int place = share == first_share ? kPlaces / 2 + head : head;
    return in.parts + (int64_t{share} * kPlaces + place) * kPart;
  }

  // A warp: adds up the states of a query head, and writes O / sum and the log-sum-exp, of a head
  // in a single share as the result, of others as a part.
  __device__ static void store_head(const fa::DecodeParameters& in, const float* states,
                                    const float* statistics, int64_t query, float* part,
                                    bool whole) {
    const int lane = threadIdx.x % 32;
    float max = -1e30f, sum = 0.f, weight[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, statistics[w * kHeads * 2]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      weight[w] = ex2_approx(statistics[w * kHeads * 2] - max);
      sum += weight[w] * statistics[w * kHeads * 2 + 1];
    }
    const float inverse = sum > 0.f ? __fdividef(1.f, sum) : 0.f;
    const float LSE = max + __log2f(sum);  // no key: log 0 is -infinity
    if (lane == 0 && !whole) part[D] = LSE;
    if (lane == 0 && whole && in.LSE != nullptr) in.LSE[query] = LSE * kLn2;
#pragma unroll
    for (int c = lane; c < D; c += 32) {
      float o = 0.f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) o = fmaf(weight[w], states[w * kHeads * kPitch + c], o);
      if (whole) in.O[query * D + c] = __float2half(o * inverse);
      if (!whole) part[c] = o * inverse;
    }
  }

  // The parts of a query head become one: a part weighs 2^(its log-sum-exp).
  __device__ static void merge_parts(const fa::DecodeParameters& in, const Position& at, int head) {
    const int64_t query = first_query(in, at) + head;
    const int lane = threadIdx.x % kLanes;
    Columns o;
    float max = -1e30f, sum = 0.f;
#pragma unroll 1
    for (int first = at.first_share; first <= at.last_share; first += kMerged) {
      Columns part[kMerged];
      float weight[kMerged], alpha = max;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        const int share = min(first + i, at.last_share);
        const float* from = part_of(in, share, at.first_share, head);
        part[i] = reinterpret_cast<const Columns*>(from)[lane];
        weight[i] = first + i > share ? -INFINITY : from[D];
      }
#pragma unroll
      for (int i = 0; i < kMerged; ++i) max = fmaxf(max, weight[i]);
      alpha = ex2_approx(alpha - max);
      sum *= alpha;
#pragma unroll
      for (int c = 0; c < 4; ++c) o.of[c] *= alpha;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        weight[i] = ex2_approx(weight[i] - max);
        sum += weight[i];
#pragma unroll
        for (int c = 0; c < 4; ++c) o.of[c] = fmaf(weight[i], part[i].of[c], o.of[c]);
      }
    }
    const float inverse = sum > 0.f ? __fdividef(1.f, sum) : 0.f;
    if (in.LSE != nullptr && lane == 0) in.LSE[query] = max * kLn2 + __logf(sum);
#pragma unroll
    for (int c = 0; c < 4; ++c) in.O[query * D + lane * 4 + c] = __float2half(o.of[c] * inverse);
  }

  // Stores what each query head of a set has, of the warps' states.
  __device__ static void store_heads(const fa::DecodeParameters& in, const Position& at,
                                     const State& state, float* states, int set) {
    const int warp = threadIdx.x / 32;
    const int64_t query = first_query(in, at);
    const bool whole = at.first_share == at.last_share;
    float* statistics = states + kStateFloats;
    share_state(states + warp * kHeads * kPitch, statistics + warp * kHeads * 2, state);
    __syncthreads();  // all states are there
    for (int i = warp, head = set * kHeads + i; i < kHeads && head < in.group;
         i += kWarps, head += kWarps)
      store_head(in, states + i * kPitch, statistics + i * 2, query + head,
                 part_of(in, blockIdx.x, at.first_share, head), whole);
  }

  // Counts a part of a head that is cut: whether it was the last.
  __device__ static bool count_part(const fa::DecodeParameters& in, const Position& at) {
    const int others = at.last_share - at.first_share;
    unsigned* counter = in.counter + at.entry * (in.heads / in.group) + at.head;
    return others > 0 && atomicInc(counter, others) == others;  // then it is 0 again
  }

  // Merges the parts of the share's first and last head, those of which it left the last one.
  __device__ static void finish_heads(const fa::DecodeParameters& in, int all, int begin,
                                      const Position& back, float* states) {
    const Position front = back.begin > begin ? position_of(in, all, begin) : back;
    int* last = reinterpret_cast<int*>(states);
    __threadfence();  // the parts are visible before the counts say so
    __syncthreads();
    if (threadIdx.x == 0) last[0] = count_part(in, front);
    if (threadIdx.x == 32) last[1] = back.begin > begin && count_part(in, back);
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      if (!last[i]) continue;
      const Position at = i == 0 ? front : back;
      __threadfence();  // no part is read before the count
      for (int head = threadIdx.x / kLanes; head < in.group; head += kWarps * 32 / kLanes)
        merge_parts(in, at, head);
    }
  }

  // An even share of the tiles of all heads; each warp computes 16 keys of a tile.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) float shared[];
    const uint32_t ring = shared_address(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int all = all_tiles(in), block = static_cast<int>(blockIdx.x);
    float* states = shared + kStages * 2 * kTileBytes / 4;
    store_empty(in);
    if (block >= all) return;  // no tile for this thread block
    const int begin = share_begin(all, block), end = share_begin(all, block + 1);

    // Starts the copy of a tile to its stage; none where there is no such tile.
    Position at = position_of(in, all, begin), ahead = at;
    Place place = look_up(in, ahead);
    const auto load_step = [&](int tile) {
      if (tile < end) {
        const uint32_t stage = ring + (tile - begin) % kStages * 2 * kTileBytes;
        load_tiles(stage, in, ahead, place);
        ahead.key += Bc;
        if (ahead.key >= ahead.length && tile + 1 < end) ahead = position_of(in, all, tile + 1);
        place = look_up(in, ahead);  // one iteration before it is needed
      }
      cp_async_commit();
    };
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) load_step(begin + i);

    // This lane's ldmatrix addresses in a stage: K as it lies, V transposed.
    const uint32_t k_lane = offset(warp * 16 + lane % 16, lane / 16);
    const uint32_t v_lane = kTileBytes + offset(warp * 16 + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    for (int tile = begin; tile < end;) {
      const half* Q = in.Q + first_query(in, at) * D;
      uint32_t q[kSets][D / 16][2];
#pragma unroll
      for (int n = 0; n < kSets; ++n) load_query(q[n], Q + n * kHeads * D, in.group - n * kHeads);
      State state[kSets];
#pragma unroll 1
      for (int key = at.key; tile < min(end, at.end); ++tile, key += Bc) {
        cp_async_wait_group<kStages - 2>();
        __syncthreads();  // the tile has arrived; the last read of the one before
        load_step(tile + kStages - 1);
        const uint32_t stage = ring + (tile - begin) % kStages * 2 * kTileBytes;
        compute_keys(state, q, in, stage + k_lane, stage + v_lane, at.length - key - warp * 16);
      }
#pragma unroll
      for (int n = 0; n < kSets; ++n) {
        if (n > 0) __syncthreads();  // the last read of the states before
        store_heads(in, at, state[n], states, n);
      }
      if (tile < end) at = position_of(in, all, tile);
    }
    finish_heads(in, all, begin, at, states);
  }
};

}  // namespace

#define INSTANCES(X)                     \
  X(fa_48_queries_d128, Decode<64, 128>) \
  X(fa_48_queries_d64, Decode<64, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(48_queries, "47", sm_80, f16,
        ragged | lse | causal | grouped | lengths | paged | few_queries,
        "several new queries: each is one more row that reads the head of K and V, and a fragment "
        "feeds 16 rows",
        kInstances, fa::plan_decode_even);
