// Exercise 15: the gradients of a softmax, without a matrix in memory.
// A thread computes a row of dQ, or a row of dK and of dV. See docs/exercises.md.

#include "kernels/planners.h"
#include "kernels/ptx/math.cuh"

namespace {

constexpr int kHeadDim = 32;
constexpr int kRows = 32;  // queries or keys of a thread block, a thread each

struct Weights {
  float p, dS;  // an element of P and of dS
};

// Of one query and one key: o and dO are the query's rows, lse is its log-sum-exp.
__device__ Weights weights(const float* q, [[maybe_unused]] const float* o, const float* dO,
                           float lse, const float* k, const float* v, float scale) {
  float s = 0.f, dP = 0.f;
  for (int d = 0; d < kHeadDim; ++d) s += q[d] * k[d], dP += dO[d] * v[d];
  const float p = exp_approx(s * scale - lse);
  // Your code: begin. dP = dO V^T is the gradient of P. If P were e^score, the gradient of the
  // scaled score would be p dP. The division by the sum of the row makes it p (dP - delta), where
  // delta is the sum of dO o over the columns.
  const float dS = p * dP;
  // Your code: end.
  return {p, dS};
}

// The first thread blocks of a head have its queries, the others its keys.
struct Gradients : fa::StaticKernel<kRows, kRows, kRows / 32, kHeadDim> {
  __device__ static void copy(float* to, const float* from) {
    for (int d = 0; d < kHeadDim; ++d) to[d] = from[d];
  }

  __device__ static void of_query(const fa::FloatBackwardParameters& in, int64_t head, int row) {
    const int64_t at = head * in.seq_q + row, keys = head * in.seq_kv;
    float q[kHeadDim], o[kHeadDim], dO[kHeadDim], k[kHeadDim], v[kHeadDim], dq[kHeadDim] = {};
    copy(q, in.Q + at * kHeadDim), copy(o, in.O + at * kHeadDim), copy(dO, in.dO + at * kHeadDim);
    const float lse = in.LSE[at];
    for (int64_t j = keys; j < keys + in.seq_kv; ++j) {
      copy(k, in.K + j * kHeadDim), copy(v, in.V + j * kHeadDim);
      [[maybe_unused]] const auto [p, dS] = weights(q, o, dO, lse, k, v, in.scale);
      // Your code: begin. dQ = scale dS K. Add this key's part to dq.
      // Your code: end.
    }
    copy(in.dQ + at * kHeadDim, dq);
  }

  __device__ static void of_key(const fa::FloatBackwardParameters& in, int64_t head, int row) {
    const int64_t at = head * in.seq_kv + row, queries = head * in.seq_q;
    float q[kHeadDim], o[kHeadDim], dO[kHeadDim], k[kHeadDim], v[kHeadDim];
    float dk[kHeadDim] = {}, dv[kHeadDim] = {};
    copy(k, in.K + at * kHeadDim), copy(v, in.V + at * kHeadDim);
    for (int64_t i = queries; i < queries + in.seq_q; ++i) {
      copy(q, in.Q + i * kHeadDim), copy(o, in.O + i * kHeadDim), copy(dO, in.dO + i * kHeadDim);
      [[maybe_unused]] const auto [p, dS] = weights(q, o, dO, in.LSE[i], k, v, in.scale);
      // Your code: begin. dK = scale dS^T Q and dV = P^T dO. Add this query's parts to dk and dv.
      // Your code: end.
    }
    copy(in.dK + at * kHeadDim, dk), copy(in.dV + at * kHeadDim, dv);
  }

  __device__ static void run(const fa::FloatBackwardParameters& in) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int row = blockIdx.x * kRows + threadIdx.x;
    row < in.seq_q ? of_query(in, head, row) : of_key(in, head, row - in.seq_q);
  }
};

}  // namespace

FA_FLOAT_BACKWARD_ENTRY(fa_ex15_gradients, Gradients)

namespace {

const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex15_gradients, Gradients)};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  using enum fa::Tensor;
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  const auto queries = static_cast<std::int32_t>(problem.seq_q);
  const auto keys = static_cast<std::int32_t>(problem.seq_kv);
  const auto scale = static_cast<float>(problem.scale());
  const fa::Argument no_scratch = std::int64_t{0};
  return fa::LaunchPlan{{fa::launch_of(
      instance, {(queries + keys) / kRows, problem.heads, problem.batch},
      {q, k, v, o, lse, d_o, d_q, d_k, d_v, no_scratch, queries, keys, 1, scale, keys})}};
}

}  // namespace

FA_RUNG(ex15_gradients, "", sm_80, f32, backward, "gradients, a thread for each row", kInstances,
        plan);
