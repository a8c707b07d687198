// a0_standard       parent: none
// Idea: attention as its formula reads, three kernels: S = scale Q K^T, P = softmax(S), O = P V.
// S goes to HBM, P takes its place there: seq_q x seq_kv floats for every head.
//
// Tile              64 x 64 of S and 64 x head_dim of O, 256 threads; a warp a row of the softmax
// Shared memory     8.5 KB (S), 8.3 KB (O at head_dim 64)
// Expected effect   where the others start from: S is written three times and read four times, and
//                   the memory it takes grows with the square of the sequence.

#include <cfloat>

#include "kernels/catalogue.h"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"

namespace {

constexpr int kTile = 64;          // rows and keys of a block
constexpr int kSlice = 16;         // depth of the operand slices in shared memory
constexpr int kPitch = kTile + 4;  // spreads the transposed stores; a multiple of 16 bytes
constexpr int kThreads = 256;      // 16 x 16; a thread owns 4 rows and every 16th column
constexpr int kSoftmaxThreads = 128;

// Copies 16 columns of 64 rows, `stride` floats apart, so that a column of them becomes a row.
__device__ void load_transposed(float (&slice)[kSlice][kPitch], const float* rows, int64_t stride) {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 4;
  const float4 x = *reinterpret_cast<const float4*>(rows + row * stride + column);
  slice[column][row] = x.x;
  slice[column + 1][row] = x.y;
  slice[column + 2][row] = x.z;
  slice[column + 3][row] = x.w;
}

// Adds one slice of a product to this thread's 4 x N elements.
template <int N, int Pitch>
__device__ void multiply(float (&sum)[4][N], const float (&a)[kSlice][kPitch],
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

template <int D>
__device__ void scores(const float* Q, const float* K, float* S, int seq_q, int seq_kv, float scale,
                       int diagonal) {
  __shared__ __align__(16) float q_slice[kSlice][kPitch], k_slice[kSlice][kPitch];
  const int key_tiles = seq_kv / kTile;
  const int first_row = blockIdx.x / key_tiles * kTile, first_key = blockIdx.x % key_tiles * kTile;
  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  Q += (head * seq_q + first_row) * D;
  K += (head * seq_kv + first_key) * D;

  float sum[4][kTile / 16] = {};
  for (int d = 0; d < D; d += kSlice) {
    load_transposed(q_slice, Q + d, D);
    load_transposed(k_slice, K + d, D);
    __syncthreads();  // the slices have landed
    multiply(sum, q_slice, k_slice);
    __syncthreads();  // nobody reads them any more
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = first_row + threadIdx.x / 16 * 4 + r;
#pragma unroll
    for (int n = 0; n < kTile / 16; ++n) {
      const int key = first_key + threadIdx.x % 16 + 16 * n;
      S[(head * seq_q + row) * seq_kv + key] =
          key <= row + diagonal ? sum[r][n] * scale : -INFINITY;
    }
  }
}

template <int D>
__device__ void values(const float* P, const float* V, float* O, int seq_q, int seq_kv) {
  __shared__ __align__(16) float p_slice[kSlice][kPitch], v_slice[kSlice][D];
  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  const int64_t first_row = head * seq_q + int64_t{blockIdx.x} * kTile;
  P += first_row * seq_kv;
  V += head * seq_kv * D;

  float sum[4][D / 16] = {};
  for (int j = 0; j < seq_kv; j += kSlice) {
    load_transposed(p_slice, P + j, seq_kv);
#pragma unroll
    for (int i = threadIdx.x; i < kSlice * D; i += kThreads)
      v_slice[i / D][i % D] = V[int64_t{j} * D + i];
    __syncthreads();  // the slices have landed
    multiply(sum, p_slice, v_slice);
    __syncthreads();  // nobody reads them any more
  }
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int n = 0; n < D / 16; ++n)
      O[(first_row + threadIdx.x / 16 * 4 + r) * D + threadIdx.x % 16 + 16 * n] = sum[r][n];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kSoftmaxThreads)
    fa_a0_standard_softmax(float* S, int seq_q, int seq_kv) {
  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  const int lane = threadIdx.x % 32;
  S += (head * seq_q + int64_t{blockIdx.x} * (kSoftmaxThreads / 32) + threadIdx.x / 32) * seq_kv;

  float row_max = -FLT_MAX;  // not -INFINITY: -INFINITY minus itself is NaN
#pragma unroll 4
  for (int j = lane; j < seq_kv; j += 32) row_max = fmaxf(row_max, S[j]);
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    row_max = fmaxf(row_max, __shfl_xor_sync(0xffffffff, row_max, step));

  float sum = 0.f;
#pragma unroll 4
  for (int j = lane; j < seq_kv; j += 32) {
    const float p = exp_approx(S[j] - row_max);
    sum += p;
    S[j] = p;
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);

  // The largest score adds e^0; only a row without a visible key has a sum below 1: 0.
  const float divisor = fmaxf(sum, 1.f);
#pragma unroll 4
  for (int j = lane; j < seq_kv; j += 32) S[j] = __fdividef(S[j], divisor);
}

#define ENTRY(name, D)                                                                      \
  extern "C" __global__ void __launch_bounds__(kThreads)                                    \
      name##_scores_d##D(const float* Q, const float* K, float* S, int seq_q, int seq_kv,   \
                         float scale, int diagonal) {                                       \
    scores<D>(Q, K, S, seq_q, seq_kv, scale, diagonal);                                     \
  }                                                                                         \
  extern "C" __global__ void __launch_bounds__(kThreads)                                    \
      name##_values_d##D(const float* P, const float* V, float* O, int seq_q, int seq_kv) { \
    values<D>(P, V, O, seq_q, seq_kv);                                                      \
  }
