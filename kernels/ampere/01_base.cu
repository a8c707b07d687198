// 01_base
// Idea: flash attention on tensor cores. ldmatrix loads the operands of mma.sync, and S and P stay
// in registers for the online softmax. The tiles in shared memory are row-major.
//
// Tile              Br = 64, Bc = 32, 2 warps x 32 rows (head_dim 128 and 64)
// Shared memory     Q 16 KB + K 8 KB + V 8 KB at head_dim 128
// Expected effect   the start of this part of the ladder. A row is a multiple of 128 bytes long, so
//                   the eight rows of an ldmatrix phase start in the same bank: eight wavefronts
//                   instead of one.

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int Warps, int D>
struct Attention {
  static constexpr fa::Tile kTile{Br, Bc, Warps};
  static constexpr int kHeadDim = D;
  static constexpr int kThreads = Warps * 32;
  static constexpr int kBlocksPerSm = 8 / Warps;  // so that a thread may use 255 registers
  static constexpr std::size_t kSharedBytes = (Br + 2 * Bc) * D * sizeof(half);
  static constexpr int kMTiles = Br / (Warps * 16);     // 16-row tiles per warp
  static constexpr int kChunks = D / 8;                 // 16-byte chunks per row
  static constexpr int kCopyRows = kThreads / kChunks;  // rows copied per pass
  static_assert(kMTiles * Warps * 16 == Br, "each warp computes whole 16-row mma tiles");
  static_assert(Bc % 16 == 0, "P V advances by 16 keys, the k of one mma");

