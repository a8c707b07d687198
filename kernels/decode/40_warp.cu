// 40_warp
// Idea: one new query against a cache. One warp computes one query head. Its lanes load rows of K
// and V, 16 bytes each, and keep Q, O and the online softmax in registers. Heads that share K and V
// each read them.
//
// Tile              1 query x 16 keys, 1 warp
// Shared memory     none
// Expected effect   at batch 16 with 32 heads an SM has 4 warps, each with one pass of 8 KB in
//                   flight. The latency then limits the kernel to a sixth of the bandwidth.

#include "kernels/ptx/halves.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/rung.h"

namespace {

template <int Bc, int D>
struct Decode : fa::StaticKernel<1, Bc, 1, D> {
  static constexpr int kChunks = D / 8;           // 16-byte chunks per row
  static constexpr int kLoadRows = 32 / kChunks;  // rows that a warp loads in one instruction
  static constexpr int kLoads = Bc / kLoadRows;   // loads per pass
  static_assert(D % 8 == 0 && 32 % kChunks == 0,
                "a row is 16 bytes for each of 2, 4, 8, ... lanes");

  // A lane's state for a row of Q: 8 columns of O and a sum, both of the keys that the lane loads,
  // and the maximum of the warp's keys.
  struct Row {
    float max = -1e30f, sum = 0.f, o[8] = {};  // finite: -infinity minus -infinity is NaN
  };

  // Loads Bc rows; from `keys` on it loads the last valid row again.
  __device__ static void load_rows(uint4 (&bits)[kLoads], const half* first, int keys) {
    const int lane_key = threadIdx.x % 32 / kChunks, column = threadIdx.x % kChunks * 8;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int key = min(i * kLoadRows + lane_key, keys - 1);
      bits[i] = *reinterpret_cast<const uint4*>(first + int64_t{key} * D + column);
    }
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
    load_rows(k, K, keys);
    load_rows(v, V, keys);
    float S[kLoads];
    multiply_qk(S, q, k, keys);
    softmax(S, row);
    multiply_pv(row, S, v);
  }

  // Adds the sums of the lanes with other keys, and stores O / sum and the log-sum-exp.
  __device__ static void store_row(half* O, float* LSE, Row& row) {
#pragma unroll
    for (int offset = kChunks; offset < 32; offset *= 2) {
      row.sum += __shfl_xor_sync(0xffffffff, row.sum, offset);
#pragma unroll
      for (int c = 0; c < 8; ++c) row.o[c] += __shfl_xor_sync(0xffffffff, row.o[c], offset);
    }
    const int lane = threadIdx.x % 32;
    const float inverse = row.sum > 0.f ? __fdividef(1.f, row.sum) : 0.f;
    if (LSE != nullptr && lane == 0)  // no key: log 0 is -infinity
      *LSE = row.max * kLn2 + __logf(row.sum);
    if (lane >= kChunks) return;
    half2 packed[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      packed[i] = __floats2half2_rn(row.o[2 * i] * inverse, row.o[2 * i + 1] * inverse);
    *reinterpret_cast<uint4*>(O + lane * 8) = *reinterpret_cast<const uint4*>(packed);
  }

  // Each warp computes a query head.
  __device__ static void run(const fa::DecodeParameters& in) {
    const int entry = blockIdx.z, head = blockIdx.y;
    const int end = in.lengths == nullptr ? in.seq_kv : in.lengths[entry];
    const int64_t q_row = int64_t{entry} * in.rows + head;
    const int64_t kv = q_row / in.group_rows * in.seq_kv * D;  // of the head of K and V

    float q[8];
    unpack(q, *reinterpret_cast<const uint4*>(in.Q + q_row * D + threadIdx.x % kChunks * 8));
#pragma unroll
    for (int c = 0; c < 8; ++c) q[c] *= in.scale_log2;

    Row row;
#pragma unroll 1
    for (int j = 0; j < end; j += Bc) {
      compute_keys(row, q, in.K + kv + int64_t{j} * D, in.V + kv + int64_t{j} * D, end - j);
    }
    store_row(in.O + q_row * D, in.LSE == nullptr ? nullptr : in.LSE + q_row, row);
  }
};

}  // namespace

#define INSTANCES(X)                  \
  X(fa_40_warp_d128, Decode<16, 128>) \
  X(fa_40_warp_d64, Decode<16, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(40_warp, "", sm_80, f16, ragged | lse | grouped | lengths,
        "one new query against a cache: one warp per query head, 16 bytes per lane", kInstances,
        fa::plan_decode_heads);
