// Exercise 13: fence, commit, wait.
// A warpgroup computes 64 query rows with wgmma. See docs/exercises.md.

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/rung.h"

namespace {

constexpr int kKeys = 64;  // keys of a step

struct Wait {
  static constexpr fa::Tile kTile{64, kKeys, 4};
  static constexpr int kHeadDim = 128, kThreads = 128, kBlocksPerSm = 1;
  static constexpr int kTileBytes = 64 * kHeadDim * 2, kPanelBytes = 64 * 128, kAlign = 1024;
  static constexpr std::size_t kSharedBytes = kAlign + 3 * kTileBytes + 8 * 2;

  // A thread's two rows: their maximum, the sum over the thread's columns, the factor of O.
  struct Rows {
    float max[2] = {-INFINITY, -INFINITY}, sum[2] = {}, alpha[2];
  };

  __device__ static uint64_t descriptor(uint32_t address, int panel_bytes) {
    return wgmma_descriptor(address, panel_bytes);
  }

  // S = Q K^T, in the background.
  __device__ static void multiply_qk(float (&S)[kKeys / 2], uint32_t q, uint32_t k) {
    const uint64_t a = descriptor(q, kPanelBytes), b = descriptor(k, kPanelBytes);
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i) {
      const int columns = i / 4 * (kPanelBytes >> 4) + i % 4 * 2;
      wgmma(S, a + columns, b + columns, i > 0);
    }
  }

  // O += P V, in the background.
  __device__ static void multiply_pv(float (&O)[kHeadDim / 2], const uint32_t (&P)[kKeys / 16][4],
                                     uint32_t v) {
    const uint64_t b = descriptor(v, kPanelBytes);
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) wgmma_transposed(O, P[i], b + i * 128, 1);
  }

  // S becomes P.
  __device__ static void softmax(float (&S)[kKeys / 2], Rows& rows, float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = -INFINITY;
#pragma unroll
      for (int i = 2 * r; i < kKeys / 2; i += 4) largest = fmaxf(largest, fmaxf(S[i], S[i + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      const float new_max = fmaxf(rows.max[r], largest * scale_log2);
      rows.alpha[r] = ex2_approx(rows.max[r] - new_max);
      rows.max[r] = new_max;
      rows.sum[r] *= rows.alpha[r];
#pragma unroll
      for (int i = 2 * r; i < kKeys / 2; i += 4) {
        S[i] = ex2_approx(fmaf(S[i], scale_log2, -new_max));
        S[i + 1] = ex2_approx(fmaf(S[i + 1], scale_log2, -new_max));
        rows.sum[r] += S[i] + S[i + 1];
      }
    }
  }

  __device__ static void rescale(float (&O)[kHeadDim / 2], const Rows& rows) {
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) O[i] *= rows.alpha[i / 2 % 2];
  }

  // P as A operands: the accumulator layout, packed to halves, is theirs.
  __device__ static void pack(uint32_t (&P)[kKeys / 16][4], const float (&S)[kKeys / 2]) {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      const half2 p = __floats2half2_rn(S[2 * i], S[2 * i + 1]);
      P[i / 4][i % 4] = reinterpret_cast<const uint32_t&>(p);
    }
  }

  // Writes O / sum; `out` is at the warp's first row.
  __device__ static void store_rows(half* out, const float (&O)[kHeadDim / 2], const Rows& rows) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float total = rows.sum[r];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
        *reinterpret_cast<half2*>(out + (lane / 4 + 8 * r) * kHeadDim + n * 8 + lane % 4 * 2) =
            __floats2half2_rn(O[4 * n + 2 * r] / total, O[4 * n + 2 * r + 1] / total);
    }
  }

  // One step: the tiles are complete.
  __device__ static void add_step(float (&O)[kHeadDim / 2], Rows& rows, uint32_t q, uint32_t k,
                                  uint32_t v, float scale_log2) {
    float S[kKeys / 2];
    uint32_t P[kKeys / 16][4];
    // Your code: begin. Between its issue and the end of its group a wgmma may read and write its
    // registers at any time. wgmma_fence() orders earlier writes of the threads before the next
    // wgmma, wgmma_commit() closes a group, wgmma_wait<0>(D) waits for the end of all groups; then
    // D may be read. As shipped none of these calls is there.
    multiply_qk(S, q, k);
    softmax(S, rows, scale_log2);
    rescale(O, rows);
    pack(P, S);
    multiply_pv(O, P, v);
    // Your code: end.
  }

  __device__ static void run(const fa::TmaParameters& in) {
    extern __shared__ unsigned char memory[];
    const uint32_t q = (shared_address(memory) + kAlign - 1) & ~(kAlign - 1);
    const uint32_t k = q + kTileBytes, v = k + kTileBytes, full = v + kTileBytes;
    const int head = blockIdx.z * gridDim.y + blockIdx.y;
    const int first_row = static_cast<int>(blockIdx.x) * 64;
    if (threadIdx.x == 0) {
      mbarrier_init(full, 1);
      mbarrier_init_fence();
    }
    __syncthreads();
    float O[kHeadDim / 2] = {};
    Rows rows;
    for (int j = 0; j < in.seq_kv; j += kKeys) {
      if (threadIdx.x == 0) {
        mbarrier_expect(full, (j == 0 ? 3 : 2) * kTileBytes);
        if (j == 0) tma_load(q, in.Q, 0, first_row, 0, head, full);
        tma_load(k, in.K, 0, j, 0, head, full);
        tma_load(v, in.V, 0, j, 0, head, full);
      }
      mbarrier_wait(full, j / kKeys % 2);
      add_step(O, rows, q, k, v, in.scale_log2);
      __syncthreads();  // every warp has read the tiles
    }
    const int64_t row = int64_t{head} * in.seq_q + first_row + threadIdx.x / 32 * 16;
    store_rows(in.O + row * kHeadDim, O, rows);
  }
};

}  // namespace

FA_TMA_ENTRY(fa_ex13_wait, Wait)
static const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex13_wait, Wait)};
FA_RUNG(ex13_wait, "", sm_90a, f16, none, "registers that belong to the tensor cores for a while",
        kInstances, fa::plan_tma_tiles);
