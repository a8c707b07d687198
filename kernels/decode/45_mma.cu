// 45_mma
// Idea: O = V^T P on the tensor cores too. O is transposed as S is, its columns are the rows of an
//       mma, and movmatrix turns P into the second operand.
//
// Tile              up to 8 queries of a group x 64 keys, 4 warps
// Shared memory     3 stages of K 16 KB + V 16 KB at head_dim 128
// Expected effect   15 instructions a key for all heads: the loads alone decide.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/movmatrix.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/rung.h"

namespace {

// Behind the parts of O in memory: their log-sum-exps.
template <int D>
__device__ float* lse_parts(const fa::DecodeParameters& in) {
  return in.parts + int64_t{gridDim.z} * in.heads * in.splits * D;
}

template <int Bc, int D>
struct Decode : fa::StaticKernel<8, Bc, Bc / 16, D> {
  static constexpr int kWarps = Bc / 16, kHeads = 8;  // rows and columns of an mma
  static constexpr int kStages = 3;
  static constexpr int kTileBytes = Bc * D * 2;
  static constexpr int kPitch = D + 4;          // of O in shared memory, against conflicts
  static constexpr float kSlack = 8;            // P is at most 2^kSlack
  static constexpr int kLanes = D / 4;          // that merge a head, 16 bytes each
  static constexpr int kMerged = 9 * D / 32;    // parts that are on their way at a time
  static constexpr int kBlocksPerSm = 256 / D;  // those that shared memory has room for
  static constexpr std::size_t kSharedBytes = kStages * 2 * kTileBytes;
  static constexpr int kChunks = D / 8;                    // 16-byte chunks of a row
  static constexpr int kCopyRows = kWarps * 32 / kChunks;  // rows that the block copies at a time
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");
  static_assert(kWarps * kHeads * (kPitch + 2) * 4 <= kSharedBytes, "the warps' O fit in the ring");

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

  // Byte offset of a 16-byte chunk in a tile. XOR with the row spreads the eight rows of an
  // ldmatrix phase over all 32 banks.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(row * D * 2 + ((chunk ^ (row & 7)) << 4));
  }

  // Address of (row, chunk0 + chunk) from the address of (row, chunk0), for an even chunk.
  __device__ static uint32_t shift(uint32_t address, int chunk) {
    return (address ^ ((chunk & 7) << 4)) + (chunk & ~7) * 16;
  }

  // Starts the copy of a tile; its rows from `rows` on become zeros.
  __device__ static void load_tile(uint32_t tile, const half* global, int rows) {
    const int chunk = threadIdx.x % kChunks;
#pragma unroll
    for (int row = threadIdx.x / kChunks, i = 0; i < Bc / kCopyRows; ++i, row += kCopyRows)
      cp_async_16(tile + offset(row, chunk), global + (row < rows ? row * D + chunk * 8 : 0),
                  row < rows ? 16 : 0);
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
  __device__ static void multiply_qk(float (&S)[4], const uint32_t (&q)[D / 16][2], uint32_t k) {
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      uint32_t a[4];
      ldmatrix_x4(a, shift(k, 2 * d));
      mma_m16n8k16(S, a, q[d][0], q[d][1]);
    }
  }

