// SPDX-License-Identifier: MIT
// CUTLASS's GEMM, in a kernel that makes its parameters. recipes.py says how it is launched.
#include <cutlass/gemm/device/gemm.h>

// D (m x n) = A (m x k) B (k x n).
template <class Gemm, class Input, class Output>
__device__ void multiply(const Input* a, const Input* b, Output* d, int m, int n, int k, int lda,
                         int ldb) {
  using Kernel = typename Gemm::GemmKernel;
  using Tile = typename Gemm::ThreadblockShape;
  extern __shared__ __align__(16) char storage[];
  const cutlass::gemm::GemmCoord problem(m, n, k);
  const auto tiles = typename Gemm::ThreadblockSwizzle().get_tiled_shape(
      problem, {Tile::kM, Tile::kN, Tile::kK}, 1);
  const typename Kernel::Params params(problem, tiles, {const_cast<Input*>(a), lda},
                                       {const_cast<Input*>(b), ldb}, {d, n}, {d, n}, {1.0f, 0.0f});
  Kernel()(params, reinterpret_cast<typename Kernel::SharedStorage&>(storage));
}

using Half = cutlass::half_t;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
template <int kM, int kN, int kK>
using Size = cutlass::gemm::GemmShape<kM, kN, kK>;

// 128 threads, a 64 x 64 tile.
extern "C" __global__ void tensor_cores(const Half* a, const Half* b, Half* d, int m, int n,
                                        int k) {
  using Gemm = cutlass::gemm::device::Gemm<Half, Rows, Half, Columns, Half, Rows, float,
                                           cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
                                           Size<64, 64, 32>, Size<32, 32, 32>, Size<16, 8, 16>>;
  multiply<Gemm>(a, b, d, m, n, k, k, k);
}

// 256 threads, a 128 x 128 tile.
extern "C" __global__ void cuda_cores(const float* a, const float* b, float* d, int m, int n,
                                      int k) {
  using Gemm = cutlass::gemm::device::Gemm<float, Rows, float, Rows, float, Rows, float,
                                           cutlass::arch::OpClassSimt, cutlass::arch::Sm50>;
  multiply<Gemm>(a, b, d, m, n, k, k, n);
}
