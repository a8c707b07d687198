// a0_standard
// Idea: attention as the formula is written, in three kernels: S = scale Q K^T, P = softmax(S),
// O = P V. S is stored in device memory, and P overwrites it: seq_q x seq_kv floats per head.
//
// Tile              64 x 64 of S and 64 x head_dim of O, 256 threads; softmax: one warp per row
// Shared memory     8.5 KB (S), 8.3 KB (O at head_dim 64)
// Expected effect   the start of the ladder. S and P are written three times and read four times,
//                   and their buffer grows with the square of the sequence length.

#include <cfloat>

#include "kernels/fp32/common.cuh"
#include "kernels/fp32/product.cuh"
#include "kernels/planners.h"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/rung.h"

namespace {

// S = scale Q K^T with the causal mask.
template <int D>
struct Scores : fa::StaticKernel<64, 64, 8, D> {
  __device__ static void run(const float* Q, const float* K, const float*, float*, float* S,
                             int seq_q, int seq_kv, float scale, int diagonal) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int first_row = blockIdx.x / (seq_kv / 64) * 64;
    const int first_key = blockIdx.x % (seq_kv / 64) * 64;
    float sum[4][4] = {};
    multiply_rows<D>(sum, Q + (head * seq_q + first_row) * D, K + (head * seq_kv + first_key) * D);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int row = first_row + threadIdx.x / 16 * 4 + i / 4;
      const int key = first_key + threadIdx.x % 16 + i % 4 * 16;
      S[(head * seq_q + row) * seq_kv + key] =
          key <= row + diagonal ? sum[i / 4][i % 4] * scale : -INFINITY;
    }
  }
};

// P = softmax(S) in place, one warp per row; independent of head_dim.
struct Softmax : fa::StaticKernel<4, 0, 4, 0> {
  __device__ static void run(const float*, const float*, const float*, float*, float* S, int seq_q,
                             int seq_kv, float, int) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int lane = threadIdx.x % 32;
    S += (head * seq_q + int64_t{blockIdx.x} * 4 + threadIdx.x / 32) * seq_kv;
    float row_max = -FLT_MAX, row_sum = 0.f;  // not -INFINITY: -INFINITY minus itself is NaN
#pragma unroll 4
    for (int j = lane; j < seq_kv; j += 32) row_max = fmaxf(row_max, S[j]);
    row_max = warp_max(row_max);
#pragma unroll 4
    for (int j = lane; j < seq_kv; j += 32) {
      S[j] = exp_approx(S[j] - row_max);
      row_sum += S[j];
    }
    // The sum is at least e^0 = 1, except in a row without a visible key, where it is 0.
    const float divisor = fmaxf(warp_sum(row_sum), 1.f);
#pragma unroll 4
    for (int j = lane; j < seq_kv; j += 32) S[j] = __fdividef(S[j], divisor);
  }
};

// O = P V.
template <int D>
struct Values : fa::StaticKernel<64, 64, 8, D> {
  __device__ static void run(const float*, const float*, const float* V, float* O_out, float* P,
                             int seq_q, int seq_kv, float, int) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t first_row = head * seq_q + int64_t{blockIdx.x} * 64;
    float O[4][D / 16] = {};
    multiply_columns<D>(O, P + first_row * seq_kv, V + head * seq_kv * D, seq_kv);
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int n = 0; n < D / 16; ++n)
        O_out[(first_row + threadIdx.x / 16 * 4 + r) * D + threadIdx.x % 16 + 16 * n] = O[r][n];
  }
};

}  // namespace

#define INSTANCES(X) FA_HEAD_DIMS(X, fa_a0_standard_scores, Scores)
#define OTHERS(X) FA_HEAD_DIMS(X, fa_a0_standard_values, Values) X(fa_a0_standard_softmax, Softmax)

INSTANCES(FA_FLOAT_ENTRY)
OTHERS(FA_FLOAT_ENTRY)
static const fa::Instance kOthers[] = {OTHERS(FA_INSTANCE)};
static fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& scores,
                           const fa::DeviceDescription&) {
  const std::int64_t rows = problem.seq_q, keys = problem.seq_kv;
  return fa::plan_float_steps(problem, scores.tile,
                              {{scores, rows / 64 * (keys / 64)},
                               {fa::instance_for(kOthers, 0), rows / 4},
                               {fa::instance_for(kOthers, problem.head_dim), rows / 64}},
                              {"S and P", problem.q_rows() * keys * 4});
}
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(a0_standard, "", sm_80, f32, causal,
        "standard attention in three kernels, with S and P in device memory", kInstances, plan);
