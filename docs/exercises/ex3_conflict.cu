// Exercise 3: a bank conflict, and its end.
// A warp computes a query row: a lane one key of Q K^T, and one column of P V. See
// docs/exercises.md.

#include "kernels/planners.h"
#include "kernels/ptx/math.cuh"

namespace {

constexpr int kHeadDim = 32;  // as many columns as lanes
constexpr int kKeys = 32;     // as many keys of a tile as lanes
constexpr int kWarps = 4;     // query rows of a thread block

// Your code: begin. Where element (row, column) of the K tile lies, in floats, and how many floats
// the tile takes. A row is written by the 32 lanes of a warp at once, and then a column is read.
// There are 32 banks: float i is in bank i % 32.
constexpr int kTileFloats = kKeys * kHeadDim;
__device__ int offset(int row, int column) {
  return row * kHeadDim + column;
}
// Your code: end.

__device__ float warp_max(float x) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32)
    fa_ex3_conflict(const float* Q, const float* K, const float* V, float* O, int seq_q, int seq_kv,
                    float scale) {
  __shared__ float k_tile[kTileFloats], v_tile[kKeys * kHeadDim];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  const int64_t row = head * seq_q + int64_t{blockIdx.x} * kWarps + warp;
  K += head * seq_kv * kHeadDim;
  V += head * seq_kv * kHeadDim;

  const float q = Q[row * kHeadDim + lane];
  float m = -INFINITY, l = 0.f, o = 0.f;

  for (int j = 0; j < seq_kv; j += kKeys, K += kKeys * kHeadDim, V += kKeys * kHeadDim) {
    __syncthreads();  // every warp has read the last tile
    for (int n = warp; n < kKeys; n += kWarps) {
      k_tile[offset(n, lane)] = K[n * kHeadDim + lane];
      v_tile[n * kHeadDim + lane] = V[n * kHeadDim + lane];
    }
    __syncthreads();  // this tile is complete

    float s = 0.f;
    for (int d = 0; d < kHeadDim; ++d) s += __shfl_sync(~0u, q, d) * k_tile[offset(lane, d)];
    s *= scale;

    const float new_m = fmaxf(m, warp_max(s));
    const float alpha = exp_approx(m - new_m);
    const float p = exp_approx(s - new_m);
    m = new_m;
    l = l * alpha + warp_sum(p);
    o *= alpha;
    for (int n = 0; n < kKeys; ++n) o += __shfl_sync(~0u, p, n) * v_tile[n * kHeadDim + lane];
  }

  O[row * kHeadDim + lane] = o / l;
}

namespace {

const fa::Instance kInstances[] = {{"fa_ex3_conflict",
                                    reinterpret_cast<const void*>(fa_ex3_conflict), kHeadDim,
                                    fa::Tile{kWarps, kKeys, kWarps}, 0}};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  fa::Launch launch;
  launch.entry = instance.entry;
  launch.kernel = instance.kernel;
  launch.grid = {problem.seq_q / kWarps, problem.heads, problem.batch};
  launch.block = kWarps * 32;
  launch.arguments = {fa::Tensor::q,
                      fa::Tensor::k,
                      fa::Tensor::v,
                      fa::Tensor::o,
                      static_cast<std::int32_t>(problem.seq_q),
                      static_cast<std::int32_t>(problem.seq_kv),
                      static_cast<float>(problem.scale())};
  return fa::LaunchPlan{{launch}};
}

}  // namespace

FA_RUNG(ex3_conflict, "", sm_80, f32, none, "columns of K read without a bank conflict", kInstances,
        plan);