#define INSTANCE(name, D)                                                      \
  {#name "_scores_d" #D, reinterpret_cast<const void*>(name##_scores_d##D), D, \
   fa::Tile{kTile, kTile, kThreads / 32}, 0},
#define VALUES(name, D) \
  {D, #name "_values_d" #D, reinterpret_cast<const void*>(name##_values_d##D)},

#define INSTANCES(X)     \
  X(fa_a0_standard, 128) \
  X(fa_a0_standard, 64)  \
  X(fa_a0_standard, 32)

INSTANCES(ENTRY)

namespace {

const fa::Instance kInstances[] = {INSTANCES(INSTANCE)};

/// The second product of each instance.
struct ValuesEntry {
  int head_dim;
  const char* entry;
  const void* kernel;
};
const ValuesEntry kValues[] = {INSTANCES(VALUES)};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  const std::int64_t query_tiles = problem.seq_q / kTile, key_tiles = problem.seq_kv / kTile;
  const auto seq_q = static_cast<std::int32_t>(problem.seq_q);
  const auto seq_kv = static_cast<std::int32_t>(problem.seq_kv);
  // The last key that query 0 sees; without a mask, one past the end.
  const std::int32_t diagonal = problem.causal ? seq_kv - seq_q : seq_kv;

  fa::Launch scores;
  scores.entry = instance.entry;
  scores.kernel = instance.kernel;
  scores.grid = {query_tiles * key_tiles, problem.heads, problem.batch};
  scores.block = kThreads;
  scores.arguments = {fa::Tensor::q, fa::Tensor::k, fa::ScratchRef{0},
                      seq_q,         seq_kv,        static_cast<float>(problem.scale()),
                      diagonal};
  fa::Launch softmax;
  softmax.entry = "fa_a0_standard_softmax";
  softmax.kernel = reinterpret_cast<const void*>(fa_a0_standard_softmax);
  softmax.grid = {problem.seq_q / (kSoftmaxThreads / 32), problem.heads, problem.batch};
  softmax.block = kSoftmaxThreads;
  softmax.arguments = {fa::ScratchRef{0}, seq_q, seq_kv};

  fa::Launch values;
  for (const ValuesEntry& each : kValues) {
    if (each.head_dim != instance.head_dim) continue;
    values.entry = each.entry;
    values.kernel = each.kernel;
  }
  values.grid = {query_tiles, problem.heads, problem.batch};
  values.block = kThreads;
  values.arguments = {fa::ScratchRef{0}, fa::Tensor::v, fa::Tensor::o, seq_q, seq_kv};

  const std::int64_t elements = problem.q_rows() * problem.seq_kv;
  return fa::LaunchPlan{{scores, softmax, values}, {{"S and P", elements * 4}}};
}

}  // namespace

namespace fa {
extern const RungKernels kernels_a0_standard;
const RungKernels kernels_a0_standard{kInstances, plan};
}  // namespace fa
