// Exercise 2: the causal mask, added to a kernel that has none.
// A thread computes a query row; K and V come in tiles of 32 keys. See docs/exercises.md.

#include "kernels/planners.h"
#include "kernels/ptx/math.cuh"

namespace {

constexpr int kHeadDim = 32;
constexpr int kRows = 64;  // query rows of a thread block, a thread each
constexpr int kKeys = 32;  // keys of a tile

}  // namespace

extern "C" __global__ void __launch_bounds__(kRows)
    fa_ex2_causal(const float* Q, const float* K, const float* V, float* O, int seq_q, int seq_kv,
                  float scale, [[maybe_unused]] int causal) {
  __shared__ float k_tile[kKeys][kHeadDim], v_tile[kKeys][kHeadDim];
  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  const int row = blockIdx.x * kRows + threadIdx.x;
  Q += (head * seq_q + row) * kHeadDim;
  K += head * seq_kv * kHeadDim;
  V += head * seq_kv * kHeadDim;
  O += (head * seq_q + row) * kHeadDim;

  float q[kHeadDim];
  for (int d = 0; d < kHeadDim; ++d) q[d] = Q[d];
  float m = -INFINITY, l = 0.f, o[kHeadDim] = {};

  // Your code: begin. Query i sees key j when j <= i + seq_kv - seq_q, if `causal` is not 0. Keys
  // from `end` on are visible to no query of this thread block, so their tiles need not be loaded.
  const int end = seq_kv;
  // Your code: end.
  for (int j = 0; j < end; j += kKeys) {
    __syncthreads();  // every thread has read the last tile
    for (int i = threadIdx.x; i < kKeys * kHeadDim; i += kRows) {
      k_tile[i / kHeadDim][i % kHeadDim] = K[int64_t{j} * kHeadDim + i];
      v_tile[i / kHeadDim][i % kHeadDim] = V[int64_t{j} * kHeadDim + i];
    }
    __syncthreads();  // this tile is complete

    for (int n = 0; n < kKeys; ++n) {
      float s = 0.f;
      for (int d = 0; d < kHeadDim; ++d) s += q[d] * k_tile[n][d];
      s *= scale;
      // Your code: begin. This is key j + n, and s its score. A key that this query does not see
      // must leave m, l and o as they are. (With s = -INFINITY a first key gives e^(-inf + inf).)
      // Your code: end.
      const float new_m = fmaxf(m, s);
      const float alpha = exp_approx(m - new_m);
      const float p = exp_approx(s - new_m);
      m = new_m;
      l = l * alpha + p;
      for (int d = 0; d < kHeadDim; ++d) o[d] = o[d] * alpha + p * v_tile[n][d];
    }
  }

  // A query that sees no key has l = 0; its row of O is 0.
  for (int d = 0; d < kHeadDim; ++d) O[d] = l > 0.f ? o[d] / l : 0.f;
}

namespace {

const fa::Instance kInstances[] = {{"fa_ex2_causal", reinterpret_cast<const void*>(fa_ex2_causal),
                                    kHeadDim, fa::Tile{kRows, kKeys, kRows / 32}, 0}};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  fa::Launch launch;
  launch.entry = instance.entry;
  launch.kernel = instance.kernel;
  launch.grid = {problem.seq_q / kRows, problem.heads, problem.batch};
  launch.block = kRows;
  launch.arguments = {fa::Tensor::q,
                      fa::Tensor::k,
                      fa::Tensor::v,
                      fa::Tensor::o,
                      static_cast<std::int32_t>(problem.seq_q),
                      static_cast<std::int32_t>(problem.seq_kv),
                      static_cast<float>(problem.scale()),
                      static_cast<std::int32_t>(problem.causal)};
  return fa::LaunchPlan{{launch}};
}

}  // namespace

FA_RUNG(ex2_causal, "", sm_80, f32, causal, "a causal mask that skips what it can", kInstances,
        plan);
