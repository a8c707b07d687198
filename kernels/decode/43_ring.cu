// 43_ring
// Idea: bytes in flight. A ring of four stages keeps three tiles of K and V in flight while a
// fourth is computed.
//
// Tile              up to 16 queries of a group x 32 keys, one warp each
// Shared memory     4 stages of K 8 KB + V 8 KB at head_dim 128
// Expected effect   small. 4.54 TB/s x 1 us takes 4.54 MB in flight, 34 KB per SM. Three thread
//                   blocks per SM have 144 KB in flight at all times, and fewer splits to merge.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/halves.cuh"
#include "kernels/ptx/math.cuh"
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
struct Decode : fa::StaticKernel<16, Bc, 16, D> {
  static constexpr int kStages = 4;       // three tiles of 16 KB in flight per thread block
  static constexpr int kBlocksPerSm = 1;  // so that a thread may use 128 registers
  static constexpr std::size_t kSharedBytes = kStages * 2 * Bc * D * sizeof(half);
  static constexpr int kKeys = 16;                  // keys per pass of a warp
  static constexpr int kChunks = D / 8;             // 16-byte chunks per row
  static constexpr int kLoadRows = 32 / kChunks;    // rows that a warp loads in one instruction
  static constexpr int kLoads = kKeys / kLoadRows;  // loads per pass
  static_assert(D % 8 == 0 && 32 % kChunks == 0,
                "a row is 16 bytes for each of 2, 4, 8, ... lanes");

  // A lane's state for a row of Q: 8 columns of O and a sum, both of the keys that the lane loads,
  // and the maximum of the warp's keys.
  struct Row {
    float max = -1e30f, sum = 0.f, o[8] = {};  // finite: -infinity minus -infinity is NaN
  };

  // Starts the copy of a tile; rows from `keys` on become zeros.
  __device__ static void load_tile(half* shared, const half* global, int keys) {
    for (int i = threadIdx.x; i < Bc * kChunks; i += blockDim.x)
      cp_async_16(shared_address(shared + i * 8), global + (i / kChunks < keys ? i * 8 : 0),
                  i / kChunks < keys ? 16 : 0);
  }

