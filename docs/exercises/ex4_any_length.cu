// Exercise 4: any number of queries and keys.
// A thread computes a query row; K and V come in tiles of 32 keys. See docs/exercises.md.

#include "kernels/planners.h"
#include "kernels/ptx/math.cuh"

namespace {

constexpr int kRows = 64;  // query rows of a thread block, a thread each
constexpr int kKeys = 32;  // keys of a tile

struct AnyLength : fa::StaticKernel<kRows, kKeys, kRows / 32, 32> {
  __device__ static void run(const float* Q, const float* K, const float* V, float* O, float*,
                             int seq_q, int seq_kv, float scale, int) {
    __shared__ float k_tile[kKeys][kHeadDim], v_tile[kKeys][kHeadDim];
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int row = blockIdx.x * kRows + threadIdx.x;
    Q += (head * seq_q + row) * kHeadDim;
    K += head * seq_kv * kHeadDim;
    V += head * seq_kv * kHeadDim;
    O += (head * seq_q + row) * kHeadDim;

    float q[kHeadDim];
    // Your code: begin. The last thread block has more threads than there are queries left. Row
    // `row` exists if it is below seq_q. A thread without a row must still reach every
    // __syncthreads().
    for (int d = 0; d < kHeadDim; ++d) q[d] = Q[d];
    // Your code: end.
    float m = -INFINITY, l = 0.f, o[kHeadDim] = {};

    for (int j = 0; j < seq_kv; j += kKeys) {
      __syncthreads();  // every thread has read the last tile
      for (int i = threadIdx.x; i < kKeys * kHeadDim; i += kRows) {
        // Your code: begin. Key j + i / kHeadDim may not exist. Read nothing then: not the row
        // behind the tensor, and not another row either.
        k_tile[i / kHeadDim][i % kHeadDim] = K[int64_t{j} * kHeadDim + i];
        v_tile[i / kHeadDim][i % kHeadDim] = V[int64_t{j} * kHeadDim + i];
        // Your code: end.
      }
      __syncthreads();  // this tile is complete

      for (int n = 0; n < kKeys; ++n) {
        float s = 0.f;
        for (int d = 0; d < kHeadDim; ++d) s += q[d] * k_tile[n][d];
        s *= scale;
        // Your code: begin. This is key j + n. A key that does not exist must not change m, l, o.
        // Your code: end.
        const float new_m = fmaxf(m, s);
        const float alpha = exp_approx(m - new_m);
        const float p = exp_approx(s - new_m);
        m = new_m;
        l = l * alpha + p;
        for (int d = 0; d < kHeadDim; ++d) o[d] = o[d] * alpha + p * v_tile[n][d];
      }
    }

    // Your code: begin. A row that does not exist is not stored.
    for (int d = 0; d < kHeadDim; ++d) O[d] = o[d] / l;
    // Your code: end.
  }
};

}  // namespace

FA_FLOAT_ENTRY(fa_ex4_any_length, AnyLength)
static const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex4_any_length, AnyLength)};

static fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                           const fa::DeviceDescription&) {
  return fa::LaunchPlan{{fa::launch_of(instance, fa::row_tile_grid(problem, instance.tile),
                                       fa::float_arguments(problem))}};
}

FA_RUNG(ex4_any_length, "", sm_80, f32, ragged, "any number of queries and keys", kInstances, plan);
