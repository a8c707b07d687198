// Attention by warps with different roles: one producer warpgroup that loads with TMA into a ring
// of two stages, two consumer warpgroups that multiply with wgmma, Q K^T from shared memory and P V
// with P in registers. They take turns by named barriers. head_dim 128, f16, no mask; the length is
// a multiple of 128. A test subject, not a fast kernel.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace {

constexpr int kDim = 128;
constexpr int kQueryRows = 128;  // 64 for each consumer
constexpr int kKeys = 64;        // of a stage
constexpr int kStages = 2;
constexpr int kPanel = 64;  // columns of a swizzled row of 128 bytes
constexpr int kConsumers = 2;
constexpr int kThreads = 128 * (1 + kConsumers);
constexpr uint32_t kQueryBytes = kQueryRows * kDim * 2;
constexpr uint32_t kStageBytes = kKeys * kDim * 2;

__device__ void mbarrier_init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ void mbarrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void mbarrier_wait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ void tensor_load(uint32_t to, const CUtensorMap* map, int column, int row, int head,
                            uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(head), "r"(barrier)
      : "memory");
}
__device__ void tensor_store(const CUtensorMap* map, int column, int row, int head, uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
      "r"(column), "r"(row), "r"(head), "r"(from)
      : "memory");
}

// A whole tile of `rows` x 128: two panels.
__device__ void load_tile(uint32_t to, const CUtensorMap* map, int row, int rows, int head,
                          uint32_t barrier) {
  for (int panel = 0; panel < kDim / kPanel; ++panel) {
    tensor_load(to + panel * rows * 128, map, panel * kPanel, row, head, barrier);
  }
}

__device__ bool elect_one() {
  uint32_t leads;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(leads));
  return leads;
}

__device__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// 128-byte swizzle; groups of eight rows are 1024 bytes apart.
__device__ uint64_t descriptor(uint32_t address, uint32_t leading) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) |
         static_cast<uint64_t>(leading >> 4) << 16 | static_cast<uint64_t>(1024 >> 4) << 32 |
         uint64_t{1} << 62;
}

#define F8(d, i)                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])

// S = Q K^T, or S += Q K^T: 64 x 64.
__device__ void multiply_qk(float (&s)[32], uint64_t q, uint64_t k, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, 0, 0;\n}"
      : F8(s, 0), F8(s, 8), F8(s, 16), F8(s, 24)
      : "l"(q), "l"(k), "r"(accumulate));
}

// O += P V: 64 x 128.
__device__ void multiply_pv(float (&o)[64], const uint32_t (&p)[4], uint64_t v) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : F8(o, 0), F8(o, 8), F8(o, 16), F8(o, 24), F8(o, 32), F8(o, 40), F8(o, 48), F8(o, 56)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v));
}

__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ uint32_t pack(float low, float high) {
  const __half2 h = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&h);
}

// Shared memory, from a multiple of 1024: Q (later O), K and V of each stage, barriers.
struct Layout {
  uint32_t q, k, v, q_full, k_full, k_empty, v_full, v_empty;

  __device__ explicit Layout(uint32_t base) {
    q = base;
    k = q + kQueryBytes;
    v = k + kStages * kStageBytes;
    q_full = v + kStages * kStageBytes;
    k_full = q_full + 8;
    k_empty = k_full + 8 * kStages;
    v_full = k_empty + 8 * kStages;
    v_empty = v_full + 8 * kStages;
  }
};

__device__ void produce(const Layout& at, const CUtensorMap* q, const CUtensorMap* k,
                        const CUtensorMap* v, int first_row, int head, int tiles) {
  mbarrier_expect(at.q_full, kQueryBytes);
  load_tile(at.q, q, first_row, kQueryRows, head, at.q_full);
  for (int j = 0; j < tiles; ++j) {
    const int stage = j % kStages, parity = j / kStages & 1;
    mbarrier_wait(at.k_empty + 8 * stage, parity ^ 1);
    mbarrier_expect(at.k_full + 8 * stage, kStageBytes);
    load_tile(at.k + stage * kStageBytes, k, j * kKeys, kKeys, head, at.k_full + 8 * stage);
    mbarrier_wait(at.v_empty + 8 * stage, parity ^ 1);
    mbarrier_expect(at.v_full + 8 * stage, kStageBytes);
    load_tile(at.v + stage * kStageBytes, v, j * kKeys, kKeys, head, at.v_full + 8 * stage);
  }
}

// One row in two: each thread owns rows lane/4 and lane/4 + 8 of its warp's 16.
struct Softmax {
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, rescale[2];

  __device__ void step(float (&s)[32], float scale) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float m = s[2 * r];
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        if ((i >> 1 & 1) == r) m = fmaxf(m, s[i]);
      }
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
      m = fmaxf(largest[r], m * scale);
      rescale[r] = exp2_fast(largest[r] - m);
      largest[r] = m;
      sum[r] *= rescale[r];
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        if ((i >> 1 & 1) != r) continue;
        s[i] = exp2_fast(fmaf(s[i], scale, -m));
        sum[r] += s[i];
      }
    }
  }
};

