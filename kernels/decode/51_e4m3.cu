// 51_e4m3
// Idea: a cache of e4m3. It has half the bytes, which are converted to halves in registers.
// ldmatrix moves pairs of bytes, so Q is permuted like the columns of K, and O like those of V.
//
// Tile              up to 8 queries of a group x 256 keys, 8 warps
// Shared memory     3 stages of K 32 KB + V 32 KB and 33 KB of states at head_dim 128
// Expected effect   half the time for the bytes, with 30 instructions per key instead of 23.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/movmatrix.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

template <int Bc, int D>
struct Decode : fa::StaticKernel<8, Bc, Bc / 32, D> {
  static constexpr int kWarps = Bc / 32, kRows = 8;  // two passes of 16 keys, 8 rows of Q
  static constexpr int kStages = 384 / D;            // the rings of an SM take 192 KB of its 227
  static constexpr int kTileBytes = Bc * D;
  static constexpr int kPairBytes = 2 * kTileBytes;  // K and V
  // A thread block has slots for the first and the last head of its range of tiles.
  static constexpr int kSlots = 2 * kRows;
  static constexpr int kSlotFloats = D + 32;  // floats: O, the log-sum-exp in a line of its own
  static constexpr int kPitch = D + 4;        // floats per row of O; 4 avoid bank conflicts
  static constexpr float kSlack = 8;          // P is at most 2^kSlack
  static constexpr int kLanes = D / 4;        // lanes that merge a row, 16 bytes each
  static constexpr int kMerged = 16;          // splits that a merge loads at once
  static constexpr int kBlocksPerSm = 1;      // shared memory has no room for two
  static constexpr int kStateFloats = kWarps * kRows * kPitch;
  static constexpr std::size_t kSharedBytes =
      kStages * kPairBytes + (kStateFloats + kWarps * kRows * 2) * sizeof(float);
  static constexpr int kChunks = D / 16;                // 16-byte chunks per row
  static constexpr int kWarpRows = 32 / kChunks;        // rows that a warp copies per pass
  static constexpr int kCopyRows = kWarps * kWarpRows;  // rows copied per pass
  static_assert(Bc / kWarps <= 32, "a lane looks up at most one row");
  static constexpr int kLineRows = 128 / D;  // rows in 128 bytes
  static_assert(D == 64 || D == 128, "the swizzle permutes the 16-byte chunks of a row");

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

  __device__ static int tiles_of(const fa::DecodeParameters& in, int entry) {
    return (length_of(in, entry) + Bc - 1) / Bc * (in.rows / in.group_rows);
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
        const int tiles = (at.length + Bc - 1) / Bc;
        before += __shfl_sync(0xffffffff, prefix, found) - tiles * (in.rows / in.group_rows);
        at.head = (tile - before) / tiles;
        at.begin = before + at.head * tiles;
        at.end = at.begin + tiles;
        at.key = (tile - at.begin) * Bc;
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

  // The scale of a head of K, or of V where `first` is in.batch.
  __device__ static float scale_of(const fa::DecodeParameters& in, const Position& at, int first) {
    return in.scales[(first + at.entry) * (in.rows / in.group_rows) + at.head];
  }

  // Stores zeros and -infinity for batch entries without a key.
  __device__ static void store_empty(const fa::DecodeParameters& in) {
    for (int entry = blockIdx.x; entry < in.batch; entry += gridDim.x) {
      if (length_of(in, entry) > 0) continue;
      const int64_t q_row = int64_t{entry} * in.rows;
      for (int i = threadIdx.x; i < in.rows * D; i += blockDim.x) in.O[q_row * D + i] = half{};
      for (int i = threadIdx.x; in.LSE != nullptr && i < in.rows; i += blockDim.x)
        in.LSE[q_row + i] = -INFINITY;
    }
  }

  // Byte offset of a 16-byte chunk in a tile. XOR with the row spreads the eight rows of an
  // ldmatrix phase over all 32 banks. At head_dim 64 two rows fill 128 bytes and count as one.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(row * D + ((chunk ^ (row / kLineRows % kChunks)) << 4));
  }

  // Address of (row, chunk0 + chunk) from the address of (row, chunk0), for an even chunk.
  __device__ static uint32_t shift(uint32_t address, int chunk) {
    return address ^ (chunk << 4);
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
    const int chunk = threadIdx.x % kChunks, kv_heads = in.rows / in.group_rows;
    const auto* K = reinterpret_cast<const unsigned char*>(in.K);
    const auto* V = reinterpret_cast<const unsigned char*>(in.V);
    const int64_t looked_up =
        ((int64_t{page_row.page} * kv_heads + at.head) * in.page + page_row.row) * D;
#pragma unroll
    for (int i = 0, row = threadIdx.x / kChunks; i < Bc / kCopyRows; ++i, row += kCopyRows) {
      const int source = i * kWarpRows + threadIdx.x % 32 / kChunks;  // copied_row(source) is row
      const int64_t first = __shfl_sync(0xffffffff, looked_up, source);
      const int64_t element = at.key + row < at.length ? first + chunk * 16 : 0;
      const int bytes = at.key + row < at.length ? 16 : 0;
      cp_async_16(stage + offset(row, chunk), K + element, bytes);
      cp_async_16(stage + kTileBytes + offset(row, chunk), V + element, bytes);
    }
  }

