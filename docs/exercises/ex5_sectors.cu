// Exercise 5: loads that use every byte of a sector.
// A thread computes a query row; Q, K and V are staged in shared memory. See docs/exercises.md.

#include "kernels/ptx/math.cuh"
#include "kernels/rung.h"

namespace {

constexpr int kRows = 64;   // query rows of a thread block, a thread each
constexpr int kKeys = 32;   // keys of a tile
constexpr int kPitch = 33;  // floats from one row to the next in shared memory

struct Sectors : fa::StaticKernel<kRows, kKeys, kRows / 32, 32> {
  // Copies Rows rows of 32 floats.
  template <int Rows>
  __device__ static void copy_tile(float (&tile)[Rows][kPitch], const float* rows) {
    // Your code: begin. The 32 lanes of a warp execute each load together, and global memory
    // delivers sectors of 32 bytes. As shipped each lane copies a row: the lanes of a load read 32
    // rows, 4 bytes of each.
    if (threadIdx.x < Rows)
      for (int d = 0; d < kHeadDim; ++d) tile[threadIdx.x][d] = rows[threadIdx.x * kHeadDim + d];
    // Your code: end.
  }

  __device__ static void run(const float* Q, const float* K, const float* V, float* O, float*,
                             int seq_q, int seq_kv, float scale, int) {
    __shared__ float q_tile[kRows][kPitch], k_tile[kKeys][kPitch], v_tile[kKeys][kPitch];
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t first_row = head * seq_q + int64_t{blockIdx.x} * kRows;
    K += head * seq_kv * kHeadDim;
    V += head * seq_kv * kHeadDim;

    copy_tile(q_tile, Q + first_row * kHeadDim);
    __syncthreads();
    float q[kHeadDim];
    for (int d = 0; d < kHeadDim; ++d) q[d] = q_tile[threadIdx.x][d];
    float m = -INFINITY, l = 0.f, o[kHeadDim] = {};

    for (int j = 0; j < seq_kv; j += kKeys) {
      copy_tile(k_tile, K + int64_t{j} * kHeadDim);
      copy_tile(v_tile, V + int64_t{j} * kHeadDim);
      __syncthreads();  // the tiles are complete
      for (int n = 0; n < kKeys; ++n) {
        float s = 0.f;
        for (int d = 0; d < kHeadDim; ++d) s += q[d] * k_tile[n][d];
        s *= scale;
        const float new_m = fmaxf(m, s);
        const float alpha = exp_approx(m - new_m);
        const float p = exp_approx(s - new_m);
        m = new_m;
        l = l * alpha + p;
        for (int d = 0; d < kHeadDim; ++d) o[d] = o[d] * alpha + p * v_tile[n][d];
      }
      __syncthreads();  // every thread has read the tiles
    }

    for (int d = 0; d < kHeadDim; ++d) O[(first_row + threadIdx.x) * kHeadDim + d] = o[d] / l;
  }
};

}  // namespace

FA_FLOAT_ENTRY(fa_ex5_sectors, Sectors)
static const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex5_sectors, Sectors)};
FA_RUNG(ex5_sectors, "", sm_80, f32, none, "loads that use every byte of a sector", kInstances,
        fa::plan_float_tiles);