__device__ void consume(const Layout& at, const CUtensorMap* out, int first_row, int head,
                        int tiles, float scale) {
  const int group = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
  const int warp = thread / 32, lane = thread % 32;
  float o[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) o[i] = 0;
  Softmax softmax;
  const uint64_t q = descriptor(at.q + group * 64 * 128, 16);
  // The consumers take turns: barrier 1 + group is this one's turn.
  if (group == 1) asm volatile("bar.arrive 1, 256;" ::: "memory");
  mbarrier_wait(at.q_full, 0);
  for (int j = 0; j < tiles; ++j) {
    const int stage = j % kStages, parity = j / kStages & 1;
    float s[32];
    uint32_t p[4][4];
    mbarrier_wait(at.k_full + 8 * stage, parity);
    if (group == 0) {
      asm volatile("bar.sync 1, 256;" ::: "memory");
    } else {
      asm volatile("bar.sync 2, 256;" ::: "memory");
    }
    wgmma_fence();
    const uint64_t k = descriptor(at.k + stage * kStageBytes, 16);
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      const int panel = step / 4, within = step % 4 * 2;
      multiply_qk(s, q + (panel * (kQueryRows * 128 >> 4) + within),
                  k + (panel * (kKeys * 128 >> 4) + within), step > 0);
    }
    wgmma_commit();
    if (group == 0) {
      asm volatile("bar.arrive 2, 256;" ::: "memory");
    } else {
      asm volatile("bar.arrive 1, 256;" ::: "memory");
    }
    wgmma_wait<0>();
    if (thread == 0) mbarrier_arrive(at.k_empty + 8 * stage);
    softmax.step(s, scale);
#pragma unroll
    for (int i = 0; i < 16; ++i) p[i / 4][i % 4] = pack(s[2 * i], s[2 * i + 1]);
#pragma unroll
    for (int i = 0; i < 64; ++i) o[i] *= softmax.rescale[i >> 1 & 1];
    mbarrier_wait(at.v_full + 8 * stage, parity);
    wgmma_fence();
    const uint64_t v = descriptor(at.v + stage * kStageBytes, kKeys * 128);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) multiply_pv(o, p[step], v + step * 128);
    wgmma_commit();
    wgmma_wait<0>();
    if (thread == 0) mbarrier_arrive(at.v_empty + 8 * stage);
  }
  if (group == 0) asm volatile("bar.sync 1, 256;" ::: "memory");

  // O takes the place of this consumer's rows of Q, in the same layout.
  float inverse[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float sum = softmax.sum[r];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    inverse[r] = __fdividef(1.0f, sum);
  }
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int r = i & 1, chunk = i / 2, row = group * 64 + warp * 16 + lane / 4 + 8 * r;
    const uint32_t address = at.q + chunk / 8 * (kQueryRows * 128) + row * 128 +
                             ((chunk % 8 ^ (row & 7)) << 4) + lane % 4 * 4;
    const uint32_t value = pack(o[2 * i] * inverse[r], o[2 * i + 1] * inverse[r]);
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (group == 0) {
    asm volatile("bar.sync 3, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 4, 128;" ::: "memory");
  }
  if (warp == 0 && elect_one()) {
    for (int panel = 0; panel < kDim / kPanel; ++panel) {
      tensor_store(out, panel * kPanel, first_row + group * 64, head,
                   at.q + panel * (kQueryRows * 128) + group * 64 * 128);
    }
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

}  // namespace

/// One block for 128 rows of one head. `scale` is the factor of the scores times log2(e). The maps
/// are {128, length, heads} with boxes {64, 128, 1} (q), {64, 64, 1} (k, v, out), swizzle 128B.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    warp_specialized(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                     const __grid_constant__ CUtensorMap v, const __grid_constant__ CUtensorMap out,
                     int length, float scale) {
  extern __shared__ unsigned char memory[];
  const auto raw = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const Layout at((raw + 1023) & ~1023u);
  if (threadIdx.x == 0) {
    mbarrier_init(at.q_full, 1);
    for (int i = 0; i < kStages; ++i) {
      mbarrier_init(at.k_full + 8 * i, 1);
      mbarrier_init(at.v_full + 8 * i, 1);
      mbarrier_init(at.k_empty + 8 * i, kConsumers);
      mbarrier_init(at.v_empty + 8 * i, kConsumers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int first_row = blockIdx.x * kQueryRows, head = blockIdx.y, tiles = length / kKeys;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x < 32 && elect_one()) produce(at, &q, &k, &v, first_row, head, tiles);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(at, &out, first_row, head, tiles, scale);
  }
}
