// 60_products
// Idea: the gradients as the formulas are written, five matrix products in three kernels. The
// first recomputes P = exp(scale Q K^T - LSE) and dS = P (dO V^T - delta); the second computes
// dQ = scale dS K, the third dV = P^T dO and dK = scale dS^T Q. P and dS are stored in device
// memory: 2 x seq_q x seq_kv floats per head.
//
// Tile              64 x 64 of P and dS, 64 x head_dim of a gradient, 256 threads
// Shared memory     8.8 KB (P and dS), 12.3 KB (gradients at head_dim 128)
// Expected effect   the start of the backward ladder: 2.5 times the arithmetic of a0. P and dS are
//                   written once; P is read once, dS twice.

#include "kernels/fp32/common.cuh"
#include "kernels/fp32/product.cuh"
#include "kernels/planners.h"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/rung.h"

namespace {

// The number of floats of P, or of dS, of all heads.
__device__ int64_t weight_count(const fa::FloatBackwardParameters& in) {
  return int64_t{gridDim.z} * gridDim.y * in.seq_q * in.seq_kv;
}

// P and dS.
template <int D>
struct Weights : fa::StaticKernel<64, 64, 8, D> {
  // delta = the sum over the columns of dO O. Each of the eight warps has every eighth row.
  __device__ static void row_deltas(float (&delta)[64], const float* O, const float* dO) {
    const int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < 64; row += 8) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < D; i += 32) sum += O[row * D + i + lane] * dO[row * D + i + lane];
      sum = warp_sum(sum);
      if (lane == 0) delta[row] = sum;
    }
  }

  __device__ static void run(const fa::FloatBackwardParameters& in) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int first_row = blockIdx.x / (in.seq_kv / 64) * 64;
    const int first_key = blockIdx.x % (in.seq_kv / 64) * 64;
    const int64_t rows = head * in.seq_q + first_row;
    const int64_t keys = head / in.group * in.seq_kv + first_key;
    __shared__ float delta[64];
    row_deltas(delta, in.O + rows * D, in.dO + rows * D);
    float S[4][4] = {}, dP[4][4] = {};
    multiply_rows<D>(S, in.Q + rows * D, in.K + keys * D);
    multiply_rows<D>(dP, in.dO + rows * D, in.V + keys * D);
    float* const P = in.scratch;
    float* const dS = P + weight_count(in);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int row = threadIdx.x / 16 * 4 + i / 4, key = threadIdx.x % 16 + i % 4 * 16;
      // P is 0 for hidden keys. A row that sees none has LSE -INFINITY, which would make P
      // infinite.
      const bool visible = first_key + key <= first_row + row + in.diagonal;
      const float score = S[i / 4][i % 4] * in.scale - in.LSE[rows + row];
      const float p = visible ? exp_approx(score) : 0.f;
      const int64_t at = (rows + row) * in.seq_kv + first_key + key;
      P[at] = p;
      dS[at] = p * (dP[i / 4][i % 4] - delta[row]);
    }
  }
};

// Stores a tile of 64 rows of a gradient.
template <int D>
__device__ void store_tile(float* rows, const float (&sum)[4][D / 16], float factor) {
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int n = 0; n < D / 16; ++n)
      rows[(threadIdx.x / 16 * 4 + r) * D + threadIdx.x % 16 + 16 * n] = sum[r][n] * factor;
}

// dQ = scale dS K.
template <int D>
struct Queries : fa::StaticKernel<64, 64, 8, D> {
  __device__ static void run(const fa::FloatBackwardParameters& in) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t rows = head * in.seq_q + int64_t{blockIdx.x} * 64;
    const float* dS = in.scratch + weight_count(in);
    float dQ[4][D / 16] = {};
    multiply_columns<D>(dQ, dS + rows * in.seq_kv, in.K + head / in.group * in.seq_kv * D,
                        in.seq_kv);
    store_tile<D>(in.dQ + rows * D, dQ, in.scale);
  }
};

// dV = P^T dO and dK = scale dS^T Q, summed over the query heads that share them. The grid has all
// query heads; the first of each group computes.
template <int D>
struct Keys : fa::StaticKernel<64, 64, 8, D> {
  __device__ static void run(const fa::FloatBackwardParameters& in) {
    const int64_t first_head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    if (first_head % in.group != 0) return;
    const float* P = in.scratch;
    const float* dS = P + weight_count(in);
    float dV[4][D / 16] = {}, dK[4][D / 16] = {};
    for (int64_t head = first_head; head < first_head + in.group; ++head) {
      const int64_t rows = head * in.seq_q, tile = rows * in.seq_kv + int64_t{blockIdx.x} * 64;
      multiply_transposed<D>(dV, P + tile, in.seq_kv, in.dO + rows * D, in.seq_q);
      multiply_transposed<D>(dK, dS + tile, in.seq_kv, in.Q + rows * D, in.seq_q);
    }
    const int64_t keys = first_head / in.group * in.seq_kv + int64_t{blockIdx.x} * 64;
    store_tile<D>(in.dV + keys * D, dV, 1);
    store_tile<D>(in.dK + keys * D, dK, in.scale);
  }
};

}  // namespace

#define INSTANCES(X) FA_HEAD_DIMS(X, fa_60_products_weights, Weights)
#define OTHERS(X)                                  \
  FA_HEAD_DIMS(X, fa_60_products_queries, Queries) \
  FA_HEAD_DIMS(X, fa_60_products_keys, Keys)

INSTANCES(FA_FLOAT_BACKWARD_ENTRY)
OTHERS(FA_FLOAT_BACKWARD_ENTRY)
static const fa::Instance kOthers[] = {OTHERS(FA_INSTANCE)};
static fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& weights,
                           const fa::DeviceDescription&) {
  return fa::plan_float_steps(
      problem, weights.tile,
      {{weights, problem.seq_q / 64 * (problem.seq_kv / 64)},
       {fa::instance_for(std::span(kOthers).first(3), problem.head_dim), problem.seq_q / 64},
       {fa::instance_for(std::span(kOthers).last(3), problem.head_dim), problem.seq_kv / 64}},
      {"P and dS", 2 * problem.q_rows() * problem.seq_kv * 4});
}
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(60_products, "a0", sm_80, f32, causal | grouped | backward,
        "gradients in three kernels, with P and dS in device memory", kInstances, plan,
        .why_large = "another pass: five products in place of two, four of them new.");
