// 49_wgmma
// Idea: 64 rows of Q of a group fill wgmma. P stays in registers as the A operand of P V, and no
// warp loads fragments of K and V.
//
// Tile              up to 64 rows of Q of a group x 128 keys, 2 x 4 warps x 16 rows
// Shared memory     3 stages of K 32 KB + V 32 KB and 34 KB of states at head_dim 128
// Expected effect   a tile takes 1112 clocks of instructions and 1024 of products, but its bytes
//                   take 3520: the bytes are the limit for any number of rows.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/halves.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/rung.h"

namespace {

template <class T, int Bc, int D>
struct Decode : fa::StaticKernel<64, Bc, Bc / 16, D> {
  using Element = T;
  static constexpr int kWarps = Bc / 16, kKeys = 64;
  static constexpr int kStages = 384 / D;  // the rings of an SM take 192 KB of its 227
  static constexpr int kTileBytes = Bc * D * 2;
  // A thread block has slots for the first and the last head of its range of tiles.
  static constexpr int kSlots = 2 * 64;
  static constexpr int kSlotFloats = D + 32;  // floats: O, the log-sum-exp in a line of its own
  static constexpr float kSlack = 8;          // P is at most 2^kSlack
  static constexpr int kLanes = D / 16;       // lanes that merge a row, 4 x 16 bytes each
  static constexpr int kMerged = 4;       // splits that a merge loads at once; 256 bytes per lane
  static constexpr int kBlocksPerSm = 1;  // shared memory has no room for two
  static constexpr int kAlign = 1024;     // of tiles with the 128-byte swizzle
  static constexpr int kStateFloats = (D / 2 + 4) * 128;  // of four warps
  static constexpr std::size_t kSharedBytes =
      kAlign + kStages * 2 * kTileBytes + kStateFloats * sizeof(float);
  static constexpr int kChunks = D / 8;                 // 16-byte chunks per row
  static constexpr int kWarpRows = 32 / kChunks;        // rows that a warp copies per pass
  static constexpr int kCopyRows = kWarps * kWarpRows;  // rows copied per pass
  static_assert(Bc == 2 * kKeys, "two warpgroups, each with 64 keys of a tile");
  static_assert(Bc / kWarps <= 32, "a lane looks up at most one row");
  static_assert(D % 64 == 0, "a panel of the 128-byte swizzle is 64 columns wide");

  // Per lane for two rows of Q, a reference near the maximum and the lane's sum.
  struct State {
    float reference[2] = {-1e30f, -1e30f}, sum[2] = {};  // finite: -infinity minus -infinity is NaN
  };

  // The first of the thread's rows of Q within the group.
  __device__ static int thread_row() { return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4; }

  // A tile: its batch entry, head of K and V and first key; the length of the head, the range of
  // its tiles among those of all heads, and the thread blocks that compute it.
  struct Position {
    int entry = 0, head = 0, length = 0, begin = 0, end = 0, key = 0;
    int first_block = 0, last_block = 0;
  };

  __device__ static int length_of(const fa::DecodeParameters& in, int entry) {
    if (entry >= in.batch) return 0;
    return in.lengths == nullptr ? in.seq_kv : in.lengths[entry];
  }

  // The first key that the first query sees: the tiles of a head begin there.
  __device__ static int first_key(const fa::DecodeParameters& in, int length) {
    return max(0, length - in.seq_q - in.left);
  }

  __device__ static int tiles_of(const fa::DecodeParameters& in, int entry) {
    const int length = length_of(in, entry);
    return (length - first_key(in, length) + Bc - 1) / Bc * (in.rows / in.group_rows);
  }

  // The number of tiles of all heads of the batch.
  __device__ static int total_tiles(const fa::DecodeParameters& in) {
    int tiles = 0;
    for (int entry = threadIdx.x % 32; entry < in.batch; entry += 32) tiles += tiles_of(in, entry);
    return __reduce_add_sync(0xffffffff, tiles);
  }

  // Thread blocks with a tile: a replayed launch may have fewer tiles than thread blocks.
  __device__ static int active_blocks(int total) { return min(static_cast<int>(gridDim.x), total); }

