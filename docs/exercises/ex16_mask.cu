// Exercise 16: the causal mask, seen from a query and from a key.
// A thread computes a row of dQ, or a row of dK and of dV. See docs/exercises.md.

#include "kernels/planners.h"
#include "kernels/ptx/math.cuh"

namespace {

constexpr int kHeadDim = 32;
constexpr int kRows = 32;  // queries or keys of a thread block, a thread each

struct Weights {
  float p, dS;  // an element of P, and of dS times scale
};

// Of one query and one key: o and dO are the query's rows, lse is its log-sum-exp.
__device__ Weights weights(const float* q, const float* o, const float* dO, float lse,
                           const float* k, const float* v, float scale) {
  float s = 0.f, dP = 0.f, delta = 0.f;
  for (int d = 0; d < kHeadDim; ++d) s += q[d] * k[d], dP += dO[d] * v[d], delta += dO[d] * o[d];
  const float p = exp_approx(s * scale - lse);
  return {p, scale * p * (dP - delta)};
}

// The first thread blocks of a head have its queries, the others its keys. Query i sees key j when
// j <= i + diagonal; without a mask, diagonal is seq_kv. A row that sees no key has an LSE of
// -INFINITY, so its P would be infinite, and its row of dQ is 0.
struct Gradients : fa::StaticKernel<kRows, kRows, kRows / 32, kHeadDim> {
  __device__ static void copy(float* to, const float* from) {
    for (int d = 0; d < kHeadDim; ++d) to[d] = from[d];
  }

  __device__ static void of_query(const fa::FloatBackwardParameters& in, int64_t head, int row) {
    const int64_t at = (head * in.seq_q + row) * kHeadDim, keys = head * in.seq_kv * kHeadDim;
    float q[kHeadDim], o[kHeadDim], dO[kHeadDim], dq[kHeadDim] = {};
    copy(q, in.Q + at), copy(o, in.O + at), copy(dO, in.dO + at);
    const float lse = in.LSE[head * in.seq_q + row];
    const auto add_key = [&](int j) {
      const float *k = in.K + keys + j * kHeadDim, *v = in.V + keys + j * kHeadDim;
      const Weights of = weights(q, o, dO, lse, k, v, in.scale);
      for (int d = 0; d < kHeadDim; ++d) dq[d] += of.dS * k[d];
    };
    // Your code: begin. Add the keys that query `row` sees. As shipped all are added.
    for (int j = 0; j < in.seq_kv; ++j) add_key(j);
    // Your code: end.
    copy(in.dQ + at, dq);
  }

  __device__ static void of_key(const fa::FloatBackwardParameters& in, int64_t head, int row) {
    const int64_t at = (head * in.seq_kv + row) * kHeadDim, queries = head * in.seq_q;
    float k[kHeadDim], v[kHeadDim], dk[kHeadDim] = {}, dv[kHeadDim] = {};
    copy(k, in.K + at), copy(v, in.V + at);
    const auto add_query = [&](int i) {
      const int64_t from = (queries + i) * kHeadDim;
      const float *q = in.Q + from, *o = in.O + from, *dO = in.dO + from;
      const Weights of = weights(q, o, dO, in.LSE[queries + i], k, v, in.scale);
      for (int d = 0; d < kHeadDim; ++d) dk[d] += of.dS * q[d], dv[d] += of.p * dO[d];
    };
    // Your code: begin. Add the queries that see key `row`. Key row - threadIdx.x is the first of
    // the thread block. If all threads begin at the same query, they read the same addresses.
    for (int i = 0; i < in.seq_q; ++i) add_query(i);
    // Your code: end.
    copy(in.dK + at, dk), copy(in.dV + at, dv);
  }

  __device__ static void run(const fa::FloatBackwardParameters& in) {
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int row = blockIdx.x * kRows + threadIdx.x;
    row < in.seq_q ? of_query(in, head, row) : of_key(in, head, row - in.seq_q);
  }
};

}  // namespace

FA_FLOAT_BACKWARD_ENTRY(fa_ex16_mask, Gradients)

namespace {

const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex16_mask, Gradients)};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  using enum fa::Tensor;
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  const auto queries = static_cast<std::int32_t>(problem.seq_q);
  const auto keys = static_cast<std::int32_t>(problem.seq_kv);
  const std::int32_t diagonal = problem.causal ? keys - queries : keys;
  const auto scale = static_cast<float>(problem.scale());
  const fa::Argument no_scratch = std::int64_t{0};
  return fa::LaunchPlan{{fa::launch_of(
      instance, {(queries + keys) / kRows, problem.heads, problem.batch},
      {q, k, v, o, lse, d_o, d_q, d_k, d_v, no_scratch, queries, keys, 1, scale, diagonal})}};
}

}  // namespace

FA_RUNG(ex16_mask, "", sm_80, f32, causal | backward, "gradients under a causal mask", kInstances,
        plan);
