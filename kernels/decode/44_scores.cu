// 44_scores
// Idea: S = K Q^T on the tensor cores. Keys are the 16 rows of an mma, the query heads of a group
// its 8 columns. With the XOR swizzle of 02, ldmatrix of K has no bank conflicts.
//
// Tile              up to 8 queries of a group x 64 keys, 4 warps
// Shared memory     3 stages of K 16 KB + V 16 KB at head_dim 128, two thread blocks per SM
// Expected effect   16 rows of K take 32 wavefronts, as many as 16 rows of V, not 256.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/halves.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/rung.h"

namespace {

// The log-sum-exps of the splits, after their partial O in memory.
template <int D>
__device__ float* partial_lse(const fa::DecodeParameters& in) {
  return in.partials + int64_t{gridDim.z} * in.rows * in.splits * D;
}

template <int Bc, int D>
struct Decode : fa::StaticKernel<8, Bc, Bc / 16, D> {
  static constexpr int kWarps = Bc / 16, kRows = 8;  // an mma has 16 keys and 8 rows of Q
  static constexpr int kStages = 384 / D;            // the rings of an SM take 192 KB of its 227
  static constexpr int kTileBytes = Bc * D * 2;
  static constexpr int kPitch = D + 4;        // floats per row of O in shared memory
  static constexpr int kLanes = D / 4;        // lanes that merge a row, 16 bytes each
  static constexpr int kMerged = 9 * D / 32;  // splits that a merge loads at once
  static constexpr int kBlocksPerSm = 2;      // 255 registers per thread, all that it may use
  static constexpr std::size_t kSharedBytes = kStages * 2 * kTileBytes;
  static constexpr int kKeys = 16;                         // keys per pass of a warp
  static constexpr int kChunks = D / 8;                    // 16-byte chunks per row
  static constexpr int kCopyRows = kWarps * 32 / kChunks;  // rows copied per pass
  static constexpr int kLoadRows = 32 / kChunks;    // rows that a warp loads in one instruction
  static constexpr int kLoads = kKeys / kLoadRows;  // loads per pass
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");
  static_assert(kWarps * kRows * (kPitch + 2) * 4 <= kSharedBytes, "the warps' O fit in the ring");

  // The columns of O that a lane merges.
  struct alignas(16) Columns {
    float x[4] = {};
  };

  // A lane's state for a row of Q: 8 columns of O and a sum, both of the keys that the lane loads,
  // and the maximum of the warp's keys.
  struct Row {
    float max = -1e30f, sum = 0.f, o[8] = {};  // finite: -infinity minus -infinity is NaN
  };

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

  // Starts the copy of a tile; rows from `keys` on become zeros.
  __device__ static void load_tile(uint32_t tile, const half* global, int keys) {
    const int chunk = threadIdx.x % kChunks;
#pragma unroll
    for (int row = threadIdx.x / kChunks, i = 0; i < Bc / kCopyRows; ++i, row += kCopyRows)
      cp_async_16(tile + offset(row, chunk), global + (row < keys ? row * D + chunk * 8 : 0),
                  row < keys ? 16 : 0);
  }

  // The B operand of K Q^T: rows of Q are its columns, zeros from `rows` on.
  __device__ static void load_query(uint32_t (&q)[D / 16][2], const half* Q, int rows) {
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < D / 8; ++i)
      q[i / 2][i % 2] =
          row < rows ? *reinterpret_cast<const uint32_t*>(Q + row * D + i * 8 + column) : 0;
  }

  // S = K Q^T of the warp's 16 keys.
  __device__ static void multiply_qk(float (&S)[4], const uint32_t (&q)[D / 16][2], uint32_t k) {
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      uint32_t a[4];
      ldmatrix_x4(a, shift(k, 2 * d));
      mma_m16n8k16(S, a, q[d][0], q[d][1]);
    }
  }

  // Masks the keys from `keys` on.
  __device__ static void mask(float (&S)[4], int keys) {
    const int key = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (key + i / 2 * 8 >= keys) S[i] = -INFINITY;
  }

  // Moves the scores of a row of Q to the lanes that load the keys in V.
  __device__ static void spread(float (&S)[kLoads], const float (&scores)[4], int row) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int key = i * kLoadRows + threadIdx.x % 32 / kChunks, r = i * 2 / kLoads * 2 + row % 2;
      S[i] = __shfl_sync(0xffffffff, scores[r], key % 8 * 4 + row / 2);
    }
  }

  // Online softmax: P = 2^(S - max) replaces S, and the row is rescaled to the new maximum.
  __device__ static void softmax(float (&S)[kLoads], Row& row) {
    float new_max = row.max;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) new_max = fmaxf(new_max, S[i]);
    new_max = warp_max(new_max);
    const float alpha = ex2_approx(row.max - new_max);
    row.max = new_max;
    row.sum *= alpha;