  // The tiles are divided evenly: the first tile of a thread block, total * block / blocks without
  // an overflow, and the thread block of a tile.
  __device__ static int first_tile(int total, int block) {
    const int blocks = active_blocks(total);
    return total / blocks * block + total % blocks * block / blocks;
  }
  __device__ static int block_of(int total, int tile) {
    return static_cast<int>(((tile + int64_t{1}) * active_blocks(total) - 1) / total);
  }

  // Finds a tile: each lane counts the tiles of a batch entry, and a prefix sum adds them.
  __device__ static Position locate_tile(const fa::DecodeParameters& in, int total, int tile) {
    const int lane = threadIdx.x % 32;
    for (int base = 0, before = 0;; base += 32) {
      int prefix = tiles_of(in, base + lane);  // inclusive, over the lanes
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        const int below = __shfl_up_sync(0xffffffff, prefix, offset);
        if (lane >= offset) prefix += below;
      }
      const unsigned beyond = __ballot_sync(0xffffffff, before + prefix > tile);
      if (beyond != 0) {
        const int found = __ffs(static_cast<int>(beyond)) - 1;
        Position at;
        at.entry = base + found;
        at.length = length_of(in, at.entry);
        const int first = first_key(in, at.length), tiles = (at.length - first + Bc - 1) / Bc;
        before += __shfl_sync(0xffffffff, prefix, found) - tiles * (in.rows / in.group_rows);
        at.head = (tile - before) / tiles;
        at.begin = before + at.head * tiles;
        at.end = at.begin + tiles;
        at.key = first + (tile - at.begin) * Bc;
        at.first_block = block_of(total, at.begin);
        at.last_block = block_of(total, at.end - 1);
        return at;
      }
      before += __shfl_sync(0xffffffff, prefix, 31);
    }
  }

  __device__ static int64_t first_row(const fa::DecodeParameters& in, const Position& at) {
    return int64_t{at.entry} * in.rows + at.head * in.group_rows;
  }

  // The first element of a row of Q or O, whose strides these are. A head has a row per query.
  __device__ static int64_t element(const fa::DecodeParameters& in, const int64_t (&strides)[3],
                                    int entry, int row) {
    return entry * strides[0] + row / in.seq_q * strides[1] + row % in.seq_q * strides[2];
  }

  // Stores zeros, and the sinks or -infinity, for batch entries without a key.
  __device__ static void store_empty(const fa::DecodeParameters& in) {
    for (int entry = blockIdx.x; entry < in.batch; entry += gridDim.x) {
      if (length_of(in, entry) > 0) continue;
      const int64_t q_row = int64_t{entry} * in.rows;
      for (int i = threadIdx.x; i < in.rows * D; i += blockDim.x)
        reinterpret_cast<T*>(in.O)[element(in, in.O_strides, entry, i / D) + i % D] = T{};
      for (int i = threadIdx.x; in.LSE != nullptr && i < in.rows; i += blockDim.x)
        in.LSE[q_row + i] = in.sinks == nullptr ? -INFINITY : in.sinks[i / in.seq_q];
    }
  }

