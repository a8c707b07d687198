// 48_queries
// Idea: several new queries. A column of the mma is a row of Q of any query head of the group. Each
// fragment of K and V feeds two tiles of 8 columns.
//
// Tile              up to 16 rows of Q of a group x 64 keys, 4 warps
// Shared memory     3 stages of K 16 KB + V 16 KB and 16 KB of states at head_dim 128
// Expected effect   the bytes of one query and nearly its time: few mma and exponentials are added.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/halves.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/movmatrix.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

template <class T, int Bc, int D>
struct Decode : fa::StaticKernel<16, Bc, Bc / 16, D> {
  using Element = T;
  static constexpr int kWarps = Bc / 16, kRows = 8;  // an mma has 16 keys and 8 rows of Q
  static constexpr int kNTiles = 2;                  // tiles of 8 rows of Q
  static constexpr int kStages = 3;                  // the rings of an SM take 192 KB of its 227
  static constexpr int kTileBytes = Bc * D * 2;
  // A thread block has slots for the first and the last head of its range of tiles.
  static constexpr int kSlots = 2 * kNTiles * kRows;
  static constexpr int kSlotFloats = D + 32;  // floats: O, the log-sum-exp in a line of its own
  static constexpr int kPitch = D + 4;        // floats per row of O; 4 avoid bank conflicts
  static constexpr float kSlack = 8;          // P is at most 2^kSlack
  static constexpr int kLanes = D / 4;        // lanes that merge a row, 16 bytes each
  static constexpr int kMerged = 16;          // splits that a merge loads at once; a batch has few
  static constexpr int kBlocksPerSm = 256 / D;  // as many as shared memory allows
  static constexpr int kStateFloats = kWarps * kRows * kPitch;
  static constexpr std::size_t kSharedBytes =
      kStages * 2 * kTileBytes + (kStateFloats + kWarps * kRows * 2) * sizeof(float);
  static constexpr int kChunks = D / 8;                 // 16-byte chunks per row
  static constexpr int kWarpRows = 32 / kChunks;        // rows that a warp copies per pass
  static constexpr int kCopyRows = kWarps * kWarpRows;  // rows copied per pass
  static_assert(Bc / kWarps <= 32, "a lane looks up at most one row");
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");

  // The columns of O that a lane merges.
  struct alignas(16) Columns {
    float x[4] = {};
  };

  // A warp's state for its keys: O transposed and, per lane for two rows of Q, a reference near the
  // maximum and the lane's sum.
  struct State {
    float o[D / 16][4] = {};
    float reference[2] = {-1e30f, -1e30f}, sum[2] = {};  // finite: -infinity minus -infinity is NaN
  };

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

  // Byte offset of a 16-byte chunk in a tile. XOR with the row spreads the eight rows of an
  // ldmatrix phase over all 32 banks.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(row * D * 2 + ((chunk ^ (row & 7)) << 4));
  }

  // Address of (row, chunk0 + chunk) from the address of (row, chunk0), for an even chunk: XOR
  // among the eight chunks that the swizzle permutes, + from one eight to the next.
  __device__ static uint32_t shift(uint32_t address, int chunk) {
    return (address ^ ((chunk & 7) << 4)) + (chunk & ~7) * 16;
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

  // The B operand of K Q^T: rows of Q from `first` on are its columns, zeros behind the last.
  __device__ static void load_query(uint32_t (&q)[D / 16][2], const fa::DecodeParameters& in,
                                    const Position& at, int first) {
    const int row = first + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    const T* Q = reinterpret_cast<const T*>(in.Q) +
                 element(in, in.Q_strides, at.entry, at.head * in.group_rows + row) + column;
#pragma unroll
    for (int i = 0; i < D / 8; ++i)
      q[i / 2][i % 2] = row < in.group_rows ? *reinterpret_cast<const uint32_t*>(Q + i * 8) : 0;
  }

  // S = K Q^T of the warp's 16 keys.
  __device__ static void multiply_qk(float (&S)[kNTiles][4],
                                     const uint32_t (&q)[kNTiles][D / 16][2], uint32_t k) {
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      uint32_t a[4];
      ldmatrix_x4(a, shift(k, 2 * d));
#pragma unroll
      for (int n = 0; n < kNTiles; ++n) mma_m16n8k16<T>(S[n], a, q[n][d][0], q[n][d][1]);
    }
  }

  // Masks keys that a query does not see; the last of `keys` is the last query's own.
  __device__ static void mask(float (&S)[4], const fa::DecodeParameters& in, int row, int keys) {
    const int key = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int later = in.seq_q - 1 - (row + threadIdx.x % 4 * 2 + i % 2) % in.seq_q;  // queries
      const int begin = keys - 1 - later - in.left, end = keys - max(0, later - in.right);
      if (key + i / 2 * 8 < begin || key + i / 2 * 8 >= end) S[i] = -INFINITY;
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
      const bool above = fmaf(top, scale_log2, -state.reference[r]) > kSlack;
      const float raised = above ? top * scale_log2 : state.reference[r];
      alpha[r] = ex2_approx(state.reference[r] - raised);
      state.reference[r] = raised;
      state.sum[r] *= alpha[r];
    }
