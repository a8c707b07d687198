// Exercise 11: a ring of slots between a producer and two consumers.
// Warp 0 starts TMA copies; warps 1 and 2 compute, a thread a query row. See docs/exercises.md.

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/rung.h"

namespace {

constexpr int kKeys = 8;   // keys of a step
constexpr int kSlots = 3;  // K0 V0 K1 V1 ... go round them

struct Ring {
  static constexpr fa::Tile kTile{64, kKeys, 3};
  static constexpr int kHeadDim = 64, kThreads = 96, kBlocksPerSm = 1;
  static constexpr int kQueryBytes = 64 * 128, kSlotBytes = kKeys * 128, kAlign = 1024;
  static constexpr std::size_t kSharedBytes =
      kAlign + kQueryBytes + kSlots * kSlotBytes + 8 * (1 + 2 * kSlots);

  // Your code: begin. Each slot has two mbarriers. `full` ends a phase when the bytes of a copy
  // have arrived; `empty` ends one when both consumer warps have arrived. mbarrier_wait(barrier,
  // parity) returns when the phase of that parity has ended: 0 for the first, 1 for the second, 0
  // for the third ... On a fresh barrier parity 1 returns at once. As shipped nobody waits before a
  // slot is overwritten, and every round waits for parity 0.
  struct Position {
    int slot = 0, parity = 0;

    __device__ void advance() {
      if (++slot == kSlots) slot = 0;
    }
  };

  // The producer, before it starts a copy into the slot.
  __device__ static void wait_empty(uint32_t, Position) {}

  // A consumer warp, after its lanes have read the slot.
  __device__ static void release(uint32_t, Position) {}
  // Your code: end.

  // Elements d and d + 1 of a row in a swizzled tile.
  __device__ static float2 pair(const unsigned char* tile, int row, int d) {
    const int at = row * 128 + ((d / 8 ^ (row & 7)) << 4) + d % 8 * 2;
    return __half22float2(*reinterpret_cast<const half2*>(tile + at));
  }

  __device__ static void produce(const fa::TmaParameters& in, uint32_t query, uint32_t ring,
                                 uint32_t query_full, uint32_t full, uint32_t empty, int head) {
    mbarrier_expect(query_full, kQueryBytes);
    tma_load(query, in.Q, 0, static_cast<int>(blockIdx.x) * 64, 0, head, query_full);
    Position at;
    const auto load = [&](const CUtensorMap& map, int key) {
      wait_empty(empty, at);
      mbarrier_expect(full + 8 * at.slot, kSlotBytes);
      tma_load(ring + at.slot * kSlotBytes, map, 0, key, 0, head, full + 8 * at.slot);
      at.advance();
    };
    for (int j = 0; j < in.seq_kv; j += kKeys) {
      load(in.K, j);
      load(in.V, j);
    }
  }

  __device__ static void consume(const fa::TmaParameters& in, const unsigned char* query,
                                 const unsigned char* ring, uint32_t query_full, uint32_t full,
                                 uint32_t empty, int head) {
    const int row = threadIdx.x - 32;  // in the tile
    float q[kHeadDim], o[kHeadDim] = {}, m = -INFINITY, l = 0.f;
    mbarrier_wait(query_full, 0);
#pragma unroll
    for (int d = 0; d < kHeadDim; d += 2) {
      const float2 both = pair(query, row, d);
      q[d] = both.x, q[d + 1] = both.y;
    }
    Position at;
    for (int j = 0; j < in.seq_kv; j += kKeys) {
      float s[kKeys], new_m = m;
      mbarrier_wait(full + 8 * at.slot, at.parity);
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        s[n] = 0.f;
#pragma unroll
        for (int d = 0; d < kHeadDim; d += 2) {
          const float2 both = pair(ring + at.slot * kSlotBytes, n, d);
          s[n] += q[d] * both.x + q[d + 1] * both.y;
        }
        s[n] *= in.scale_log2;
        new_m = fmaxf(new_m, s[n]);
      }
      release(empty, at);  // K
      at.advance();
      const float alpha = ex2_approx(m - new_m);
      m = new_m;
      l *= alpha;
#pragma unroll
      for (int d = 0; d < kHeadDim; ++d) o[d] *= alpha;
      mbarrier_wait(full + 8 * at.slot, at.parity);
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        const float p = ex2_approx(s[n] - m);
        l += p;
#pragma unroll
        for (int d = 0; d < kHeadDim; d += 2) {
          const float2 both = pair(ring + at.slot * kSlotBytes, n, d);
          o[d] += p * both.x, o[d + 1] += p * both.y;
        }
      }
      release(empty, at);  // V
      at.advance();
    }
    half* const out = in.O + (int64_t{head} * in.seq_q + blockIdx.x * 64 + row) * kHeadDim;
#pragma unroll
    for (int d = 0; d < kHeadDim; d += 2)
      *reinterpret_cast<half2*>(out + d) = __floats2half2_rn(o[d] / l, o[d + 1] / l);
  }

  __device__ static void run(const fa::TmaParameters& in) {
    extern __shared__ unsigned char memory[];
    const uint32_t query = (shared_address(memory) + kAlign - 1) & ~(kAlign - 1);
    const uint32_t ring = query + kQueryBytes, query_full = ring + kSlots * kSlotBytes;
    const uint32_t full = query_full + 8, empty = full + 8 * kSlots;
    const int head = blockIdx.z * gridDim.y + blockIdx.y;
    if (threadIdx.x == 0) {
      mbarrier_init(query_full, 1);
      for (int i = 0; i < kSlots; ++i) {
        mbarrier_init(full + 8 * i, 1);
        mbarrier_init(empty + 8 * i, 2);
      }
      mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      if (elect_one()) produce(in, query, ring, query_full, full, empty, head);
    } else {
      const unsigned char* const tiles = memory + (query - shared_address(memory));
      consume(in, tiles, tiles + kQueryBytes, query_full, full, empty, head);
    }
  }
};

}  // namespace

FA_TMA_ENTRY(fa_ex11_ring, Ring)
static const fa::Instance kInstances[] = {FA_INSTANCE(fa_ex11_ring, Ring)};
FA_RUNG(ex11_ring, "", sm_90a, f16, none, "a ring of mbarriers", kInstances, fa::plan_tma_tiles);