  // Hides the keys that a query does not see.
  __device__ static void mask(float (&S)[4], int rows) {
    const int key = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (key + i / 2 * 8 >= rows) S[i] = -INFINITY;
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
  __device__ static void multiply_pv(State& state, const uint32_t (&P)[2], uint32_t v) {
#pragma unroll
    for (int m = 0; m < D / 16; ++m) {
      uint32_t a[4];
      ldmatrix_x4_trans(a, shift(v, 2 * m));
      mma_m16n8k16(state.o[m], a, P[0], P[1]);
    }
  }

  // What 16 keys add to the state; those from `rows` on are hidden.
  __device__ static void compute_keys(State& state, const uint32_t (&q)[D / 16][2],
                                      const fa::DecodeParameters& in, uint32_t k, uint32_t v,
                                      int rows) {
    float S[4] = {};
    uint32_t P[2];
    multiply_qk(S, q, k);
    if (rows < 16) mask(S, rows);
    softmax(P, S, state, in.scale_log2);
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

  // A warp: adds up the states of a query head, and writes O / sum and the base-2 log-sum-exp.
  __device__ static void store_part(float* O, float* LSE, const float* states,
                                    const float* statistics, int head) {
    const int lane = threadIdx.x % 32;
    float max = -1e30f, sum = 0.f, weight[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, statistics[(w * kHeads + head) * 2]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      weight[w] = ex2_approx(statistics[(w * kHeads + head) * 2] - max);
      sum += weight[w] * statistics[(w * kHeads + head) * 2 + 1];
    }
    const float inverse = sum > 0.f ? __fdividef(1.f, sum) : 0.f;
    if (lane == 0) *LSE = max + __log2f(sum);  // no key: log 0 is -infinity
#pragma unroll
    for (int c = lane; c < D; c += 32) {
      float o = 0.f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w)
        o = fmaf(weight[w], states[(w * kHeads + head) * kPitch + c], o);
      O[c] = o * inverse;
    }
  }

  // The parts of a query head become one: a part weighs 2^(its log-sum-exp).
  __device__ static void merge_parts(const fa::DecodeParameters& in, int64_t query) {
    const auto* O = reinterpret_cast<const Columns*>(in.parts + query * in.splits * D);
    const float* LSE = lse_parts<D>(in) + query * in.splits;
    const int lane = threadIdx.x % kLanes;
    Columns o;
    float max = -1e30f, sum = 0.f;
#pragma unroll 1
    for (int first = 0; first < in.splits; first += kMerged) {
      Columns part[kMerged];
      float weight[kMerged], alpha = max;
#pragma unroll
      for (int i = 0; i < kMerged; ++i) {
        const int from = min(first + i, in.splits - 1);
        part[i] = O[from * kLanes + lane];
        weight[i] = first + i > from ? -INFINITY : LSE[from];
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

  // The thread block's part of the keys of a head of K and V; each warp computes 16 of a tile.
  __device__ static void run(const fa::DecodeParameters& in) {
    extern __shared__ __align__(128) float shared[];
    const uint32_t ring = shared_address(shared);
    const int entry = blockIdx.z, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int length = in.lengths == nullptr ? in.seq_kv : in.lengths[entry];
    const int64_t tiles = (length + Bc - 1) / Bc;
    const int begin = static_cast<int>(tiles * blockIdx.x / in.splits) * Bc;
    const int keys = min(length, static_cast<int>(tiles * (blockIdx.x + 1) / in.splits) * Bc);
    const int64_t query = int64_t{entry} * in.heads + blockIdx.y * in.group;  // the first
    const int64_t kv = (int64_t{entry} * gridDim.y + blockIdx.y) * in.seq_kv * D;

    // Starts the copy of the tile at key j to its stage; none where there is no such tile.
    const auto load_step = [&](int j) {
      const uint32_t stage = ring + (j - begin) / Bc % kStages * 2 * kTileBytes;
      if (j < keys) load_tile(stage, in.K + kv + int64_t{j} * D, keys - j);
      if (j < keys) load_tile(stage + kTileBytes, in.V + kv + int64_t{j} * D, keys - j);
      cp_async_commit();
    };
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) load_step(begin + i * Bc);
    uint32_t q[D / 16][2];
    load_query(q, in.Q + query * D, in.group);

    // This lane's ldmatrix addresses in a stage: K as it lies, V transposed.
    const uint32_t k_lane = offset(warp * 16 + lane % 16, lane / 16);
    const uint32_t v_lane = kTileBytes + offset(warp * 16 + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    State state;
#pragma unroll 1
    for (int j = begin; j < keys; j += Bc) {
      cp_async_wait_group<kStages - 2>();
      __syncthreads();  // the tile has arrived; the last read of the one before
      load_step(j + (kStages - 1) * Bc);
      const uint32_t stage = ring + (j - begin) / Bc % kStages * 2 * kTileBytes;
      compute_keys(state, q, in, stage + k_lane, stage + v_lane, keys - j - warp * 16);
    }
    __syncthreads();  // the last read of the ring
    float* statistics = shared + kWarps * kHeads * kPitch;
    share_state(shared + warp * kHeads * kPitch, statistics + warp * kHeads * 2, state);
    __syncthreads();  // all states are there
    for (int head = warp; head < in.group; head += kWarps) {
      const int64_t part = (query + head) * in.splits + blockIdx.x;
      store_part(in.parts + part * D, lse_parts<D>(in) + part, shared, statistics, head);
    }
    __threadfence();  // the part is visible before the count says so
    __syncthreads();
    int* last = reinterpret_cast<int*>(shared);
    if (threadIdx.x == 0)  // counts to splits - 1, then to 0 again
      *last = atomicInc(in.counter + entry * gridDim.y + blockIdx.y, in.splits - 1);
    __syncthreads();
    if (*last != in.splits - 1) return;
    __threadfence();  // and no part is read before the count
    for (int head = threadIdx.x / kLanes; head < in.group; head += kWarps * 32 / kLanes)
      merge_parts(in, query + head);
  }
};

}  // namespace

#define INSTANCES(X)                 \
  X(fa_45_mma_d128, Decode<64, 128>) \
  X(fa_45_mma_d64, Decode<64, 64>)

INSTANCES(FA_DECODE_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(45_mma, "44", sm_80, f16, ragged | lse | grouped | lengths,
        "O = V^T P on the tensor cores too: O is transposed as S is, and movmatrix turns P into "
        "the second operand",
        kInstances, fa::plan_decode_counted,
        .why_large =
            "O and P are transposed, so that the state and the softmax move to the lanes that have "
            "the scores.");
