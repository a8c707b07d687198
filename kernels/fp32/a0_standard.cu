// a0_standard       parent: none
// Idea: attention as its formula reads, three kernels: S = scale Q K^T, P = softmax(S), O = P V.
// S goes to HBM, P replaces it there: seq_q x seq_kv floats for every head.
//
// Tile              64 x 64 of S and 64 x head_dim of O, 256 threads; the softmax a row a warp
// Shared memory     8.5 KB (S), 8.3 KB (O at head_dim 64)
// Expected effect   the start of the ladder: S is written three times and read four times, and its
//                   memory grows with the square of the sequence.

#include <cfloat>

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

constexpr int kSlice = 16;       // depth of the operand slices in shared memory
constexpr int kPitch = 64 + 4;   // spreads the transposed stores; a multiple of 16 bytes
constexpr int kSoftmaxRows = 4;  // of a thread block

// A block of 16 x 16 threads; a thread computes 4 rows and every 16th column.
template <int D>
struct Product {
  static constexpr fa::Tile kTile{64, 64, 8};
  static constexpr int kHeadDim = D;
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerSm = 0;
  static constexpr std::size_t kSharedBytes = 0;

  // Copies 16 columns of 64 rows, `stride` floats apart, so that a column of them becomes a row.
  __device__ static void load_transposed(float (&slice)[kSlice][kPitch], const float* rows,
                                         int64_t stride) {
    const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 4;
    const float4 x = *reinterpret_cast<const float4*>(rows + row * stride + column);
    slice[column][row] = x.x;
    slice[column + 1][row] = x.y;
    slice[column + 2][row] = x.z;
    slice[column + 3][row] = x.w;
  }

  // Adds one slice of a product to this thread's 4 x N elements.
  template <int N, int Pitch>
  __device__ static void multiply(float (&sum)[4][N], const float (&a)[kSlice][kPitch],
                                  const float (&b)[kSlice][Pitch]) {
#pragma unroll
    for (int k = 0; k < kSlice; ++k) {
      const float4 x = load_shared_v4(&a[k][threadIdx.x / 16 * 4]);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const float y = b[k][threadIdx.x % 16 + 16 * n];
        sum[0][n] += x.x * y;
        sum[1][n] += x.y * y;
        sum[2][n] += x.z * y;
        sum[3][n] += x.w * y;
      }
    }
  }
};

// S = scale Q K^T, masked.
template <int D>
struct Scores : Product<D> {
  __device__ static void run(const float* Q, const float* K, const float*, float*, float* S,
                             int seq_q, int seq_kv, float scale, int diagonal) {
    __shared__ __align__(16) float q_slice[kSlice][kPitch], k_slice[kSlice][kPitch];
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int key_tiles = seq_kv / 64;
    const int first_row = blockIdx.x / key_tiles * 64, first_key = blockIdx.x % key_tiles * 64;
    Q += (head * seq_q + first_row) * D;
    K += (head * seq_kv + first_key) * D;

    float sum[4][4] = {};
    for (int d = 0; d < D; d += kSlice) {
      Product<D>::load_transposed(q_slice, Q + d, D);
      Product<D>::load_transposed(k_slice, K + d, D);
      __syncthreads();  // the slices have arrived
      Product<D>::multiply(sum, q_slice, k_slice);
      __syncthreads();  // the last read of the slices
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int row = first_row + threadIdx.x / 16 * 4 + i / 4;
      const int key = first_key + threadIdx.x % 16 + i % 4 * 16;
      S[(head * seq_q + row) * seq_kv + key] =
          key <= row + diagonal ? sum[i / 4][i % 4] * scale : -INFINITY;
    }
  }
};

// P = softmax(S), in place.
struct Softmax {
  static constexpr fa::Tile kTile{kSoftmaxRows, 0, kSoftmaxRows};
  static constexpr int kHeadDim = 0;  // any
  static constexpr int kThreads = kSoftmaxRows * 32;
  static constexpr int kBlocksPerSm = 0;
  static constexpr std::size_t kSharedBytes = 0;

  __device__ static void run(const float*, const float*, const float*, float*, float* S, int seq_q,
                             int seq_kv, float, int) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int lane = threadIdx.x % 32;
    S += (head * seq_q + int64_t{blockIdx.x} * kSoftmaxRows + threadIdx.x / 32) * seq_kv;

    float row_max = -FLT_MAX;  // not -INFINITY: -INFINITY minus itself is NaN
#pragma unroll 4
    for (int j = lane; j < seq_kv; j += 32) row_max = fmaxf(row_max, S[j]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      row_max = fmaxf(row_max, __shfl_xor_sync(0xffffffff, row_max, step));

    float row_sum = 0.f;
#pragma unroll 4
    for (int j = lane; j < seq_kv; j += 32) {
      const float p = exp_approx(S[j] - row_max);
      row_sum += p;
      S[j] = p;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) row_sum += __shfl_xor_sync(0xffffffff, row_sum, step);

    // The largest score adds e^0; only a row without a visible key has a sum below 1: 0.
    const float divisor = fmaxf(row_sum, 1.f);
#pragma unroll 4
    for (int j = lane; j < seq_kv; j += 32) S[j] = __fdividef(S[j], divisor);
  }
};

// O = P V.
template <int D>
struct Values : Product<D> {
  __device__ static void run(const float*, const float*, const float* V, float* O, float* P,
                             int seq_q, int seq_kv, float, int) {
    __shared__ __align__(16) float p_slice[kSlice][kPitch], v_slice[kSlice][D];
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t first_row = head * seq_q + int64_t{blockIdx.x} * 64;
    P += first_row * seq_kv;
    V += head * seq_kv * D;

    float sum[4][D / 16] = {};
    for (int j = 0; j < seq_kv; j += kSlice) {
      Product<D>::load_transposed(p_slice, P + j, seq_kv);
#pragma unroll
      for (int i = threadIdx.x; i < kSlice * D; i += Product<D>::kThreads)
        v_slice[i / D][i % D] = V[int64_t{j} * D + i];
      __syncthreads();  // the slices have arrived
      Product<D>::multiply(sum, p_slice, v_slice);
      __syncthreads();  // the last read of the slices
    }
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int n = 0; n < D / 16; ++n)
        O[(first_row + threadIdx.x / 16 * 4 + r) * D + threadIdx.x % 16 + 16 * n] = sum[r][n];
  }
};

}  // namespace

#define STEPS(X, step, Class)                 \
  X(fa_a0_standard_##step##_d128, Class<128>) \
  X(fa_a0_standard_##step##_d64, Class<64>) X(fa_a0_standard_##step##_d32, Class<32>)
#define INSTANCES(X) STEPS(X, scores, Scores)
#define OTHERS(X) STEPS(X, values, Values) X(fa_a0_standard_softmax, Softmax)

INSTANCES(FA_FLOAT_ENTRY)
OTHERS(FA_FLOAT_ENTRY)
static const fa::Instance kOthers[] = {OTHERS(FA_INSTANCE)};
static fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& scores,
                           const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, scores.tile)) return *refused;
  const fa::Instance &softmax = fa::instance_for(kOthers, 0),
                     &values = fa::instance_for(kOthers, scores.head_dim);
  return fa::float_steps(problem,
                         {{scores, problem.seq_q / 64 * (problem.seq_kv / 64)},
                          {softmax, problem.seq_q / kSoftmaxRows},
                          {values, problem.seq_q / 64}},
                         {"S and P", problem.q_rows() * problem.seq_kv * 4});
}
FA_RUNG(a0_standard, INSTANCES, plan);
