// 21_wgmma_qk
// Idea: wgmma for Q K^T. A warpgroup of four warps multiplies its 64 rows together, and the tensor
// cores read Q and K from shared memory. P V still uses mma.sync.
//
// Tile              Br = 128, Bc = 128, 2 warpgroups x 4 warps x 16 rows
// Shared memory     Q 32 KB + 2 stages of K 32 KB and V 32 KB at head_dim 128
// Expected effect   half of the mma.sync and most ldmatrix of 20 at this tile are removed. The
//                   warps idle until S is complete, since the softmax needs all of it.

#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/shuffle.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/rung.h"

namespace {

template <int Br, int Bc, int Warps, int D>
struct Attention {
  static constexpr fa::Tile kTile{Br, Bc, Warps};
  static constexpr int kHeadDim = D;
  static constexpr int kThreads = Warps * 32;
  static constexpr int kBlocksPerSm = 8 / Warps;  // so that a thread may use 255 registers
  static constexpr int kAlign = 1024, kQueryBytes = 64 * D * 2;
  static constexpr int kMTiles = Br / (Warps * 16);     // 16-row tiles per warp
  static constexpr int kChunks = D / 8;                 // 16-byte chunks per row
  static constexpr int kTileBytes = Bc * kChunks * 16;  // a slot: K or V of one key block
  static constexpr std::size_t kSharedBytes = kAlign + Br * D * 2 + 4 * kTileBytes + 8 * 3;
  static_assert(Br % 64 == 0, "a warpgroup computes the 64 rows of one wgmma");
  static_assert(Bc % 16 == 0, "P V advances by 16 keys, the k of one mma");
  static_assert(D % 64 == 0, "the swizzle permutes eight 16-byte chunks");

  struct RowTile {
    int head, first_row, key_blocks;
  };

  // Addresses in shared memory. Swizzled tiles are aligned to kAlign; an mbarrier takes 8 bytes.
  struct Shared {
    uint32_t query, ring, query_full, full;

    __device__ explicit Shared(uint32_t memory) {
      query = (memory + kAlign - 1) & ~(kAlign - 1);
      ring = query + Br * D * 2;
      query_full = ring + 4 * kTileBytes;
      full = query_full + 8;
    }
  };

  // Byte offset of a 16-byte chunk in a tile. XOR with the row spreads the eight rows of an
  // ldmatrix phase over all 32 banks.
  __device__ static uint32_t offset(int row, int chunk) {
    return static_cast<uint32_t>((row >> 6) * kQueryBytes + (chunk >> 3) * 64 * 128 +
                                 (row & 63) * 128 + (((chunk ^ row) & 7) << 4));
  }

  // Address of (row0 + row, chunk0 + chunk) from the address of (row0, chunk0), for additions that
  // do not carry. XOR is linear: a constant row and chunk take one XOR and an immediate offset.
  __device__ static uint32_t shift(uint32_t address, int row, int chunk, int box = Bc) {
    return (address ^ (((row ^ chunk) & 7) << 4)) + row * 128 + chunk / 8 * box * 128;
  }

  // Starts S = Q K^T. Descriptors count 16 bytes: + 2 is the next 16 columns of a panel.
  // i / 4 is the panel: 64 rows of Q, Bc rows of K.
  __device__ static void multiply_qk(float (&S)[Bc / 2], uint64_t q, uint64_t k) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
      wgmma(S, q + i / 4 * (64 * 128 >> 4) + i % 4 * 2, k + i / 4 * (Bc * 128 >> 4) + i % 4 * 2,
            i > 0);
    wgmma_commit();
  }