#pragma unroll
    for (int m = 0; m < D / 16; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) state.o[m][i] *= alpha[i % 2];
  }

  // Online softmax of the warp's keys: P = 2^(scale_log2 S - reference) as the B operand of V^T P.
  __device__ static void softmax(uint32_t (&P)[2], float (&S)[4], State& state, float scale_log2) {
    const float excess[] = {fmaf(fmaxf(S[0], S[2]), scale_log2, -state.reference[0]),
                            fmaf(fmaxf(S[1], S[3]), scale_log2, -state.reference[1])};
    if (__any_sync(0xffffffff, fmaxf(excess[0], excess[1]) > kSlack)) raise(state, S, scale_log2);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      S[r] = ex2_approx(fmaf(S[r], scale_log2, -state.reference[r]));
      S[r + 2] = ex2_approx(fmaf(S[r + 2], scale_log2, -state.reference[r]));
      state.sum[r] += S[r] + S[r + 2];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) P[i] = movmatrix_trans(packed<T>(S[2 * i], S[2 * i + 1]));
  }

  // O += V^T P.
  __device__ static void multiply_pv(State (&state)[kNTiles], const uint32_t (&P)[kNTiles][2],
                                     uint32_t v) {
#pragma unroll
    for (int m = 0; m < D / 16; ++m) {
      uint32_t a[4];
      ldmatrix_x4_trans(a, shift(v, 2 * m));
#pragma unroll
      for (int n = 0; n < kNTiles; ++n) mma_m16n8k16<T>(state[n].o[m], a, P[n][0], P[n][1]);
    }
  }

  // Adds 16 keys to the state; keys from `keys` on are masked.
  __device__ static void compute_keys(State (&state)[kNTiles],
                                      const uint32_t (&q)[kNTiles][D / 16][2],
                                      const fa::DecodeParameters& in, uint32_t k, uint32_t v,
                                      int keys) {
    float S[kNTiles][4] = {};
    uint32_t P[kNTiles][2];
    multiply_qk(S, q, k);
    // Whether the first query misses the last key, or the last query the first key.
    const bool hidden = keys - max(0, in.seq_q - 1 - in.right) < 16 || keys - 1 > in.left;
#pragma unroll
    for (int n = 0; n < kNTiles; ++n) {
      if (hidden) mask(S[n], in, n * kRows, keys);
      softmax(P[n], S[n], state[n], in.scale_log2);
    }
    multiply_pv(state, P, v);
  }

  // Stores the warp's state in shared memory: O [row][column], reference and sum of each row.
  __device__ static void share_state(float* O, float* statistics, const State& state) {
    const int lane = threadIdx.x % 32, row = lane % 4 * 2, column = lane / 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = state.sum[r];
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, offset);
#pragma unroll
      for (int i = 0; i < D / 8; ++i)
        O[(row + r) * kPitch + i * 8 + column] = state.o[i / 2][i % 2 * 2 + r];
      if (column == 0) statistics[(row + r) * 2] = state.reference[r];
      if (column == 0) statistics[(row + r) * 2 + 1] = sum;
    }
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

  // A warp merges the states of a row of Q, and stores O / sum and the log-sum-exp: the result, or
  // a partial result if several thread blocks compute the head.
  __device__ static void store_row(const fa::DecodeParameters& in, const float* states,
                                   const float* statistics, const Position& at, int row,
                                   bool whole) {
    const int lane = threadIdx.x % 32;
    T* to = output_row(in, at, row);
    float* partial = slot_of(in, blockIdx.x, at.first_block, row);
    float max = -1e30f, sum = 0.f, weight[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, statistics[w * kRows * 2]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      weight[w] = ex2_approx(statistics[w * kRows * 2] - max);
      sum += weight[w] * statistics[w * kRows * 2 + 1];
    }
    const float sink = whole ? sink_of(in, at.head * in.group_rows + row) : -INFINITY;
    const float inverse = add_sink(sink, max, sum);
    const float LSE = max + __log2f(sum);  // no key: log 0 is -infinity
    if (lane == 0 && !whole) partial[D] = LSE;
    if (lane == 0 && whole && in.LSE != nullptr) in.LSE[first_row(in, at) + row] = LSE * kLn2;
#pragma unroll
    for (int c = lane; c < D; c += 32) {
      float o = 0.f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) o = fmaf(weight[w], states[w * kRows * kPitch + c], o);
      if (whole) to[c] = T(o * inverse);
      if (!whole) partial[c] = o * inverse;
    }
  }

  // Merges the splits of a row of Q, each with the weight 2^(log-sum-exp).
  __device__ static void merge_splits(const fa::DecodeParameters& in, const Position& at, int row) {
    T* O = output_row(in, at, row);
    const int lane = threadIdx.x % kLanes;
    Columns o;
    float max = -1e30f, sum = 0.f;
#pragma unroll 1
    for (int first = at.first_block; first <= at.last_block; first += kMerged) {
      Columns partial[kMerged];
      float weight[kMerged], alpha = max;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        const int block = min(first + i, at.last_block);
        const float* from = slot_of(in, block, at.first_block, row);
        partial[i] = reinterpret_cast<const Columns*>(from)[lane];
        weight[i] = first + i > block ? -INFINITY : from[D];
      }
#pragma unroll
      for (int i = 0; i < kMerged; ++i) max = fmaxf(max, weight[i]);
      alpha = ex2_approx(alpha - max);
      sum *= alpha;
#pragma unroll
      for (int c = 0; c < 4; ++c) o.x[c] *= alpha;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        weight[i] = ex2_approx(weight[i] - max);
        sum += weight[i];
#pragma unroll
        for (int c = 0; c < 4; ++c) o.x[c] = fmaf(weight[i], partial[i].x[c], o.x[c]);
      }
    }
    const float inverse = add_sink(sink_of(in, at.head * in.group_rows + row), max, sum);
    if (in.LSE != nullptr && lane == 0) in.LSE[first_row(in, at) + row] = max * kLn2 + __logf(sum);
