// 52_early
// Idea: a launch begins before the previous launch of the stream has ended (programmatic dependent
// launch). Its thread blocks start on an SM as those of the previous launch end, and wait there
// before they read memory. A head whose keys are not split is stored without parts to merge.
//
// Tile              up to 8 queries of a group x 64 keys, 4 warps
// Shared memory     3 stages of K 16 KB + V 16 KB at head_dim 128
// Expected effect   back to back at most 1.5 of the 2 us that a launch takes to start are hidden.
//                   Spaced launches: none.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/halves.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/movmatrix.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

// The log-sum-exps of the splits, after their partial O in memory.
template <int D>
__device__ float* partial_lse(const fa::DecodeParameters& in) {
  return in.partials + int64_t{gridDim.z} * in.rows * in.splits * D;
}

template <class T, int Bc, int D>
struct Decode : fa::StaticKernel<8, Bc, Bc / 16, D> {
  using Element = T;
  static constexpr int kWarps = Bc / 16, kRows = 8;  // an mma has 16 keys and 8 rows of Q
  static constexpr int kStages = 3;                  // the rings of an SM take 192 KB of its 227
  static constexpr int kTileBytes = Bc * D * 2;
  static constexpr int kPitch = D + 4;          // floats per row of O; 4 avoid bank conflicts
  static constexpr float kSlack = 8;            // P is at most 2^kSlack
  static constexpr int kLanes = D / 4;          // lanes that merge a row, 16 bytes each
  static constexpr int kMerged = 9 * D / 32;    // splits that a merge loads at once
  static constexpr int kBlocksPerSm = 256 / D;  // as many as shared memory allows
  static constexpr std::size_t kSharedBytes = kStages * 2 * kTileBytes;
  static constexpr int kChunks = D / 8;                    // 16-byte chunks per row
  static constexpr int kCopyRows = kWarps * 32 / kChunks;  // rows copied per pass
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");
  static_assert(kWarps * kRows * (kPitch + 2) * 4 <= kSharedBytes, "the warps' O fit in the ring");

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

  // The first element of a row of Q or O, whose strides these are.
  __device__ static int64_t element(const int64_t (&strides)[3], int entry, int row) {
    return entry * strides[0] + row * strides[1];
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

  // Starts the copy of a tile; rows from `keys` on become zeros.
  __device__ static void load_tile(uint32_t tile, const T* global, int64_t stride, int keys) {
    const int chunk = threadIdx.x % kChunks;
    const T* from = global + threadIdx.x / kChunks * stride + chunk * 8;
#pragma unroll
    for (int row = threadIdx.x / kChunks, i = 0; i < Bc / kCopyRows; ++i, row += kCopyRows) {
      cp_async_16(tile + offset(row, chunk), row < keys ? from : global, row < keys ? 16 : 0);
      from += kCopyRows * stride;
    }
  }

  // The B operand of K Q^T: rows of Q are its columns, zeros from `rows` on.
  __device__ static void load_query(uint32_t (&q)[D / 16][2], const T* Q, int64_t stride,
                                    int rows) {
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < D / 8; ++i)
      q[i / 2][i % 2] =
          row < rows ? *reinterpret_cast<const uint32_t*>(Q + row * stride + i * 8 + column) : 0;
  }

  // S = K Q^T of the warp's 16 keys.
  __device__ static void multiply_qk(float (&S)[4], const uint32_t (&q)[D / 16][2], uint32_t k) {
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      uint32_t a[4];
      ldmatrix_x4(a, shift(k, 2 * d));
      mma_m16n8k16<T>(S, a, q[d][0], q[d][1]);
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
    for (int i = 0; i < 2; ++i) P[i] = movmatrix_trans(packed<T>(S[2 * i], S[2 * i + 1]));
  }

  // O += V^T P.
  __device__ static void multiply_pv(State& state, const uint32_t (&P)[2], uint32_t v) {
#pragma unroll
    for (int m = 0; m < D / 16; ++m) {
      uint32_t a[4];
      ldmatrix_x4_trans(a, shift(v, 2 * m));
      mma_m16n8k16<T>(state.o[m], a, P[0], P[1]);
    }
  }

