// 49_wgmma
// Idea: 64 rows of Q of a group fill wgmma. S, packed to halves, is the first operand of P V in the
//       registers where it is, and no warp loads a fragment of K and V.
//
// Tile              up to 64 rows of Q of a group x 128 keys, 2 x 4 warps x 16 rows
// Shared memory     3 stages of K 32 KB + V 32 KB and 33 KB of states at head_dim 128
// Expected effect   948 clocks of instructions and 1024 of products for a tile whose bytes take
//                   3520: the bytes decide, whatever the rows.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/rung.h"

namespace {

template <int Bc, int D>
struct Decode : fa::StaticKernel<64, Bc, Bc / 16, D> {
  static constexpr int kWarps = Bc / 16, kKeys = 64;
  static constexpr int kStages = 384 / D;
  static constexpr int kTileBytes = Bc * D * 2;
  static constexpr int kPlaces = 2 * 64;
  static constexpr int kPart = D + 32;   // floats of a place: O and the log-sum-exp
  static constexpr float kSlack = 8;     // P is at most 2^kSlack
  static constexpr int kLanes = D / 16;  // that merge a row, 4 x 16 bytes each
  static constexpr int kMerged = 4;      // parts that are on their way at a time
  static constexpr int kBlocksPerSm = 1;
  static constexpr int kAlign = 1024;                     // of tiles with the 128-byte swizzle
  static constexpr int kStateFloats = (D / 2 + 4) * 128;  // of four warps
  static constexpr std::size_t kSharedBytes =
      kAlign + kStages * 2 * kTileBytes + kStateFloats * sizeof(float);
  static constexpr int kChunks = D / 8;                 // 16-byte chunks of a row
  static constexpr int kWarpRows = 32 / kChunks;        // rows that a warp copies at a time
  static constexpr int kCopyRows = kWarps * kWarpRows;  // and a thread block
  static_assert(Bc == 2 * kKeys, "two warpgroups, each with 64 keys of a tile");
  static_assert(Bc / kWarps <= 32, "a lane looks up a row at most");
  static_assert(D % 64 == 0, "a panel of the 128-byte swizzle is 64 columns wide");

  // Of two rows a lane, a reference near the maximum and the lane's sum.
  struct State {
    float max[2] = {-1e30f, -1e30f}, sum[2] = {};  // finite: no inf - inf without a key
  };

  // The row of Q within the group, the thread's first.
  __device__ static int first_row() { return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4; }

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

  // Byte offset of a 16-byte chunk in a tile: panels of 64 columns, 128-byte swizzle.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(chunk / 8 * (Bc * 128) + row * 128 + ((chunk % 8 ^ row % 8) << 4));
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

  // The warp's 16 rows of Q as A operands; those behind the group are zeros.
  using Query = uint32_t[D / 16][4];
  __device__ static void load_query(Query& q, const half* Q, int rows) {
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < D / 4; ++i) {
      const int row = first_row() + i % 2 * 8;
      const half* at = Q + row * D + i / 2 * 8 + column;
      q[i / 4][i % 4] = row < rows ? *reinterpret_cast<const uint32_t*>(at) : 0;
    }
  }