#pragma unroll
    for (int c = 0; c < 8; ++c) row.o[c] *= alpha;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      S[i] = ex2_approx(S[i] - new_max);
      row.sum += S[i];
    }
  }

  // O += P V.
  __device__ static void multiply_pv(Row (&state)[kRows], const float (&P)[kRows][kLoads],
                                     const half* V, int rows) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int key = i * kLoadRows + threadIdx.x % 32 / kChunks, chunk = threadIdx.x % kChunks;
      float v[8];
      load_shared_halves(v, V + offset(key, chunk) / 2);
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        if (row >= rows) break;
#pragma unroll
        for (int c = 0; c < 8; ++c) state[row].o[c] = fmaf(P[row][i], v[c], state[row].o[c]);
      }
    }
  }

  // Adds 16 keys to the state; keys from `keys` on are masked.
  __device__ static void compute_keys(Row (&state)[kRows], const uint32_t (&q)[D / 16][2],
                                      const fa::DecodeParameters& in, uint32_t k, const half* V,
                                      int keys) {
    float scores[4] = {}, S[kRows][kLoads];
    multiply_qk(scores, q, k);
    if (keys < 16) mask(scores, keys);
    for (float& score : scores) score *= in.scale_log2;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (row >= in.group_rows) break;
      spread(S[row], scores, row);
      softmax(S[row], state[row]);
    }
    multiply_pv(state, S, V, in.group_rows);
  }

  // Stores the warp's state for a row of Q in shared memory: O, the maximum and the sum.
  __device__ static void share_state(float* O, float* statistics, Row& row) {
#pragma unroll
    for (int offset = kChunks; offset < 32; offset *= 2) {
      row.sum += __shfl_xor_sync(0xffffffff, row.sum, offset);
#pragma unroll
      for (int c = 0; c < 8; ++c) row.o[c] += __shfl_xor_sync(0xffffffff, row.o[c], offset);
    }
    const int lane = threadIdx.x % 32;
    if (lane == 0) statistics[0] = row.max;
    if (lane == 0) statistics[1] = row.sum;
    if (lane >= kChunks) return;
#pragma unroll
    for (int c = 0; c < 8; ++c) O[lane * 8 + c] = row.o[c];
  }

  // A warp merges the states of a row of Q, and stores O / sum and the base-2 log-sum-exp.
  __device__ static void store_split(float* O, float* LSE, const float* states,
                                     const float* statistics, int row) {
    const int lane = threadIdx.x % 32;
    float max = -1e30f, sum = 0.f, weight[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, statistics[(w * kRows + row) * 2]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      weight[w] = ex2_approx(statistics[(w * kRows + row) * 2] - max);
      sum += weight[w] * statistics[(w * kRows + row) * 2 + 1];
    }
    const float inverse = sum > 0.f ? __fdividef(1.f, sum) : 0.f;
    if (lane == 0) *LSE = max + __log2f(sum);  // no key: log 0 is -infinity
#pragma unroll
    for (int c = lane; c < D; c += 32) {
      float o = 0.f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w)
        o = fmaf(weight[w], states[(w * kRows + row) * kPitch + c], o);
      O[c] = o * inverse;
    }
  }

  // Merges the splits of a row of Q, each with the weight 2^(log-sum-exp).
  __device__ static void merge_splits(const fa::DecodeParameters& in, int64_t q_row) {
    const auto* O = reinterpret_cast<const Columns*>(in.partials + q_row * in.splits * D);
    const float* LSE = partial_lse<D>(in) + q_row * in.splits;
    const int lane = threadIdx.x % kLanes;
    Columns o;
    float max = -1e30f, sum = 0.f;
#pragma unroll 1
    for (int first = 0; first < in.splits; first += kMerged) {
      Columns partial[kMerged];
      float weight[kMerged], alpha = max;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        const int from = min(first + i, in.splits - 1);
        partial[i] = O[from * kLanes + lane];
        weight[i] = first + i > from ? -INFINITY : LSE[from];
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

  // Counts this split of a head. The thread block that counts the last one merges all of them.
  __device__ static void finish_head(const fa::DecodeParameters& in, int64_t q_row, int* count) {
    __threadfence();  // the split is visible before it is counted
    __syncthreads();
    if (threadIdx.x == 0)  // counts to splits - 1, then wraps to 0
      *count = atomicInc(in.counter + blockIdx.z * gridDim.y + blockIdx.y, in.splits - 1);
    __syncthreads();
    if (*count != in.splits - 1) return;
    __threadfence();  // and no split is read before the count
    for (int row = threadIdx.x / kLanes; row < in.group_rows; row += kWarps * 32 / kLanes)
      merge_splits(in, q_row + row);
  }

  // A thread block computes a split of a head of K and V, each warp 16 keys of a tile.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) float shared[];
    const uint32_t ring = shared_address(shared);
    const int entry = blockIdx.z, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int length = in.lengths == nullptr ? in.seq_kv : in.lengths[entry];
    const int64_t tiles = (length + Bc - 1) / Bc;
    const int begin = static_cast<int>(tiles * blockIdx.x / in.splits) * Bc;
    const int end = min(length, static_cast<int>(tiles * (blockIdx.x + 1) / in.splits) * Bc);
    const int64_t q_row = int64_t{entry} * in.rows + blockIdx.y * in.group_rows;  // group's first
    const int64_t kv = (int64_t{entry} * gridDim.y + blockIdx.y) * in.seq_kv * D;

    // Starts the copy of the tile at key j into its stage, an empty group past the last tile.
    const auto load_stage = [&](int j) {
      const uint32_t stage = ring + (j - begin) / Bc % kStages * 2 * kTileBytes;
      if (j < end) load_tile(stage, in.K + kv + int64_t{j} * D, end - j);
      if (j < end) load_tile(stage + kTileBytes, in.V + kv + int64_t{j} * D, end - j);
      cp_async_commit();
    };
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) load_stage(begin + i * Bc);
    uint32_t q[D / 16][2];
    load_query(q, in.Q + q_row * D, in.group_rows);

    // This lane's ldmatrix address in a stage, and the warp's rows of V.
    const uint32_t k_lane = offset(warp * 16 + lane % 16, lane / 16);
    const half* v_rows = reinterpret_cast<const half*>(shared) + (Bc + warp * 16) * D;
    Row state[kRows];
#pragma unroll 1
    for (int j = begin; j < end; j += Bc) {
      cp_async_wait_group<kStages - 2>();
      __syncthreads();  // the tile has arrived; all warps have read the previous one
      load_stage(j + (kStages - 1) * Bc);
      const uint32_t stage = ring + (j - begin) / Bc % kStages * 2 * kTileBytes;
      compute_keys(state, q, in, stage + k_lane, v_rows + (stage - ring) / 2, end - j - warp * 16);
    }
    __syncthreads();  // all warps have read the ring
    float* statistics = shared + kWarps * kRows * kPitch;
#pragma unroll
    for (int row = 0, i = warp * kRows; row < kRows; ++row, ++i)
      share_state(shared + i * kPitch, statistics + i * 2, state[row]);
    __syncthreads();  // all states are stored
    for (int row = warp; row < in.group_rows; row += kWarps) {
      const int64_t split = (q_row + row) * in.splits + blockIdx.x;
      store_split(in.partials + split * D, partial_lse<D>(in) + split, shared, statistics, row);
    }
    finish_head(in, q_row, reinterpret_cast<int*>(shared));
  }
};

}  // namespace

#define INSTANCES(X)                    \
  X(fa_44_scores_d128, Decode<64, 128>) \
  X(fa_44_scores_d64, Decode<64, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(44_scores, "43", sm_80, f16, ragged | lse | grouped | lengths,
        "S = K Q^T on the tensor cores: keys are rows of an mma, query heads its 8 columns",
        kInstances, fa::plan_decode_counted,
        .why_large =
            "the warps divide the keys instead of the query heads, so tiles, state, softmax and "
            "merge change with the product.");