  // Adds 16 keys to the state; keys from `keys` on are masked.
  __device__ static void compute_keys(State& state, const uint32_t (&q)[D / 16][2],
                                      const fa::DecodeParameters& in, uint32_t k, uint32_t v,
                                      int keys) {
    float S[4] = {};
    uint32_t P[2];
    multiply_qk(S, q, k);
    if (keys < 16) mask(S, keys);
    softmax(P, S, state, in.scale_log2);
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

  // The base-2 score of a query head's sink.
  __device__ static float sink_of(const fa::DecodeParameters& in, int head) {
    return in.sinks == nullptr ? -INFINITY : in.sinks[head] / kLn2;
  }

  // Adds a sink to a row's sum, with the larger of both references. Returns the factor on O.
  __device__ static float add_sink(float sink, float& reference, float& sum) {
    const float raised = fmaxf(reference, sink), alpha = ex2_approx(reference - raised);
    sum = sum * alpha + ex2_approx(sink - raised);
    reference = raised;
    return sum > 0.f ? __fdividef(alpha, sum) : 0.f;
  }

  // A warp merges the states of a row of Q, and stores O / sum and the log-sum-exp: the result, or
  // a partial result if the head is split.
  __device__ static void store_row(const fa::DecodeParameters& in, const float* states,
                                   const float* statistics, int row, bool whole) {
    const int lane = threadIdx.x % 32, head = blockIdx.y * in.group_rows + row;
    const int64_t q_row = int64_t{blockIdx.z} * in.rows + head;
    const int64_t split = q_row * in.splits + blockIdx.x;
    T* to = reinterpret_cast<T*>(in.O) + element(in.O_strides, blockIdx.z, head);
    float max = -1e30f, sum = 0.f, weight[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, statistics[(w * kRows + row) * 2]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      weight[w] = ex2_approx(statistics[(w * kRows + row) * 2] - max);
      sum += weight[w] * statistics[(w * kRows + row) * 2 + 1];
    }
    const float sink = whole ? sink_of(in, head) : -INFINITY;
    const float inverse = add_sink(sink, max, sum);
    const float LSE = max + __log2f(sum);  // no key: log 0 is -infinity
    if (lane == 0 && !whole) partial_lse<D>(in)[split] = LSE;
    if (lane == 0 && whole && in.LSE != nullptr) in.LSE[q_row] = LSE * kLn2;
#pragma unroll
    for (int c = lane; c < D; c += 32) {
      float o = 0.f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w)
        o = fmaf(weight[w], states[(w * kRows + row) * kPitch + c], o);
      if (whole) to[c] = T(o * inverse);
      if (!whole) in.partials[split * D + c] = o * inverse;
    }
  }

  // Merges the splits of a row of Q, each with the weight 2^(log-sum-exp).
  __device__ static void merge_splits(const fa::DecodeParameters& in, int head) {
    const int64_t q_row = int64_t{blockIdx.z} * in.rows + head;
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
    const float inverse = add_sink(sink_of(in, head), max, sum);
    if (in.LSE != nullptr && lane == 0) in.LSE[q_row] = max * kLn2 + __logf(sum);
    T* to = reinterpret_cast<T*>(in.O) + element(in.O_strides, blockIdx.z, head) + lane * 4;
#pragma unroll
    for (int c = 0; c < 4; ++c) to[c] = T(o.x[c] * inverse);
  }

  // Counts this split of a head. The thread block that counts the last one merges all of them.
  __device__ static void finish_head(const fa::DecodeParameters& in, int* count) {
    __threadfence();  // the split is visible before it is counted
    __syncthreads();
    if (threadIdx.x == 0)  // counts to splits - 1, then wraps to 0
      *count = atomicInc(in.counter + blockIdx.z * gridDim.y + blockIdx.y, in.splits - 1);
    __syncthreads();
    if (*count != in.splits - 1) return;
    __threadfence();  // and no split is read before the count
    for (int row = threadIdx.x / kLanes; row < in.group_rows; row += kWarps * 32 / kLanes)
      merge_splits(in, blockIdx.y * in.group_rows + row);
  }

