// Exercise 17: query heads that share a head of K and V.
// A thread computes a row of dQ, or a row of dK and of dV. See docs/exercises.md.

#include "kernels/planners.h"
#include "kernels/ptx/math.cuh"

namespace {

constexpr int kHeadDim = 32;
constexpr int kRows = 32;  // queries or keys of a thread block, a thread each

__device__ void copy(float* to, const float* from) {
  for (int d = 0; d < kHeadDim; ++d) to[d] = from[d];
}

__device__ float dot(const float* a, const float* b) {
  float sum = 0.f;
  for (int d = 0; d < kHeadDim; ++d) sum += a[d] * b[d];
  return sum;
}

// The sum of dO O over the columns of each query, into scratch memory.
struct Deltas : fa::StaticKernel<kRows, kRows, kRows / 32, kHeadDim> {
  __device__ static void run(const fa::FloatBackwardParameters& in) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t row = head * in.seq_q + blockIdx.x * kRows + threadIdx.x;
    in.scratch[row] = dot(in.dO + row * kHeadDim, in.O + row * kHeadDim);
  }
};

// The first thread blocks of a query head have its queries, the others the keys that it reads:
// those of head / in.group.
struct Gradients : fa::StaticKernel<kRows, kRows, kRows / 32, kHeadDim> {
  __device__ static void of_query(const fa::FloatBackwardParameters& in, int64_t head, int row) {
    const int64_t query = head * in.seq_q + row, keys = head / in.group * in.seq_kv;
    float q[kHeadDim], dO[kHeadDim], dq[kHeadDim] = {};
    copy(q, in.Q + query * kHeadDim), copy(dO, in.dO + query * kHeadDim);
    const float lse = in.LSE[query], delta = in.scratch[query];
    for (int64_t j = keys; j < keys + in.seq_kv; ++j) {
      const float *k = in.K + j * kHeadDim, *v = in.V + j * kHeadDim;
      const float dS = exp_approx(dot(q, k) * in.scale - lse) * (dot(dO, v) - delta);
      for (int d = 0; d < kHeadDim; ++d) dq[d] += in.scale * dS * k[d];
    }
    copy(in.dQ + query * kHeadDim, dq);
  }

  __device__ static void of_key(const fa::FloatBackwardParameters& in, int64_t head, int row) {
    const int64_t at = (head / in.group * in.seq_kv + row) * kHeadDim;
    float k[kHeadDim], v[kHeadDim], dk[kHeadDim] = {}, dv[kHeadDim] = {};
    copy(k, in.K + at), copy(v, in.V + at);
    const auto add_head = [&](int64_t query_head) {
      const int64_t queries = query_head * in.seq_q;
      for (int64_t i = queries; i < queries + in.seq_q; ++i) {
        const float *q = in.Q + i * kHeadDim, *dO = in.dO + i * kHeadDim;
        const float p = exp_approx(dot(q, k) * in.scale - in.LSE[i]);
        const float dS = p * (dot(dO, v) - in.scratch[i]);
        for (int d = 0; d < kHeadDim; ++d) dk[d] += in.scale * dS * q[d], dv[d] += p * dO[d];
      }
    };
    // Your code: begin. dK and dV are sums over the in.group query heads that share a head of K
    // and V. As shipped each of these heads stores its own part to the same place.
    add_head(head);
    copy(in.dK + at, dk), copy(in.dV + at, dv);
    // Your code: end.
  }

  __device__ static void run(const fa::FloatBackwardParameters& in) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int row = blockIdx.x * kRows + threadIdx.x;
    row < in.seq_q ? of_query(in, head, row) : of_key(in, head, row - in.seq_q);
  }
};

}  // namespace

FA_FLOAT_BACKWARD_ENTRY(fa_ex17_groups, Gradients)
FA_FLOAT_BACKWARD_ENTRY(fa_ex17_groups_deltas, Deltas)

namespace {

const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex17_groups, Gradients)};
const fa::Instance kDeltas[] = {FA_INSTANCE(fa_ex17_groups_deltas, Deltas)};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  return fa::plan_float_steps(
      problem, instance.tile,
      {{kDeltas[0], problem.seq_q / kRows}, {instance, (problem.seq_q + problem.seq_kv) / kRows}},
      {"deltas", problem.q_rows() * 4});
}

}  // namespace

FA_RUNG(ex17_groups, "", sm_80, f32, grouped | backward, "gradients of shared heads", kInstances,
        plan);