  // Starts S = Q K^T.
  __device__ static void multiply_qk(float (&S)[kKeys / 8][4], const Query& q, uint64_t k) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i) wgmma(S, q[i], k + i / 4 * (Bc * 128 >> 4) + i % 4 * 2, i > 0);
    wgmma_commit();
  }

  // Hides the keys that a query does not see.
  __device__ static void mask(float (&S)[kKeys / 8][4], const fa::DecodeParameters& in, int rows) {
    const int query[] = {first_row() % in.seq_q, (first_row() + 8) % in.seq_q};
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
      const int key = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
      if (key >= rows - in.causal * (in.seq_q - 1 - query[i / 2 % 2])) S[i / 4][i % 4] = -INFINITY;
    }
  }

  __device__ static float largest(const float (&S)[kKeys / 8][4], int r) {
    float top = -INFINITY;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) top = fmaxf(top, fmaxf(S[n][2 * r], S[n][2 * r + 1]));
    return top;
  }

  // Raises the references that a score exceeds by too much, and rescales the state to them.
  __device__ static void raise(State& state, float (&O)[D / 8][4], const float (&S)[kKeys / 8][4],
                               float scale_log2) {
    const float own[] = {largest(S, 0), largest(S, 1)};
    const float excess[] = {fmaf(own[0], scale_log2, -state.max[0]),
                            fmaf(own[1], scale_log2, -state.max[1])};
    if (!__any_sync(0xffffffff, fmaxf(excess[0], excess[1]) > kSlack)) return;
    float alpha[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float top = quad_max(own[r]);
      const bool above = fmaf(top, scale_log2, -state.max[r]) > kSlack;
      const float new_max = above ? top * scale_log2 : state.max[r];
      alpha[r] = ex2_approx(state.max[r] - new_max);
      state.max[r] = new_max;
      state.sum[r] *= alpha[r];
    }
#pragma unroll
    for (int i = 0; i < D / 2; ++i) O[i / 4][i % 4] *= alpha[i / 2 % 2];
  }

  // Online softmax: P = 2^(scale_log2 S - max) as the A operand of P V.
  __device__ static void softmax(uint32_t (&P)[4], float (&S)[4], State& state, int n,
                                 float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      S[2 * r] = ex2_approx(fmaf(S[2 * r], scale_log2, -state.max[r]));
      S[2 * r + 1] = ex2_approx(fmaf(S[2 * r + 1], scale_log2, -state.max[r]));
      state.sum[r] += S[2 * r] + S[2 * r + 1];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const half2 p = __floats2half2_rn(S[2 * i], S[2 * i + 1]);
      P[2 * n + i] = reinterpret_cast<const uint32_t&>(p);
    }
  }

  // Starts O += P V.
  __device__ static void multiply_pv(float (&O)[D / 8][4], const uint32_t (&P)[kKeys / 16][4],
                                     uint64_t v) {
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) wgmma_transposed(O, P[i], v + i * 128, 1);
    wgmma_commit();
  }

  // What the keys of a tile add to the state; those from `rows` on are hidden.
  __device__ static void compute_tile(State& state, float (&O)[D / 8][4], const Query& q,
                                      const fa::DecodeParameters& in, uint64_t k, uint64_t v,
                                      int rows) {
    float S[kKeys / 8][4];
    wgmma_fence();
    multiply_qk(S, q, k);
    wgmma_wait<0>(S);
    if (rows - in.causal * (in.seq_q - 1) < kKeys) mask(S, in, rows);
    raise(state, O, S, in.scale_log2);
    uint32_t P[kKeys / 16][4];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) softmax(P[n / 2], S[n], state, n % 2, in.scale_log2);
    wgmma_fence();
    multiply_pv(O, P, v);
    wgmma_wait<0>(O);
  }

  // The second four warps hand over their state, and the first add it to their own.
  __device__ static void merge_halves(State& state, float (&O)[D / 8][4], float* states) {
    float* other = states + threadIdx.x % 128;
    if (threadIdx.x >= 128) {
#pragma unroll
      for (int i = 0; i < D / 2; ++i) other[i * 128] = O[i / 4][i % 4];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        other[(D / 2 + r) * 128] = state.max[r];
        other[(D / 2 + 2 + r) * 128] = state.sum[r];
      }
    }
    __syncthreads();  // the state is there
    if (threadIdx.x >= 128) return;
    float own[2], weight[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float max = other[(D / 2 + r) * 128], sum = other[(D / 2 + 2 + r) * 128];
      const float new_max = fmaxf(state.max[r], max);
      own[r] = ex2_approx(state.max[r] - new_max);
      weight[r] = ex2_approx(max - new_max);
      state.max[r] = new_max;
      state.sum[r] = state.sum[r] * own[r] + sum * weight[r];
    }
