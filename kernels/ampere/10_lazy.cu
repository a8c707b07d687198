// 10_lazy
// Idea: raise the reference of a row only when its maximum exceeds the reference by more than 8. P
// is at most 2^8 then, which fits a half, and O is rescaled only if a row of the warp needs it.
//
// Tile              Br = 128, Bc = 64 (128 at head_dim 64), 4 warps x 32 rows
// Shared memory     Q 32 KB + K 16 KB + V 16 KB at head_dim 128
// Expected effect   an iteration of 949 instructions skips the 128 FMUL of O and those for alpha.

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
  static constexpr float kSlack = 8;                    // P is at most 2^kSlack
  static_assert(kMTiles * Warps * 16 == Br, "each warp computes whole 16-row mma tiles");
  static_assert(Bc % 16 == 0, "P V advances by 16 keys, the k of one mma");
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");

  // Byte offset of a 16-byte chunk in a tile. XOR with the row spreads the eight rows of an
  // ldmatrix phase over all 32 banks.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>(row * D * 2 + ((chunk ^ (row & 7)) << 4));
  }

  // Address of (row0 + row, chunk0 + chunk) from the address of (row0, chunk0), for additions that
  // do not carry. XOR is linear: a constant row and chunk take one XOR and an immediate offset.
  __device__ static uint32_t shift(uint32_t address, int row, int chunk) {
    return (address ^ (((row ^ chunk) & 7) << 4)) + row * D * 2 + (chunk & ~7) * 16;
  }

  // Starts the copy of Rows rows; both pointers refer to the thread's chunk of the first pass.
  template <int Rows>
  __device__ static void load_tile(uint32_t shared, const half* global) {
#pragma unroll
    for (int r = 0; r < Rows; r += kCopyRows) cp_async_16(shift(shared, r, 0), global + r * D);
  }

  // S = Q K^T: each K fragment feeds every row tile.
  __device__ static void multiply_qk(float (&S)[kMTiles][Bc / 8][4], uint32_t q, uint32_t k) {
#pragma unroll
    for (int d = 0; d < kChunks; d += 2) {
      uint32_t a[kMTiles][4];
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) ldmatrix_x4(a[m], shift(q, m * 16, d));
#pragma unroll
      for (int n = 0; n < Bc / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4(b, shift(k, n * 8, d));
#pragma unroll
        for (int m = 0; m < kMTiles; ++m) {
          mma_m16n8k16(S[m][n], a[m], b[0], b[1]);
          mma_m16n8k16(S[m][n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }

  // The row maxima of one row tile, rows lane/4 and lane/4 + 8, times scale_log2. Returns whether a
  // maximum exceeds its reference by more than kSlack.
  __device__ static bool find_max(float (&block_max)[2], const float (&S)[Bc / 8][4],
                                  const float (&reference)[2], float scale_log2) {
    bool exceeds = false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float tile_max = -INFINITY;
#pragma unroll
      for (int n = 0; n < Bc / 8; ++n)
        tile_max = fmaxf(tile_max, fmaxf(S[n][2 * r], S[n][2 * r + 1]));
      tile_max = quad_max(tile_max);
      block_max[r] = tile_max * scale_log2;
      exceeds |= block_max[r] > reference[r] + kSlack;
    }
    return exceeds;
  }

  // P = 2^(scale_log2 S - reference) of one row tile.
  __device__ static void exponentials(uint32_t (&P)[Bc / 16][4], const float (&S)[Bc / 8][4],
                                      const float (&reference)[2], float (&row_sum)[2],
                                      float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int n = 0; n < Bc / 8; ++n) {
        const float p0 = ex2_approx(fmaf(S[n][2 * r], scale_log2, -reference[r]));
        const float p1 = ex2_approx(fmaf(S[n][2 * r + 1], scale_log2, -reference[r]));
        row_sum[r] += p0 + p1;
        const half2 p = __floats2half2_rn(p0, p1);
        P[n / 2][n % 2 * 2 + r] = reinterpret_cast<const uint32_t&>(p);
      }
    }
  }

  // Raises each too low reference to the maximum; rescales row_sum and O to it.
  __device__ static void raise(float (&O)[D / 8][4], float (&reference)[2], float (&row_sum)[2],
                               const float (&block_max)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool exceeds = block_max[r] > reference[r] + kSlack;
      const float alpha = exceeds ? ex2_approx(reference[r] - block_max[r]) : 1.f;
      reference[r] = exceeds ? block_max[r] : reference[r];
      row_sum[r] *= alpha;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        O[n][2 * r] *= alpha;
        O[n][2 * r + 1] *= alpha;
      }
    }
  }

  // O += P V: each V fragment feeds every row tile.
  __device__ static void multiply_pv(float (&O)[kMTiles][D / 8][4],
                                     const uint32_t (&P)[kMTiles][Bc / 16][4], uint32_t v) {
#pragma unroll
    for (int k = 0; k < Bc / 16; ++k) {
#pragma unroll
      for (int n = 0; n < D / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4_trans(b, shift(v, k * 16, n));
#pragma unroll
        for (int m = 0; m < kMTiles; ++m) {
          mma_m16n8k16(O[m][n], P[m][k], b[0], b[1]);
          mma_m16n8k16(O[m][n + 1], P[m][k], b[2], b[3]);
        }
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

    // This lane's ldmatrix addresses: Q as the A operand; K and V as two adjacent B fragments each,
    // in the order that puts the two registers of a fragment next to each other.
    const uint32_t q_lane = q_tile + offset(warp_row + lane % 16, lane / 16);
    const uint32_t k_lane = k_tile + offset(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    const uint32_t v_lane = v_tile + offset(lane % 16, lane / 16);

    float O[kMTiles][D / 8][4] = {};
    float reference[kMTiles][2], row_sum[kMTiles][2];
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
      reference[m][0] = reference[m][1] = -INFINITY;
      row_sum[m][0] = row_sum[m][1] = 0.f;
    }
    load_tile<Br>(q_tile + copy_offset, Q);
    load_tile<Bc>(k_tile + copy_offset, K);
    cp_async_commit();

    for (int j = 0; j < seq_kv; j += Bc) {
      cp_async_wait_group<0>();
      __syncthreads();  // K_j has arrived; all warps have read V_{j-1}
      load_tile<Bc>(v_tile + copy_offset, V);
      cp_async_commit();
      V += Bc * D;

      float S[kMTiles][Bc / 8][4] = {};
      multiply_qk(S, q_lane, k_lane);
      float block_max[kMTiles][2];
      bool exceeds = false;
#pragma unroll
      for (int m = 0; m < kMTiles; ++m)
        exceeds |= find_max(block_max[m], S[m], reference[m], scale_log2);
      if (__any_sync(0xffffffff, exceeds)) {
#pragma unroll
        for (int m = 0; m < kMTiles; ++m) raise(O[m], reference[m], row_sum[m], block_max[m]);
      }
      uint32_t P[kMTiles][Bc / 16][4];
#pragma unroll
      for (int m = 0; m < kMTiles; ++m)
        exponentials(P[m], S[m], reference[m], row_sum[m], scale_log2);

      cp_async_wait_group<0>();
      __syncthreads();  // V_j has arrived; all warps have read K_j
      if (j + Bc < seq_kv) {
        K += Bc * D;
        load_tile<Bc>(k_tile + copy_offset, K);
        cp_async_commit();
      }
      multiply_pv(O, P, v_lane);
    }
    store_rows(O_out + query_row * D, shared, warp_row, O, row_sum);
  }
};

}  // namespace

#define INSTANCES(X)                             \
  X(fa_10_lazy_d128, Attention<128, 64, 4, 128>) \
  X(fa_10_lazy_d64, Attention<128, 128, 4, 64>)

INSTANCES(FA_HALF_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(10_lazy, "06", sm_80, f16, none,
        "lazy rescaling: a reference is raised only when the maximum exceeds it by more than 8",
        kInstances, fa::plan_half_tiles);
