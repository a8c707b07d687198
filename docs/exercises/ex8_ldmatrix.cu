// Exercise 8: the addresses of ldmatrix.
// A warp computes 16 query rows with mma.sync and ldmatrix; K and V come in tiles of 32 keys. See
// docs/exercises.md.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/rung.h"

namespace {

constexpr int kKeys = 32;  // keys of a step

struct Ldmatrix {
  static constexpr fa::Tile kTile{64, kKeys, 4};
  static constexpr int kHeadDim = 64, kThreads = 128, kBlocksPerSm = 1;
  static constexpr std::size_t kSharedBytes = (64 + 2 * kKeys) * 128;

  // What a warp keeps from step to step.
  struct State {
    float O[kHeadDim / 8][4] = {}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  };

  // Byte offset of a 16-byte chunk in a tile of 128-byte rows, XOR-swizzled.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(row * 128 + ((chunk ^ (row & 7)) << 4));
  }

  // Your code: begin. ldmatrix.x4 loads four 8x8 matrices. Lanes 8 i to 8 i + 7 supply the
  // addresses of the eight rows of matrix i, which lands in register i: lane l then holds row l /
  // 4, columns 2 (l % 4) and the next one. A chunk is eight columns.
  //   Q: a[0..3] must be rows 0-7 and 8-15 at columns 0-7, then rows 0-7 and 8-15 at columns 8-15
  //   K: b[0], b[1] keys 0-7 at columns 0-7 and 8-15; b[2], b[3] keys 8-15 at the same columns
  //   V (.trans): b[0], b[1] keys 0-7 and 8-15 at columns 0-7; b[2], b[3] the same keys at columns
  //   8-15
  // As shipped all four matrices are the first one.
  __device__ static int q_row(int lane) { return lane % 8; }
  __device__ static int q_chunk(int) { return 0; }
  __device__ static int k_row(int lane) { return lane % 8; }
  __device__ static int k_chunk(int) { return 0; }
  __device__ static int v_row(int lane) { return lane % 8; }
  __device__ static int v_chunk(int) { return 0; }
  // Your code: end.

  // Starts the copy of Rows rows.
  template <int Rows>
  __device__ static void load_tile(uint32_t tile, const half* rows) {
#pragma unroll
    for (int i = threadIdx.x; i < Rows * 8; i += kThreads)
      cp_async_16(tile + offset(i / 8, i % 8), rows + i * 8);
  }

  // S = Q K^T.
  __device__ static void multiply_qk(float (&S)[kKeys / 8][4], uint32_t q, uint32_t k) {
    const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16;
#pragma unroll
    for (int d = 0; d < 8; d += 2) {
      uint32_t a[4];
      ldmatrix_x4(a, q + offset(warp_row + q_row(lane), d + q_chunk(lane)));
#pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4(b, k + offset(n * 8 + k_row(lane), d + k_chunk(lane)));
        mma_m16n8k16(S[n], a, b[0], b[1]);
        mma_m16n8k16(S[n + 1], a, b[2], b[3]);
      }
    }
  }

  // Online softmax of the rows lane / 4 and lane / 4 + 8 of the warp's 16: S becomes P.
  __device__ static void softmax(float (&S)[kKeys / 8][4], float (&O)[kHeadDim / 8][4],
                                 float (&max)[2], float (&sum)[2], float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
        largest = fmaxf(largest, fmaxf(S[n][2 * r], S[n][2 * r + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      const float new_max = fmaxf(max[r], largest * scale_log2);
      const float alpha = ex2_approx(max[r] - new_max);
      max[r] = new_max;
      sum[r] *= alpha;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        S[n][2 * r] = ex2_approx(fmaf(S[n][2 * r], scale_log2, -new_max));
        S[n][2 * r + 1] = ex2_approx(fmaf(S[n][2 * r + 1], scale_log2, -new_max));
        sum[r] += S[n][2 * r] + S[n][2 * r + 1];
      }
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        O[n][2 * r] *= alpha;
        O[n][2 * r + 1] *= alpha;
      }
    }
  }

  __device__ static uint32_t pack(float low, float high) {
    const half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const uint32_t&>(both);
  }

  // P as A operands: the accumulator layout, packed to halves, is theirs.
  __device__ static void pack_p(uint32_t (&P)[kKeys / 16][4], const float (&S)[kKeys / 8][4]) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      P[n / 2][n % 2 * 2] = pack(S[n][0], S[n][1]);
      P[n / 2][n % 2 * 2 + 1] = pack(S[n][2], S[n][3]);
    }
  }

  // O += P V.
  __device__ static void multiply_pv(float (&O)[kHeadDim / 8][4],
                                     const uint32_t (&P)[kKeys / 16][4], uint32_t v) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4_trans(b, v + offset(k * 16 + v_row(lane), n + v_chunk(lane)));
        mma_m16n8k16(O[n], P[k], b[0], b[1]);
        mma_m16n8k16(O[n + 1], P[k], b[2], b[3]);
      }
    }
  }

  // One step: 32 keys, K and then V at `stage`.
  __device__ static void add_step(State& state, uint32_t q_tile, uint32_t stage, float scale_log2) {
    float S[kKeys / 8][4] = {};
    uint32_t P[kKeys / 16][4];
    multiply_qk(S, q_tile, stage);
    softmax(S, state.O, state.max, state.sum, scale_log2);
    pack_p(P, S);
    multiply_pv(state.O, P, stage + kKeys * 128);
  }

  // Writes O / sum; `out` is at the warp's first row.
  __device__ static void store_rows(half* out, const float (&O)[kHeadDim / 8][4],
                                    const float (&sum)[2]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float total = sum[r];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
        *reinterpret_cast<half2*>(out + (lane / 4 + 8 * r) * kHeadDim + n * 8 + lane % 4 * 2) =
            __floats2half2_rn(O[n][2 * r] / total, O[n][2 * r + 1] / total);
    }
  }

  __device__ static void run(const half* Q, const half* K, const half* V, half* O_out, float*,
                             int seq_q, int seq_kv, int, int, float scale_log2) {
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t q_tile = shared_address(shared), stages = q_tile + 64 * 128;
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t row = head * seq_q + int64_t{blockIdx.x} * 64;
    K += head * seq_kv * kHeadDim;
    V += head * seq_kv * kHeadDim;
    State state;
    load_tile<64>(q_tile, Q + row * kHeadDim);
    for (int j = 0; j < seq_kv; j += kKeys) {
      load_tile<kKeys>(stages, K + int64_t{j} * kHeadDim);
      load_tile<kKeys>(stages + kKeys * 128, V + int64_t{j} * kHeadDim);
      cp_async_commit();
      cp_async_wait_group<0>();
      __syncthreads();  // the tiles are complete
      add_step(state, q_tile, stages, scale_log2);
      __syncthreads();  // every warp has read the tiles
    }
    store_rows(O_out + (row + threadIdx.x / 32 * 16) * kHeadDim, state.O, state.sum);
  }
};

}  // namespace

FA_HALF_ENTRY(fa_ex8_ldmatrix, Ldmatrix)
static const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex8_ldmatrix, Ldmatrix)};
FA_RUNG(ex8_ldmatrix, "", sm_80, f16, none, "row addresses for ldmatrix", kInstances,
        fa::plan_half_tiles);