#pragma unroll
    for (int i = 0; i < D / 2; ++i)
      O[i / 4][i % 4] = O[i / 4][i % 4] * own[i / 2 % 2] + other[i * 128] * weight[i / 2 % 2];
  }

  // Where a share leaves O and the log-sum-exp of a head: the second half of its places is for the
  // head that begins within it.
  __device__ static float* part_of(const fa::DecodeParameters& in, int share, int first_share,
                                   int head) {
    const int place = share == first_share ? kPlaces / 2 + head : head;
    return in.parts + (int64_t{share} * kPlaces + place) * kPart;
  }

  // A row is in one warp, nothing is added up. Writes O / sum and the log-sum-exp, of a head
  // in a single share as the result, of others as a part.
  __device__ static void store_row(const fa::DecodeParameters& in, const float (&O)[D / 8][4],
                                   int r, float max, float sum, int64_t query, float* part,
                                   bool whole) {
    const int lane = threadIdx.x % 4;
    const float inverse = sum > 0.f ? __fdividef(1.f, sum) : 0.f;
    const float LSE = max + __log2f(sum);  // no key: log 0 is -infinity
    if (lane == 0 && !whole) part[D] = LSE;
    if (lane == 0 && whole && in.LSE != nullptr) in.LSE[query] = LSE * kLn2;
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
      const float o[] = {O[i][2 * r] * inverse, O[i][2 * r + 1] * inverse};
      const int to = i * 8 + lane * 2;
      if (whole) *reinterpret_cast<half2*>(in.O + query * D + to) = __floats2half2_rn(o[0], o[1]);
      if (!whole) *reinterpret_cast<float2*>(part + to) = make_float2(o[0], o[1]);
    }
  }

  // The parts of a row become one: a part weighs 2^(its log-sum-exp).
  __device__ static void merge_parts(const fa::DecodeParameters& in, const Position& at, int row) {
    const int64_t query = first_query(in, at) + row;
    const int lane = threadIdx.x % kLanes;
    float o[16] = {}, max = -1e30f, sum = 0.f;
#pragma unroll 1
    for (int first = at.first_share; first <= at.last_share; first += kMerged) {
      float4 part[kMerged][4];
      float weight[kMerged], alpha = max;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        const int share = min(first + i, at.last_share);
        const float* from = part_of(in, share, at.first_share, row);
#pragma unroll
        for (int c = 0; c < 4; ++c)
          part[i][c] = reinterpret_cast<const float4*>(from)[c * kLanes + lane];
        weight[i] = first + i > share ? -INFINITY : from[D];
      }
#pragma unroll
      for (int i = 0; i < kMerged; ++i) max = fmaxf(max, weight[i]);
      alpha = ex2_approx(alpha - max);
      sum *= alpha;
#pragma unroll
      for (int c = 0; c < 16; ++c) o[c] *= alpha;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        weight[i] = ex2_approx(weight[i] - max);
        sum += weight[i];
#pragma unroll
        for (int c = 0; c < 16; ++c)
          o[c] = fmaf(weight[i], reinterpret_cast<const float*>(part[i])[c], o[c]);
      }
    }
    const float inverse = sum > 0.f ? __fdividef(1.f, sum) : 0.f;
    if (in.LSE != nullptr && lane == 0) in.LSE[query] = max * kLn2 + __logf(sum);
#pragma unroll
    for (int c = 0; c < 16; ++c)
      in.O[query * D + (c / 4 * kLanes + lane) * 4 + c % 4] = __float2half(o[c] * inverse);
  }

  // Stores the rows, two a lane.
  __device__ static void store_rows(const fa::DecodeParameters& in, const Position& at,
                                    const State& state, const float (&O)[D / 8][4]) {
    const int64_t query = first_query(in, at);
    const bool whole = at.first_share == at.last_share;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = quad_sum(state.sum[r]);
      const int row = first_row() + r * 8;
      if (row < in.group)
        store_row(in, O, r, state.max[r], sum, query + row,
                  part_of(in, blockIdx.x, at.first_share, row), whole);
    }
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

  // An even share of the tiles of all heads; each warp computes 16 rows of Q.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) float shared[];
    const uint32_t ring = (shared_address(shared) + kAlign - 1) & ~(kAlign - 1);
    const int first = threadIdx.x / 128 * kKeys;
    const int all = all_tiles(in), block = static_cast<int>(blockIdx.x);
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

    for (int tile = begin; tile < end;) {
      Query q;
      load_query(q, in.Q + first_query(in, at) * D, in.group);
      State state;
      float O[D / 8][4] = {};
#pragma unroll 1
      for (int key = at.key; tile < min(end, at.end); ++tile, key += Bc) {
        cp_async_wait_group<kStages - 2>();
        fence_async_proxy();  // wgmma reads what this thread has copied
        __syncthreads();      // the tile has arrived; the last read of the one before
        load_step(tile + kStages - 1);
        const uint32_t stage = ring + (tile - begin) % kStages * 2 * kTileBytes + first * 128;
        compute_tile(state, O, q, in, wgmma_descriptor(stage, Bc * 128),
                     wgmma_descriptor(stage + kTileBytes, Bc * 128), at.length - key - first);
      }
      merge_halves(state, O, shared + (kSharedBytes / 4 - kStateFloats));
      if (threadIdx.x < 128) store_rows(in, at, state, O);
      if (tile < end) at = position_of(in, all, tile);
    }
    finish_heads(in, all, begin, at, shared);
  }
};

}  // namespace

#define INSTANCES(X)                    \
  X(fa_49_wgmma_d128, Decode<128, 128>) \
  X(fa_49_wgmma_d64, Decode<128, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(49_wgmma, "48", sm_90a, f16,
        ragged | lse | causal | grouped | lengths | paged | few_queries,
        "wgmma: the rows of Q of a group fill its 64 rows; no warp loads a fragment of K and V",
        kInstances, fa::plan_decode_even,
        .why_large =
            "both products have rows of Q as rows again, so that tiles, state, softmax, store and "
            "merge change with them.");
