// SPDX-License-Identifier: MIT
// Two instances of DeepGEMM's product of 8-bit floats; recipes.py runs them.
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

template <uint32_t kColumns, uint32_t kSwizzle, uint32_t kCluster, uint32_t kBlocks>
inline constexpr auto kernel =
    &deep_gemm::sm90_fp8_gemm_1d2d_impl<cute::UMMA::Major::K, 0, 0, 0, 1, 128, kColumns, 128, 128,
                                        128, kSwizzle, 4, 128, 256, kCluster, false, kBlocks,
                                        deep_gemm::GemmType::Normal, cutlass::bfloat16_t,
                                        deep_gemm::epilogue::transform::EpilogueIdentity>;

void* const instances[] = {reinterpret_cast<void*>(kernel<128, 128, 1, 3>),
                           reinterpret_cast<void*>(kernel<96, 64, 2, 4>)};