  // Byte offset of a 16-byte chunk in a tile: panels of 64 columns, 128-byte swizzle.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(chunk / 8 * (Bc * 128) + row * 128 + ((chunk % 8 ^ row % 8) << 4));
  }

  // The i-th row of a tile that this warp copies, kWarpRows rows at a time.
  __device__ static int copied_row(int i) {
    const int warp = threadIdx.x / 32;
    return i / kWarpRows * kCopyRows + warp * kWarpRows + i % kWarpRows;
  }

  // The page of a key, and its row in the page.
  struct PageRow {
    int page = 0, row = 0;
  };

  // Each lane looks up a row; the warp copies those of its first Bc / kWarps lanes. Without pages a
  // batch entry is one page.
  __device__ static PageRow look_up_row(const fa::DecodeParameters& in, const Position& at) {
    const int64_t table = int64_t{at.entry} * ((in.seq_kv + in.page - 1) >> in.page_bits);
    const int key = at.key + copied_row(threadIdx.x % 32);
    PageRow page_row{at.entry, static_cast<int>(key & ((1u << in.page_bits) - 1))};
    if (in.page_table != nullptr && key < at.length)
      page_row.page = in.page_table[table + (key >> in.page_bits)];
    return page_row;
  }

  // Starts the copies of a K and a V tile; rows from the length on become zeros.
  __device__ static void load_tiles(uint32_t stage, const fa::DecodeParameters& in,
                                    const Position& at, const PageRow& page_row) {
    const int chunk = threadIdx.x % kChunks;
    const auto looked_up = [&](const int64_t(&strides)[3]) {
      return page_row.page * strides[0] + at.head * strides[1] + page_row.row * strides[2];
    };
    const half *K = in.K + chunk * 8, *V = in.V + chunk * 8;
    const int64_t k_row = looked_up(in.K_strides), v_row = looked_up(in.V_strides);
#pragma unroll
    for (int i = 0, row = threadIdx.x / kChunks; i < Bc / kCopyRows; ++i, row += kCopyRows) {
      const int source = i * kWarpRows + threadIdx.x % 32 / kChunks;  // copied_row(source) is row
      const int64_t k = __shfl_sync(0xffffffff, k_row, source);
      const int64_t v = __shfl_sync(0xffffffff, v_row, source);
      const int bytes = at.key + row < at.length ? 16 : 0;
      cp_async_16(stage + offset(row, chunk), K + (bytes > 0 ? k : 0), bytes);
      cp_async_16(stage + kTileBytes + offset(row, chunk), V + (bytes > 0 ? v : 0), bytes);
    }
  }

  // The warp's 16 rows of Q as A operands, zeros behind the last.
  using Query = uint32_t[D / 16][4];
  __device__ static void load_query(Query& q, const fa::DecodeParameters& in, const Position& at) {
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = thread_row() + r * 8;
      const T* Q = reinterpret_cast<const T*>(in.Q) +
                   element(in, in.Q_strides, at.entry, at.head * in.group_rows + row) + column;
#pragma unroll
      for (int i = r; i < D / 4; i += 2)
        q[i / 4][i % 4] =
            row < in.group_rows ? *reinterpret_cast<const uint32_t*>(Q + i / 2 * 8) : 0;
    }
  }

  // Starts S = Q K^T. Descriptors count 16 bytes: + 2 is the next 16 columns of a panel.
  __device__ static void multiply_qk(float (&S)[kKeys / 8][4], const Query& q, uint64_t k) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
      wgmma<T>(S, q[i], k + i / 4 * (Bc * 128 >> 4) + i % 4 * 2, i > 0);
    wgmma_commit();
  }

  // Masks keys that a query does not see; the last of `keys` is the last query's own.
  __device__ static void mask(float (&S)[kKeys / 8][4], const fa::DecodeParameters& in, int keys) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int later = in.seq_q - 1 - (thread_row() + r * 8) % in.seq_q;  // queries
      const int begin = keys - 1 - later - in.left, end = keys - max(0, later - in.right);