  // Loads the rows of a pass.
  __device__ static void load_rows(uint4 (&bits)[kLoads], const half* first) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      bits[i] = reinterpret_cast<const uint4*>(first)[i * 32 + threadIdx.x % 32];
  }

  // S = q K^T for the lane's keys, in every lane of a key; masks the keys from `keys` on.
  __device__ static void multiply_qk(float (&S)[kLoads], const float (&q)[8],
                                     const uint4 (&bits)[kLoads], int keys) {
    const int lane_key = threadIdx.x % 32 / kChunks;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      float k[8], s = 0.f;
      unpack(k, bits[i]);
#pragma unroll
      for (int c = 0; c < 8; ++c) s = fmaf(q[c], k[c], s);
#pragma unroll
      for (int offset = kChunks / 2; offset > 0; offset /= 2)
        s += __shfl_xor_sync(0xffffffff, s, offset);
      S[i] = i * kLoadRows + lane_key < keys ? s : -INFINITY;
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
  __device__ static void multiply_pv(Row& row, const float (&P)[kLoads],
                                     const uint4 (&bits)[kLoads]) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      float v[8];
      unpack(v, bits[i]);
#pragma unroll
      for (int c = 0; c < 8; ++c) row.o[c] = fmaf(P[i], v[c], row.o[c]);
    }
  }

  // Adds 16 keys to the state; keys from `keys` on are masked.
  __device__ static void compute_keys(Row& row, const float (&q)[8], const half* K, const half* V,
                                      int keys) {
    uint4 k[kLoads], v[kLoads];
    load_rows(k, K);
    load_rows(v, V);
    float S[kLoads];
    multiply_qk(S, q, k, keys);
    softmax(S, row);
    multiply_pv(row, S, v);
  }

  // Adds the sums of the lanes with other keys, and stores O / sum and the log-sum-exp.
  __device__ static void store_split(float* O, float* LSE, Row& row) {
#pragma unroll
    for (int offset = kChunks; offset < 32; offset *= 2) {
      row.sum += __shfl_xor_sync(0xffffffff, row.sum, offset);
#pragma unroll
      for (int c = 0; c < 8; ++c) row.o[c] += __shfl_xor_sync(0xffffffff, row.o[c], offset);
    }
    const int lane = threadIdx.x % 32;
    const float inverse = row.sum > 0.f ? __fdividef(1.f, row.sum) : 0.f;
    if (lane == 0) *LSE = row.max + __log2f(row.sum);  // base 2; log 0 is -infinity
    if (lane >= kChunks) return;
#pragma unroll
    for (int c = 0; c < 8; ++c) O[lane * 8 + c] = row.o[c] * inverse;
  }

  // Merges the splits of a row of Q, each with the weight 2^(log-sum-exp).
  __device__ static void merge_splits(const fa::DecodeParameters& in, int64_t q_row) {
    const float* O = in.partials + q_row * in.splits * D;
    const float* LSE = partial_lse<D>(in) + q_row * in.splits;
    const int lane = threadIdx.x % 32;
    float max = -1e30f, sum = 0.f, o[D / 32] = {};
    for (int i = lane; i < in.splits; i += 32) max = fmaxf(max, LSE[i]);
    max = warp_max(max);
#pragma unroll 4
    for (int i = 0; i < in.splits; ++i) {
      const float weight = ex2_approx(LSE[i] - max);
      sum += weight;
#pragma unroll
      for (int c = 0; c < D / 32; ++c) o[c] = fmaf(weight, O[i * D + c * 32 + lane], o[c]);
    }
    const float inverse = sum > 0.f ? __fdividef(1.f, sum) : 0.f;
    if (in.LSE != nullptr && lane == 0) in.LSE[q_row] = max * kLn2 + __logf(sum);
#pragma unroll
    for (int c = 0; c < D / 32; ++c) in.O[q_row * D + c * 32 + lane] = __float2half(o[c] * inverse);
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
    merge_splits(in, q_row);
  }

  // The thread block has a head of K and V, and each warp computes a query head of its group.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) half shared[];
    const int entry = blockIdx.z, head = blockIdx.y * in.group_rows + threadIdx.x / 32;
    const int length = in.lengths == nullptr ? in.seq_kv : in.lengths[entry];
    const int64_t tiles = (length + Bc - 1) / Bc;
    const int begin = static_cast<int>(tiles * blockIdx.x / in.splits) * Bc;
    const int end = min(length, static_cast<int>(tiles * (blockIdx.x + 1) / in.splits) * Bc);
    const int64_t q_row = int64_t{entry} * in.rows + head;
    const int64_t kv = q_row / in.group_rows * in.seq_kv * D;  // of the head of K and V

    float q[8];
    unpack(q, *reinterpret_cast<const uint4*>(in.Q + q_row * D + threadIdx.x % kChunks * 8));
#pragma unroll
    for (int c = 0; c < 8; ++c) q[c] *= in.scale_log2;

    // Starts the copy of the tile at key j into its stage, an empty group past the last tile.
    const auto load_stage = [&](int j) {
      half* stage = shared + (j - begin) / Bc % kStages * 2 * Bc * D;
      if (j < end) load_tile(stage, in.K + kv + int64_t{j} * D, end - j);
      if (j < end) load_tile(stage + Bc * D, in.V + kv + int64_t{j} * D, end - j);
      cp_async_commit();
    };

    Row row;
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) load_stage(begin + i * Bc);
#pragma unroll 1
    for (int j = begin; j < end; j += Bc) {
      cp_async_wait_group<kStages - 2>();
      __syncthreads();  // the tile has arrived; all warps have read the previous one
      load_stage(j + (kStages - 1) * Bc);
      const half* k_tile = shared + (j - begin) / Bc % kStages * 2 * Bc * D;
      const half* v_tile = k_tile + Bc * D;
#pragma unroll 1
      for (int i = 0; i < Bc && i < end - j; i += kKeys)
        compute_keys(row, q, k_tile + i * D, v_tile + i * D, end - j - i);
    }
    const int64_t split = q_row * in.splits + blockIdx.x;
    store_split(in.partials + split * D, partial_lse<D>(in) + split, row);
    finish_head(in, q_row, reinterpret_cast<int*>(shared));
  }
};

}  // namespace

#define INSTANCES(X)                  \
  X(fa_43_ring_d128, Decode<32, 128>) \
  X(fa_43_ring_d64, Decode<64, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(43_ring, "42", sm_80, f16, ragged | lse | grouped | lengths,
        "bytes in flight: a ring of four stages, so that three tiles of K and V are in flight",
        kInstances, fa::plan_decode_counted);