  // Byte offset of a 16-byte chunk in a tile.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(row * D * 2 + chunk * 16);
  }

  // Address of (row0 + row, chunk0 + chunk) from the address of (row0, chunk0).
  __device__ static uint32_t shift(uint32_t address, int row, int chunk) {
    return address + row * D * 2 + chunk * 16;
  }

  // Starts the copy of Rows rows; both pointers refer to the thread's chunk of the first pass.
  template <int Rows>
  __device__ static void load_tile(uint32_t shared, const half* global) {
#pragma unroll
    for (int r = 0; r < Rows; r += kCopyRows) cp_async_16(shift(shared, r, 0), global + r * D);
  }

  // S = Q K^T for one row tile.
  __device__ static void multiply_qk(float (&S)[Bc / 8][4], uint32_t q, uint32_t k) {
#pragma unroll
    for (int d = 0; d < kChunks; d += 2) {
      uint32_t a[4];
      ldmatrix_x4(a, shift(q, 0, d));
#pragma unroll
      for (int n = 0; n < Bc / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4(b, shift(k, n * 8, d));
        mma_m16n8k16(S[n], a, b[0], b[1]);
        mma_m16n8k16(S[n + 1], a, b[2], b[3]);
      }
    }
  }

  // Online softmax of one row tile, rows lane/4 and lane/4 + 8: P = exp(scale S - row_max), and O
  // and row_sum are rescaled to the new maximum.
  __device__ static void softmax(uint32_t (&P)[Bc / 16][4], float (&S)[Bc / 8][4],
                                 float (&O)[D / 8][4], float (&row_max)[2], float (&row_sum)[2],
                                 float scale) {
#pragma unroll
    for (int n = 0; n < Bc / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) S[n][i] *= scale;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float tile_max = -INFINITY;
#pragma unroll
      for (int n = 0; n < Bc / 8; ++n)
        tile_max = fmaxf(tile_max, fmaxf(S[n][2 * r], S[n][2 * r + 1]));
      tile_max = quad_max(tile_max);
      const float new_max = fmaxf(row_max[r], tile_max);
      const float alpha = exp_approx(row_max[r] - new_max);
      row_max[r] = new_max;
      row_sum[r] *= alpha;
#pragma unroll
      for (int n = 0; n < Bc / 8; ++n) {
        const float p0 = exp_approx(S[n][2 * r] - new_max);
        const float p1 = exp_approx(S[n][2 * r + 1] - new_max);
        row_sum[r] += p0 + p1;
        const half2 p = __floats2half2_rn(p0, p1);
        P[n / 2][n % 2 * 2 + r] = reinterpret_cast<const uint32_t&>(p);
      }
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        O[n][2 * r] *= alpha;
        O[n][2 * r + 1] *= alpha;
      }
    }
  }

  // O += P V for one row tile.
  __device__ static void multiply_pv(float (&O)[D / 8][4], const uint32_t (&P)[Bc / 16][4],
                                     uint32_t v) {
#pragma unroll
    for (int k = 0; k < Bc / 16; ++k) {
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        uint32_t b[2];
        ldmatrix_x2_trans(b, shift(v, k * 16, n));
        mma_m16n8k16(O[n], P[k], b[0], b[1]);
      }
    }
  }

  // Stores O / row_sum. A warp stages its rows in its part of the Q tile, so that the stores to
  // device memory are 16 bytes wide.
  __device__ static void store_rows(half* O_out, unsigned char* shared, int warp_row,
                                    const float (&O)[kMTiles][D / 8][4],
                                    const float (&row_sum)[kMTiles][2]) {
    const int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float sum = quad_sum(row_sum[m][r]);
        const float inverse = __fdividef(1.f, sum);
        const int row = warp_row + m * 16 + r * 8 + lane / 4;
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
          *reinterpret_cast<half2*>(shared + offset(row, n) + lane % 4 * 4) =
              __floats2half2_rn(O[m][n][2 * r] * inverse, O[m][n][2 * r + 1] * inverse);
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = lane; i < kMTiles * 16 * kChunks; i += 32) {
      const int row = warp_row + i / kChunks, chunk = i % kChunks;
      *reinterpret_cast<uint4*>(O_out + row * D + chunk * 8) =
          *reinterpret_cast<const uint4*>(shared + offset(row, chunk));
    }
  }

  // Computes the Br query rows of a thread block.
  __device__ static void run(const half* Q, const half* K, const half* V, half* O_out, float*,
                             int seq_q, int seq_kv, int, int, float scale_log2) {
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t q_tile = shared_address(shared);
    const uint32_t k_tile = q_tile + Br * D * 2;
    const uint32_t v_tile = k_tile + Bc * D * 2;
    const int lane = threadIdx.x % 32;
    const int warp_row = threadIdx.x / 32 * kMTiles * 16;

    // The chunk that this thread copies.
    const int copy_row = threadIdx.x / kChunks, copy_chunk = threadIdx.x % kChunks;
    const uint32_t copy_offset = offset(copy_row, copy_chunk);
    const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
    const int64_t query_row = head * seq_q + int64_t{blockIdx.x} * Br;
    const int64_t copy_element = copy_row * D + copy_chunk * 8;
    Q += query_row * D + copy_element;
    K += head * seq_kv * D + copy_element;
    V += head * seq_kv * D + copy_element;

    // This lane's ldmatrix addresses: Q as the A operand; K as two adjacent B fragments, in the
    // order that puts the two registers of a fragment next to each other; V as one B fragment.
    const uint32_t q_lane = q_tile + offset(warp_row + lane % 16, lane / 16);
    const uint32_t k_lane = k_tile + offset(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    const uint32_t v_lane = v_tile + offset(lane % 16, 0);

    float O[kMTiles][D / 8][4] = {};
    float row_max[kMTiles][2], row_sum[kMTiles][2];
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
      row_max[m][0] = row_max[m][1] = -INFINITY;
      row_sum[m][0] = row_sum[m][1] = 0.f;
    }
    const float scale = scale_log2 * kLn2;  // for e^x; 05 uses 2^x
    load_tile<Br>(q_tile + copy_offset, Q);

    for (int j = 0; j < seq_kv; j += Bc) {
      load_tile<Bc>(k_tile + copy_offset, K);
      load_tile<Bc>(v_tile + copy_offset, V);
      cp_async_commit();
      K += Bc * D;
      V += Bc * D;
      cp_async_wait_group<0>();
      __syncthreads();  // K_j and V_j have arrived

#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
        if (m > 0) __syncwarp();  // or ptxas loads K once for all row tiles, as 06 does
        uint32_t P[Bc / 16][4];
        float S[Bc / 8][4] = {};
        multiply_qk(S, shift(q_lane, m * 16, 0), k_lane);
        softmax(P, S, O[m], row_max[m], row_sum[m], scale);
        multiply_pv(O[m], P, v_lane);
      }
      __syncthreads();  // all warps have read K_j and V_j
    }
    store_rows(O_out + query_row * D, shared, warp_row, O, row_sum);
  }
};

}  // namespace

#define INSTANCES(X)                                    \
  X(fa_01_base_d128, Attention<64, 32, 2, 128>)         \
  X(fa_01_base_d64, Attention<64, 32, 2, 64>)           \
  X(fa_01_base_64x128_d128, Attention<64, 128, 4, 128>) \
  X(fa_01_base_64x128_d64, Attention<64, 128, 4, 64>)

INSTANCES(FA_HALF_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(01_base, "", sm_80, f16, none,
        "mma.sync on row-major tiles in shared memory: every ldmatrix has 8-way bank conflicts",
        kInstances, fa::plan_half_tiles);