#pragma unroll
      for (int i = 0; i < kKeys / 4; ++i) {
        const int key = i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
        if (key < begin || key >= end) S[i / 2][2 * r + i % 2] = -INFINITY;
      }
    }
  }

  __device__ static float thread_max(const float (&S)[kKeys / 8][4], int r) {
    float top = -INFINITY;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) top = fmaxf(top, fmaxf(S[n][2 * r], S[n][2 * r + 1]));
    return top;
  }

  // Raises the references that a score exceeds by too much, and rescales the state to them.
  __device__ static void raise(State& state, float (&O)[D / 8][4], const float (&S)[kKeys / 8][4],
                               float scale_log2) {
    const float tops[] = {thread_max(S, 0), thread_max(S, 1)};
    const float excess[] = {fmaf(tops[0], scale_log2, -state.reference[0]),
                            fmaf(tops[1], scale_log2, -state.reference[1])};
    if (!__any_sync(0xffffffff, fmaxf(excess[0], excess[1]) > kSlack)) return;
    float alpha[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float top = quad_max(tops[r]);
      const bool above = fmaf(top, scale_log2, -state.reference[r]) > kSlack;
      const float raised = above ? top * scale_log2 : state.reference[r];
      alpha[r] = ex2_approx(state.reference[r] - raised);
      state.reference[r] = raised;
      state.sum[r] *= alpha[r];
    }
#pragma unroll
    for (int i = 0; i < D / 2; ++i) O[i / 4][i % 4] *= alpha[i / 2 % 2];
  }

  // Online softmax: P = 2^(scale_log2 S - reference) as the A operand of P V.
  __device__ static void softmax(uint32_t (&P)[4], float (&S)[4], State& state, int n,
                                 float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      S[2 * r] = ex2_approx(fmaf(S[2 * r], scale_log2, -state.reference[r]));
      S[2 * r + 1] = ex2_approx(fmaf(S[2 * r + 1], scale_log2, -state.reference[r]));
      state.sum[r] += S[2 * r] + S[2 * r + 1];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) P[2 * n + i] = packed<T>(S[2 * i], S[2 * i + 1]);
  }

  // Starts O += P V. Descriptors count 16 bytes: + 128 is the next 16 rows of V.
  __device__ static void multiply_pv(float (&O)[D / 8][4], const uint32_t (&P)[kKeys / 16][4],
                                     uint64_t v) {
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) wgmma_transposed<T>(O, P[i], v + i * 128, 1);
    wgmma_commit();
  }

  // Adds the keys of a tile to the state; keys from `keys` on are masked.
  __device__ static void compute_tile(State& state, float (&O)[D / 8][4], const Query& q,
                                      const fa::DecodeParameters& in, uint64_t k, uint64_t v,
                                      int keys) {
    float S[kKeys / 8][4];
    wgmma_fence();
    multiply_qk(S, q, k);
    wgmma_wait<0>(S);
    // Where the first query does not see the last key, or the last one the first.
    if (keys - max(0, in.seq_q - 1 - in.right) < kKeys || keys - 1 > in.left) mask(S, in, keys);
    raise(state, O, S, in.scale_log2);
    uint32_t P[kKeys / 16][4];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) softmax(P[n / 2], S[n], state, n % 2, in.scale_log2);
    wgmma_fence();
    multiply_pv(O, P, v);
    wgmma_wait<0>(O);
  }

  // The second warpgroup stores its state, and the first one adds it to its own.
  __device__ static void merge_halves(State& state, float (&O)[D / 8][4], float* states) {
    float* other = states + threadIdx.x % 128;
    if (threadIdx.x >= 128) {
#pragma unroll
      for (int i = 0; i < D / 2; ++i) other[i * 128] = O[i / 4][i % 4];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        other[(D / 2 + r) * 128] = state.reference[r];
        other[(D / 2 + 2 + r) * 128] = state.sum[r];
      }
    }
    __syncthreads();  // the state is stored
    if (threadIdx.x >= 128) return;
    float alpha[2], weight[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float reference = other[(D / 2 + r) * 128], sum = other[(D / 2 + 2 + r) * 128];
      const float raised = fmaxf(state.reference[r], reference);
      alpha[r] = ex2_approx(state.reference[r] - raised);
      weight[r] = ex2_approx(reference - raised);
      state.reference[r] = raised;
      state.sum[r] = state.sum[r] * alpha[r] + sum * weight[r];
    }