#pragma unroll
    for (int c = 0; c < 4; ++c) O[lane * 4 + c] = T(o.x[c] * inverse);
  }

  // Stores up to 8 rows of Q from the warps' states.
  __device__ static void store_rows(const fa::DecodeParameters& in, const Position& at,
                                    const State& state, float* states, int n) {
    const int warp = threadIdx.x / 32;
    const bool whole = at.first_block == at.last_block;
    float* statistics = states + kStateFloats;
    share_state(states + warp * kRows * kPitch, statistics + warp * kRows * 2, state);
    __syncthreads();  // all states are stored
    for (int i = warp, row = n * kRows + i; i < kRows && row < in.group_rows;
         i += kWarps, row += kWarps)
      store_row(in, states + i * kPitch, statistics + i * 2, at, row, whole);
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

  // A thread block computes an even range of the tiles of all heads, each warp 16 keys of a tile.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) float shared[];
    const uint32_t ring = shared_address(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int total = total_tiles(in), block = static_cast<int>(blockIdx.x);
    float* states = shared + kStages * 2 * kTileBytes / 4;
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

    // This lane's ldmatrix addresses in a stage: K row-major, V transposed.
    const uint32_t k_lane = offset(warp * 16 + lane % 16, lane / 16);
    const uint32_t v_lane = kTileBytes + offset(warp * 16 + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    for (int tile = begin; tile < end;) {
      uint32_t q[kNTiles][D / 16][2];
#pragma unroll
      for (int n = 0; n < kNTiles; ++n) load_query(q[n], in, at, n * kRows);
      State state[kNTiles];
#pragma unroll 1
      for (int key = at.key; tile < min(end, at.end); ++tile, key += Bc) {
        cp_async_wait_group<kStages - 2>();
        __syncthreads();  // the tile has arrived; all warps have read the previous one
        load_stage(tile + kStages - 1);
        const uint32_t stage = ring + (tile - begin) % kStages * 2 * kTileBytes;
        compute_keys(state, q, in, stage + k_lane, stage + v_lane, at.length - key - warp * 16);
      }
#pragma unroll
      for (int n = 0; n < kNTiles; ++n) {
        if (n > 0) __syncthreads();  // all warps have read the previous states
        store_rows(in, at, state[n], states, n);
      }
      if (tile < end) at = locate_tile(in, total, tile);
    }
    finish_heads(in, total, begin, at, states);
  }
};

}  // namespace

#define INSTANCES(X)                                         \
  X(fa_48_queries_d128, Decode<half, 64, 128>)               \
  X(fa_48_queries_d64, Decode<half, 64, 64>)                 \
  X(fa_48_queries_d128_bf16, Decode<__nv_bfloat16, 64, 128>) \
  X(fa_48_queries_d64_bf16, Decode<__nv_bfloat16, 64, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(48_queries, "47", sm_80, f16,
        ragged | lse | causal | grouped | lengths | paged | few_queries | strided | windowed |
            sinks,
        "several new queries: each adds rows of Q, and a fragment of K or V feeds 16 rows",
        kInstances, fa::plan_decode_even);