  // Converts four e4m3 to halves, times 2^-8: first and third to `even`, the others to `odd`.
  __device__ static void widen(uint32_t& even, uint32_t& odd, uint32_t four) {
    odd = (four & 0x80008000) | (four >> 1 & 0x3f803f80);
    four <<= 8;
    even = (four & 0x80008000) | (four >> 1 & 0x3f803f80);
  }

  // The B operand of K Q^T: rows of Q are its columns, zeros behind the last.
  // Of 16 elements of a row a lane has four neighbours, paired like the results of widen().
  __device__ static void load_query(uint32_t (&q)[D / 16][2], const half* Q, int rows) {
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 4;
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      uint2 four = {};
      if (row < rows) four = *reinterpret_cast<const uint2*>(Q + row * D + d * 16 + column);
      q[d][0] = __byte_perm(four.x, four.y, 0x5410);
      q[d][1] = __byte_perm(four.x, four.y, 0x7632);
    }
  }

  // S = K Q^T of the warp's 16 keys.
  __device__ static void multiply_qk(float (&S)[4], const uint32_t (&q)[D / 16][2], uint32_t k) {
#pragma unroll
    for (int d = 0; d < D / 16; d += 2) {
      uint32_t k8[4], a[4];
      ldmatrix_x4(k8, shift(k, d));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        widen(a[0], a[2], k8[2 * i]);
        widen(a[1], a[3], k8[2 * i + 1]);
        mma_m16n8k16(S, a, q[d + i][0], q[d + i][1]);
      }
    }
  }

  // Masks the keys from `keys` on.
  __device__ static void mask(float (&S)[4], int keys) {
    const int key = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (key + i / 2 * 8 >= keys) S[i] = -INFINITY;
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
    for (int i = 0; i < 2; ++i) {
      const half2 p = __floats2half2_rn(S[2 * i], S[2 * i + 1]);
      P[i] = movmatrix_trans(reinterpret_cast<const uint32_t&>(p));
    }
  }

  // O += V^T P. Row g of a fragment is column 2 g of V, row g + 8 is column 2 g + 1.
  __device__ static void multiply_pv(State& state, const uint32_t (&P)[2], uint32_t v) {
#pragma unroll
    for (int m = 0; m < D / 16; m += 2) {
      uint32_t v8[4], a[4];
      ldmatrix_x4_trans(v8, shift(v, m));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        widen(a[0], a[1], v8[2 * i]);
        widen(a[2], a[3], v8[2 * i + 1]);
        mma_m16n8k16(state.o[m + i], a, P[0], P[1]);
      }
    }
  }

  // Adds 16 keys to the state; keys from `keys` on are masked.
  __device__ static void compute_keys(State& state, const uint32_t (&q)[D / 16][2],
                                      float scale_log2, uint32_t k, uint32_t v, int keys) {
    float S[4] = {};
    uint32_t P[2];
    multiply_qk(S, q, k);
    if (keys < 16) mask(S, keys);
    softmax(P, S, state, scale_log2);
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
        O[(row + r) * kPitch + i / 2 * 16 + column * 2 + i % 2] = state.o[i / 2][i % 2 * 2 + r];
      if (column == 0) statistics[(row + r) * 2] = state.reference[r];
      if (column == 0) statistics[(row + r) * 2 + 1] = sum;
    }
  }

  // The slot of a thread block for O and the log-sum-exp of a row of Q. The second half of its
  // slots is for the head that begins within its range.
  __device__ static float* slot_of(const fa::DecodeParameters& in, int block, int first_block,
                                   int row) {
    const int slot = block == first_block ? kSlots / 2 + row : row;
    return in.partials + (int64_t{block} * kSlots + slot) * kSlotFloats;
  }

  // A warp merges the states of a row of Q, and stores O / sum and the log-sum-exp: the result, or
  // a partial result if several thread blocks compute the head.
  __device__ static void store_row(const fa::DecodeParameters& in, const float* states,
                                   const float* statistics, int64_t q_row, float* partial,
                                   float scale, bool whole) {
    const int lane = threadIdx.x % 32;
    float max = -1e30f, sum = 0.f, weight[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, statistics[w * kRows * 2]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      weight[w] = ex2_approx(statistics[w * kRows * 2] - max);
      sum += weight[w] * statistics[w * kRows * 2 + 1];
    }
    const float inverse = sum > 0.f ? __fdividef(scale, sum) : 0.f;
    const float LSE = max + __log2f(sum);  // no key: log 0 is -infinity
    if (lane == 0 && !whole) partial[D] = LSE;
    if (lane == 0 && whole && in.LSE != nullptr) in.LSE[q_row] = LSE * kLn2;
#pragma unroll
    for (int c = lane; c < D; c += 32) {
      float o = 0.f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) o = fmaf(weight[w], states[w * kRows * kPitch + c], o);
      if (whole) in.O[q_row * D + c] = __float2half(o * inverse);
      if (!whole) partial[c] = o * inverse;
    }
  }

  // Merges the splits of a row of Q, each with the weight 2^(log-sum-exp).
  __device__ static void merge_splits(const fa::DecodeParameters& in, const Position& at, int row) {
    const int64_t q_row = first_row(in, at) + row;
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
    const float inverse = sum > 0.f ? __fdividef(1.f, sum) : 0.f;
    if (in.LSE != nullptr && lane == 0) in.LSE[q_row] = max * kLn2 + __logf(sum);
#pragma unroll
    for (int c = 0; c < 4; ++c) in.O[q_row * D + lane * 4 + c] = __float2half(o.x[c] * inverse);
  }

  // Stores up to 8 rows of Q from the warps' states.
  __device__ static void store_rows(const fa::DecodeParameters& in, const Position& at,
                                    const State& state, float* states) {
    const int warp = threadIdx.x / 32;
    const int64_t q_row = first_row(in, at);
    const bool whole = at.first_block == at.last_block;
    const float scale = scale_of(in, at, in.batch) * 256;  // of V
    float* statistics = states + kStateFloats;
    share_state(states + warp * kRows * kPitch, statistics + warp * kRows * 2, state);
    __syncthreads();  // all states are stored
    for (int row = warp; row < in.group_rows; row += kWarps)
      store_row(in, states + row * kPitch, statistics + row * 2, q_row + row,
                slot_of(in, blockIdx.x, at.first_block, row), scale, whole);
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

  // A thread block computes an even range of the tiles of all heads, each warp 2 x 16 keys of a
  // tile.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) float shared[];
    const uint32_t ring = shared_address(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int total = total_tiles(in), block = static_cast<int>(blockIdx.x);
    float* states = shared + kStages * kPairBytes / 4;
    store_empty(in);
    if (block >= total) return;  // no tile for this thread block
    const int begin = first_tile(total, block), end = first_tile(total, block + 1);

    // Starts the copy of a tile into its stage, an empty group past the last tile.
    Position at = locate_tile(in, total, begin), ahead = at;
    PageRow page_row = look_up_row(in, ahead);
    const auto load_stage = [&](int tile) {
      if (tile < end) {
        const uint32_t stage = ring + (tile - begin) % kStages * kPairBytes;
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
    const uint32_t k_lane = offset(lane % 16, lane / 16);
    const uint32_t v_lane = kTileBytes + offset(lane % 16, lane / 16);
    for (int tile = begin; tile < end;) {
      const half* Q = in.Q + first_row(in, at) * D;
      uint32_t q[D / 16][2];
      load_query(q, Q, in.group_rows);
      State state;
      const float scale_log2 = in.scale_log2 * 256 * scale_of(in, at, 0);
#pragma unroll 1
      for (int key = at.key; tile < min(end, at.end); ++tile, key += Bc) {
        cp_async_wait_group<kStages - 2>();
        __syncthreads();  // the tile has arrived; all warps have read the previous one
        load_stage(tile + kStages - 1);
        const uint32_t stage = ring + (tile - begin) % kStages * kPairBytes;
#pragma unroll
        for (int i = warp * 16; i < Bc; i += kWarps * 16)
          compute_keys(state, q, scale_log2, stage + i * D + k_lane, stage + i * D + v_lane,
                       at.length - key - i);
      }
      store_rows(in, at, state, states);
      if (tile < end) at = locate_tile(in, total, tile);
    }
    finish_heads(in, total, begin, at, states);
  }
};

}  // namespace

#define INSTANCES(X)                   \
  X(fa_51_e4m3_d128, Decode<256, 128>) \
  X(fa_51_e4m3_d64, Decode<256, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(51_e4m3, "50", sm_80, f16, ragged | lse | grouped | lengths | paged | e4m3,
        "a cache of e4m3: half the bytes, widened in registers; a scale per head of K and V",
        kInstances, fa::plan_decode_even,
        .why_large = "its tensors stay contiguous and its queries half, unlike those of 50.");