  // A thread block computes a split of a head of K and V, each warp 16 keys of a tile.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) float shared[];
    launch_dependent_grids();
    wait_on_dependent_grids();
    const uint32_t ring = shared_address(shared);
    const int entry = blockIdx.z, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int length = in.lengths == nullptr ? in.seq_kv : in.lengths[entry];
    const int first = max(0, length - 1 - in.left);  // key that the query sees
    const int64_t tiles = (length - first + Bc - 1) / Bc;
    const int begin = first + static_cast<int>(tiles * blockIdx.x / in.splits) * Bc;
    const int next = first + static_cast<int>(tiles * (blockIdx.x + 1) / in.splits) * Bc;
    const int end = min(length, next);
    const int head = blockIdx.y * in.group_rows;  // the group's first
    const auto first_key = [&](const half* keys, const int64_t(&strides)[3]) {
      return reinterpret_cast<const T*>(keys) + entry * strides[0] + blockIdx.y * strides[1];
    };
    const T* K = first_key(in.K, in.K_strides);
    const T* V = first_key(in.V, in.V_strides);

    // Starts the copy of the tile at key j into its stage, an empty group past the last tile.
    const auto load_stage = [&](int j) {
      const uint32_t stage = ring + (j - begin) / Bc % kStages * 2 * kTileBytes;
      const int64_t k_row = in.K_strides[2], v_row = in.V_strides[2];
      if (j < end) load_tile(stage, K + j * k_row, k_row, end - j);
      if (j < end) load_tile(stage + kTileBytes, V + j * v_row, v_row, end - j);
      cp_async_commit();
    };
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) load_stage(begin + i * Bc);
    uint32_t q[D / 16][2];
    const T* Q = reinterpret_cast<const T*>(in.Q) + element(in.Q_strides, entry, head);
    load_query(q, Q, in.Q_strides[1], in.group_rows);

    // This lane's ldmatrix addresses in a stage: K row-major, V transposed.
    const uint32_t k_lane = offset(warp * 16 + lane % 16, lane / 16);
    const uint32_t v_lane = kTileBytes + offset(warp * 16 + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    State state;
#pragma unroll 1
    for (int j = begin; j < end; j += Bc) {
      cp_async_wait_group<kStages - 2>();
      __syncthreads();  // the tile has arrived; all warps have read the previous one
      load_stage(j + (kStages - 1) * Bc);
      const uint32_t stage = ring + (j - begin) / Bc % kStages * 2 * kTileBytes;
      compute_keys(state, q, in, stage + k_lane, stage + v_lane, end - j - warp * 16);
    }
    __syncthreads();  // all warps have read the ring
    float* statistics = shared + kWarps * kRows * kPitch;
    share_state(shared + warp * kRows * kPitch, statistics + warp * kRows * 2, state);
    __syncthreads();  // all states are stored
    for (int row = warp; row < in.group_rows; row += kWarps)
      store_row(in, shared, statistics, row, in.splits == 1);
    if (in.splits > 1) finish_head(in, reinterpret_cast<int*>(shared));
  }
};

}  // namespace

#define INSTANCES(X)                                       \
  X(fa_52_early_d128, Decode<half, 64, 128>)               \
  X(fa_52_early_d64, Decode<half, 64, 64>)                 \
  X(fa_52_early_d128_bf16, Decode<__nv_bfloat16, 64, 128>) \
  X(fa_52_early_d64_bf16, Decode<__nv_bfloat16, 64, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(52_early, "45", sm_90a, f16, ragged | lse | grouped | lengths | strided | windowed | sinks,
        "a launch begins before the previous one has ended, and waits before it reads memory",
        kInstances, fa::plan_decode_early);