#pragma unroll
    for (int i = 0; i < D / 2; ++i)
      O[i / 4][i % 4] = O[i / 4][i % 4] * alpha[i / 2 % 2] + other[i * 128] * weight[i / 2 % 2];
  }

  // A row of O of a head of K and V.
  __device__ static T* output_row(const fa::DecodeParameters& in, const Position& at, int row) {
    const int first = at.head * in.group_rows;
    return reinterpret_cast<T*>(in.O) + element(in, in.O_strides, at.entry, first + row);
  }

  // The slot of a thread block for O and the log-sum-exp of a row of Q. The second half of its
  // slots is for the head that begins within its range.
  __device__ static float* slot_of(const fa::DecodeParameters& in, int block, int first_block,
                                   int row) {
    const int slot = block == first_block ? kSlots / 2 + row : row;
    return in.partials + (int64_t{block} * kSlots + slot) * kSlotFloats;
  }

  // The base-2 score of a query head's sink.
  __device__ static float sink_of(const fa::DecodeParameters& in, int row) {
    return in.sinks == nullptr ? -INFINITY : in.sinks[row / in.seq_q] / kLn2;
  }

  // Adds a sink to a row's sum, with the larger of both references. Returns the factor on O.
  __device__ static float add_sink(float sink, float& reference, float& sum) {
    const float raised = fmaxf(reference, sink), alpha = ex2_approx(reference - raised);
    sum = sum * alpha + ex2_approx(sink - raised);
    reference = raised;
    return sum > 0.f ? __fdividef(alpha, sum) : 0.f;
  }

  // A warp has all of a row of Q, and stores O / sum and the log-sum-exp: the result, or a
  // partial result if several thread blocks compute the head.
  __device__ static void store_row(const fa::DecodeParameters& in, const float (&O)[D / 8][4],
                                   int r, float reference, float sum, const Position& at, int row,
                                   bool whole) {
    const int lane = threadIdx.x % 4;
    T* to = output_row(in, at, row) + lane * 2;
    float* partial = slot_of(in, blockIdx.x, at.first_block, row);
    const float sink = whole ? sink_of(in, at.head * in.group_rows + row) : -INFINITY;
    const float inverse = add_sink(sink, reference, sum);
    const float LSE = reference + __log2f(sum);  // no key: log 0 is -infinity
    if (lane == 0 && !whole) partial[D] = LSE;
    if (lane == 0 && whole && in.LSE != nullptr) in.LSE[first_row(in, at) + row] = LSE * kLn2;
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
      const float o[] = {O[i][2 * r] * inverse, O[i][2 * r + 1] * inverse};
      if (whole) *reinterpret_cast<uint32_t*>(to + i * 8) = packed<T>(o[0], o[1]);
      if (!whole) *reinterpret_cast<float2*>(partial + i * 8 + lane * 2) = make_float2(o[0], o[1]);
    }
  }

  // Merges the splits of a row of Q, each with the weight 2^(log-sum-exp).
  __device__ static void merge_splits(const fa::DecodeParameters& in, const Position& at, int row) {
    T* O = output_row(in, at, row);
    const int lane = threadIdx.x % kLanes;
    float o[16] = {}, max = -1e30f, sum = 0.f;
#pragma unroll 1
    for (int first = at.first_block; first <= at.last_block; first += kMerged) {
      float4 partial[kMerged][4];
      float weight[kMerged], alpha = max;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        const int block = min(first + i, at.last_block);
        const float* from = slot_of(in, block, at.first_block, row);
#pragma unroll
        for (int c = 0; c < 4; ++c)
          partial[i][c] = reinterpret_cast<const float4*>(from)[c * kLanes + lane];
        weight[i] = first + i > block ? -INFINITY : from[D];
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
          o[c] = fmaf(weight[i], reinterpret_cast<const float*>(partial[i])[c], o[c]);
      }
    }
    const float inverse = add_sink(sink_of(in, at.head * in.group_rows + row), max, sum);
    if (in.LSE != nullptr && lane == 0) in.LSE[first_row(in, at) + row] = max * kLn2 + __logf(sum);