  // Online softmax of one row tile, rows lane/4 and lane/4 + 8: P = 2^(scale_log2 S - row_max),
  // and O and row_sum are rescaled to the new maximum.
  __device__ static void softmax(uint32_t (&P)[Bc / 16][4], float (&S)[Bc / 2],
                                 float (&O)[D / 8][4], float (&row_max)[2], float (&row_sum)[2],
                                 float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float tile_max = -INFINITY;
#pragma unroll
      for (int i = 2 * r; i < Bc / 2; i += 4) tile_max = fmaxf(tile_max, fmaxf(S[i], S[i + 1]));
      tile_max = quad_max(tile_max);
      const float new_max = fmaxf(row_max[r], tile_max * scale_log2);
      const float alpha = ex2_approx(row_max[r] - new_max);
      row_max[r] = new_max;
      row_sum[r] *= alpha;
#pragma unroll
      for (int n = 0; n < Bc / 8; ++n) {
        const float p0 = ex2_approx(fmaf(S[4 * n + 2 * r], scale_log2, -new_max));
        const float p1 = ex2_approx(fmaf(S[4 * n + 2 * r + 1], scale_log2, -new_max));
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

  // One thread starts the copies of Q of a tile.
  __device__ static void load_query(const fa::TmaParameters& in, const Shared& shared,
                                    const RowTile& tile) {
    mbarrier_expect(shared.query_full, Br * D * 2);
    for (int i = 0; i < Br / 64; ++i)
      tma_load(shared.query + i * kQueryBytes, in.Q, 0, tile.first_row + i * 64, 0, tile.head,
               shared.query_full);
  }

  // One thread starts the copies of K and V of key block j into two slots.
  __device__ static void load_key_block(const fa::TmaParameters& in, const Shared& shared,
                                        const RowTile& tile, int j) {
    const uint32_t slot = shared.ring + j % 2 * 2 * kTileBytes, full = shared.full + 8 * (j % 2);
    mbarrier_expect(full, 2 * kTileBytes);
    tma_load(slot, in.K, 0, j * Bc, 0, tile.head, full);
    tma_load(slot + kTileBytes, in.V, 0, j * Bc, 0, tile.head, full);
  }

  // Stores O / row_sum. A warp stages its rows in its part of the Q tile, so that the stores to
  // device memory are 16 bytes wide.
  __device__ static void store_rows(half* O_out, unsigned char* shared, int warp_row,
                                    const float (&O)[kMTiles][D / 8][4],
                                    const float (&row_max)[kMTiles][2], float* LSE,
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
        if (LSE && lane % 4 == 0) LSE[row] = (row_max[m][r] + __log2f(sum)) * kLn2;
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
  __device__ static void compute_tile(const fa::TmaParameters& in, const Shared& shared,
                                      const RowTile& tile, int warp_row, unsigned char* memory) {
    const int lane = threadIdx.x % 32;
    const int64_t query_row = int64_t{tile.head} * in.seq_q + tile.first_row;

    const uint64_t q = wgmma_descriptor(shared.query + warp_row / 64 * kQueryBytes, 64 * 128);
    // This lane's ldmatrix address: V as two adjacent B fragments.
    const uint32_t v_lane = shared.ring + offset(lane % 16, lane / 16);

    float O[kMTiles][D / 8][4] = {};
    float row_max[kMTiles][2], row_sum[kMTiles][2];
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
      row_max[m][0] = row_max[m][1] = -INFINITY;
      row_sum[m][0] = row_sum[m][1] = 0.f;
    }
    mbarrier_wait(shared.query_full, 0);
    for (int j = 0; j < tile.key_blocks; ++j) {
      const uint32_t stage = j % 2 * 2 * kTileBytes;
      mbarrier_wait(shared.full + 8 * (j % 2), j / 2 % 2);

      float S[kMTiles][Bc / 2];
      wgmma_fence();
      multiply_qk(S[0], q, wgmma_descriptor(shared.ring + stage, Bc * 128));
      wgmma_wait<0>(S);
      uint32_t P[kMTiles][Bc / 16][4];
#pragma unroll
      for (int m = 0; m < kMTiles; ++m)
        softmax(P[m], S[m], O[m], row_max[m], row_sum[m], in.scale_log2);
      multiply_pv(O, P, v_lane + stage + kTileBytes);
      if (j + 2 < tile.key_blocks) {
        __syncthreads();  // all warps have read K_j and V_j
        if (threadIdx.x == 0) load_key_block(in, shared, tile, j + 2);
      }
    }
    store_rows(in.O + query_row * D, memory + (shared.query - shared_address(memory)), warp_row, O,
               row_max, in.LSE ? in.LSE + query_row : nullptr, row_sum);
  }

  __device__ static void run(const fa::TmaParameters& in) {
    extern __shared__ unsigned char memory[];
    const Shared shared(shared_address(memory));
    if (threadIdx.x == 0) {
      mbarrier_init(shared.query_full, 1);
      for (int i = 0; i < 2; ++i) mbarrier_init(shared.full + 8 * i, 1);
      mbarrier_init_fence();
    }
    __syncthreads();

    const int head = blockIdx.z * gridDim.y + blockIdx.y, first_row = blockIdx.x * Br;
    const RowTile tile{head, first_row, in.seq_kv / Bc};
    const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * kMTiles * 16;  // uniform
    if (threadIdx.x == 0) {
      load_query(in, shared, tile);
      for (int j = 0; j < 2 && j < tile.key_blocks; ++j) load_key_block(in, shared, tile, j);
    }
    compute_tile(in, shared, tile, warp_row, memory);
  }
};

}  // namespace

#define INSTANCES(X)                                  \
  X(fa_21_wgmma_qk_d128, Attention<128, 128, 8, 128>) \
  X(fa_21_wgmma_qk_d64, Attention<128, 128, 8, 64>)

INSTANCES(FA_TMA_ENTRY)
static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
FA_RUNG(21_wgmma_qk, "20", sm_90a, f16, lse,
        "wgmma for Q K^T: four warps multiply 64 rows, and tensor cores read shared memory",
        kInstances, fa::plan_tma_tiles);
