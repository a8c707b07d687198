// a1_thread_per_row parent: a0
// Idea: one kernel for all three steps. A thread owns a query row: its scores of one tile, its row
// of O, its maximum and sum are registers, the online softmax needs nobody else, S is never
// written.
//
// Tile              128 rows, Bc = 16, 4 warps
// Shared memory     Q 64 KB + K 8 KB + V 8 KB at head_dim 128
// Expected effect   no N^2 traffic and no N^2 memory. Every operand of a product comes from shared
//                   memory: a float4 of K or V serves four multiply-adds, and that is the limit.

#include <cfloat>

#include "kernels/catalogue.h"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/shared.cuh"

namespace {

template <int Br, int Bc, int D>
struct Attention {
  static constexpr int kThreads = Br;
  static constexpr std::size_t kSharedBytes = (Br + 2 * Bc) * D * sizeof(float);

  // Copies Rows rows of D floats.
  template <int Rows>
  __device__ static void load_tile(float* shared, const float* global) {
#pragma unroll
    for (int i = threadIdx.x * 4; i < Rows * D; i += kThreads * 4)
      *reinterpret_cast<float4*>(shared + i) = *reinterpret_cast<const float4*>(global + i);
  }
};

template <int Br, int Bc, int D>
__device__ __forceinline__ void attention(const float* Q, const float* K, const float* V,
                                          float* O_out, int seq_q, int seq_kv, float scale,
                                          int diagonal) {
  using A = Attention<Br, Bc, D>;
  extern __shared__ __align__(16) float shared[];
  float* const q_tile = shared;
  float* const k_tile = q_tile + Br * D;
  float* const v_tile = k_tile + Bc * D;
  const int row = blockIdx.x * Br + threadIdx.x;
  const int64_t head = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  Q += (head * seq_q + row) * D;
  O_out += (head * seq_q + row) * D;
  K += head * seq_kv * D;
  V += head * seq_kv * D;

  // A column of float4 for each thread: lanes read neighbours, and O alone takes D registers.
  float* const q = q_tile + threadIdx.x * 4;
  for (int d = 0; d < D; d += 4)
    *reinterpret_cast<float4*>(q + d * Br) = *reinterpret_cast<const float4*>(Q + d);
  float O[D] = {};
  float row_max = -FLT_MAX, row_sum = 0.f;  // not -INFINITY: -INFINITY minus itself is NaN

  for (int j = 0; j < seq_kv; j += Bc) {
    A::template load_tile<Bc>(k_tile, K + int64_t{j} * D);
    A::template load_tile<Bc>(v_tile, V + int64_t{j} * D);
    __syncthreads();  // K_j and V_j have landed

    float S[Bc] = {};
#pragma unroll 2
    for (int d = 0; d < D; d += 4) {
      const float4 x = load_shared_v4(q + d * Br);
#pragma unroll
      for (int n = 0; n < Bc; ++n) {
        const float4 y = load_shared_v4(k_tile + n * D + d);
        S[n] += x.x * y.x;
        S[n] += x.y * y.y;
        S[n] += x.z * y.z;
        S[n] += x.w * y.w;
      }
    }
    float new_max = row_max;
#pragma unroll
    for (int n = 0; n < Bc; ++n) {
      S[n] = j + n <= row + diagonal ? S[n] * scale : -INFINITY;
      new_max = fmaxf(new_max, S[n]);
    }
    const float alpha = exp_approx(row_max - new_max);
    row_max = new_max;
    row_sum *= alpha;
#pragma unroll
    for (int d = 0; d < D; ++d) O[d] *= alpha;
#pragma unroll
    for (int n = 0; n < Bc; ++n) {
      const float p = exp_approx(S[n] - new_max);
      row_sum += p;
#pragma unroll
      for (int d = 0; d < D; d += 4) {
        const float4 v = load_shared_v4(v_tile + n * D + d);
        O[d] += p * v.x;
        O[d + 1] += p * v.y;
        O[d + 2] += p * v.z;
        O[d + 3] += p * v.w;
      }
    }
    __syncthreads();  // nobody reads K_j and V_j any more
  }

  // The largest score adds e^0; only a row without a visible key has a sum below 1: 0.
  const float divisor = fmaxf(row_sum, 1.f);
#pragma unroll
  for (int d = 0; d < D; d += 4)
    *reinterpret_cast<float4*>(O_out + d) =
        float4{__fdividef(O[d], divisor), __fdividef(O[d + 1], divisor),
               __fdividef(O[d + 2], divisor), __fdividef(O[d + 3], divisor)};
}

}  // namespace

#define ENTRY(name, Br, Bc, D)                                                              \
  extern "C" __global__ void __launch_bounds__(Br)                                          \
      name(const float* Q, const float* K, const float* V, float* O, int seq_q, int seq_kv, \
           float scale, int diagonal) {                                                     \
    attention<Br, Bc, D>(Q, K, V, O, seq_q, seq_kv, scale, diagonal);                       \
  }
#define INSTANCE(name, Br, Bc, D)                                            \
  {#name, reinterpret_cast<const void*>(name), D, fa::Tile{Br, Bc, Br / 32}, \
   Attention<Br, Bc, D>::kSharedBytes},

#define INSTANCES(X)                         \
  X(fa_a1_thread_per_row_d128, 128, 16, 128) \
  X(fa_a1_thread_per_row_d64, 128, 16, 64)   \
  X(fa_a1_thread_per_row_d32, 128, 16, 32)

INSTANCES(ENTRY)

namespace {

const fa::Instance kInstances[] = {INSTANCES(INSTANCE)};

fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,
                    const fa::DeviceDescription&) {
  if (auto refused = fa::refuse_partial_tiles(problem, instance.tile)) return *refused;
  const auto seq_q = static_cast<std::int32_t>(problem.seq_q);
  const auto seq_kv = static_cast<std::int32_t>(problem.seq_kv);
  fa::Launch launch;
  launch.entry = instance.entry;
  launch.kernel = instance.kernel;
  launch.grid = {problem.seq_q / instance.tile.Br, problem.heads, problem.batch};
  launch.block = instance.tile.warps * 32;
  launch.dynamic_shared = instance.shared_bytes;
  launch.arguments = {fa::Tensor::q, fa::Tensor::k, fa::Tensor::v, fa::Tensor::o, seq_q, seq_kv,
                      static_cast<float>(problem.scale()),
                      // The last key that query 0 sees; without a mask, one past the end.
                      problem.causal ? seq_kv - seq_q : seq_kv};
  return fa::LaunchPlan{{launch}};
}

}  // namespace

namespace fa {
extern const RungKernels kernels_a1_thread_per_row;
const RungKernels kernels_a1_thread_per_row{kInstances, plan};
}  // namespace fa