#pragma unroll
    for (int c = 0; c < 16; ++c) O[(c / 4 * kLanes + lane) * 4 + c % 4] = T(o[c] * inverse);
  }

  // Stores the rows of Q, two per lane.
  __device__ static void store_rows(const fa::DecodeParameters& in, const Position& at,
                                    const State& state, const float (&O)[D / 8][4]) {
    const bool whole = at.first_block == at.last_block;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = quad_sum(state.sum[r]);
      const int row = thread_row() + r * 8;
      if (row < in.group_rows) store_row(in, O, r, state.reference[r], sum, at, row, whole);
    }
  }

  // Counts a split of a head that several thread blocks compute; true for the last split.
  __device__ static bool count_split(const fa::DecodeParameters& in, const Position& at) {
    const int others = at.last_block - at.first_block;
    unsigned* counter = in.counter + at.entry * (in.rows / in.group_rows) + at.head;
    return others > 0 && atomicInc(counter, others) == others;  // wraps to 0
  }

  // Merges the splits of the first and the last head of the range if this block stored the last.
  __device__ static void finish_heads(const fa::DecodeParameters& in, int total, int begin,
                                      const Position& back, float* states) {
    const Position front = back.begin > begin ? locate_tile(in, total, begin) : back;
    int* last = reinterpret_cast<int*>(states);
    __threadfence();  // the splits are visible before they are counted
    __syncthreads();
    if (threadIdx.x == 0) last[0] = count_split(in, front);
    if (threadIdx.x == 32) last[1] = back.begin > begin && count_split(in, back);
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      if (!last[i]) continue;
      const Position at = i == 0 ? front : back;
      __threadfence();  // no split is read before the count
      for (int row = threadIdx.x / kLanes; row < in.group_rows; row += kWarps * 32 / kLanes)
        merge_splits(in, at, row);
    }
  }

  // A thread block computes an even range of the tiles of all heads, each warp 16 rows of Q.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) float shared[];
    const uint32_t ring = (shared_address(shared) + kAlign - 1) & ~(kAlign - 1);
    const int first = threadIdx.x / 128 * kKeys;
    const int total = total_tiles(in), block = static_cast<int>(blockIdx.x);
    store_empty(in);
    if (block >= total) return;  // no tile for this thread block
    const int begin = first_tile(total, block), end = first_tile(total, block + 1);

    // Starts the copy of a tile into its stage, an empty group past the last tile.
    Position at = locate_tile(in, total, begin), ahead = at;
    PageRow page_row = look_up_row(in, ahead);
    const auto load_stage = [&](int tile) {
      if (tile < end) {
        const uint32_t stage = ring + (tile - begin) % kStages * 2 * kTileBytes;
        load_tiles(stage, in, ahead, page_row);
        ahead.key += Bc;
        if (ahead.key >= ahead.length && tile + 1 < end) ahead = locate_tile(in, total, tile + 1);
        page_row = look_up_row(in, ahead);  // one iteration before it is needed
      }
      cp_async_commit();
    };
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) load_stage(begin + i);

    for (int tile = begin; tile < end;) {
      Query q;
      load_query(q, in, at);
      State state;
      float O[D / 8][4] = {};
#pragma unroll 1
      for (int key = at.key; tile < min(end, at.end); ++tile, key += Bc) {
        cp_async_wait_group<kStages - 2>();
        fence_async_proxy();  // wgmma reads what this thread has copied
        __syncthreads();      // the tile has arrived; all warps have read the previous one
        load_stage(tile + kStages - 1);
        const uint32_t stage = ring + (tile - begin) % kStages * 2 * kTileBytes + first * 128;
        compute_tile(state, O, q, in, wgmma_descriptor(stage, Bc * 128),
                     wgmma_descriptor(stage + kTileBytes, Bc * 128), at.length - key - first);
      }
      merge_halves(state, O, shared + (kSharedBytes / 4 - kStateFloats));
      if (threadIdx.x < 128) store_rows(in, at, state, O);
      if (tile < end) at = locate_tile(in, total, tile);
    }
    finish_heads(in, total, begin, at, shared);
  }
};

}  // namespace

#define INSTANCES(X)                                        \
  X(fa_49_wgmma_d128, Decode<half, 128, 128>)               \
  X(fa_49_wgmma_d64, Decode<half, 128, 64>)                 \
  X(fa_49_wgmma_d128_bf16, Decode<__nv_bfloat16, 128, 128>) \
  X(fa_49_wgmma_d64_bf16, Decode<__nv_bfloat16, 128, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(49_wgmma, "48", sm_90a, f16,
        ragged | lse | causal | grouped | lengths | paged | few_queries | strided | windowed |
            sinks,
        "wgmma: the rows of Q of a group fill its 64 rows; no warp loads fragments of K and V",
        kInstances, fa::plan_decode_even,
        .why_large =
            "rows of Q are the rows of both products again, so tiles, state, softmax, stores and "
            "merge change.");
