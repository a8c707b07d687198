// SPDX-License-Identifier: MIT
// Instances of DeepGEMM's products for sm_100a; recipes.py runs them.
#include <deep_gemm/impls/sm100_bf16_gemm.cuh>
#include <deep_gemm/impls/sm100_fp8_fp4_gemm_1d1d.cuh>

using cute::UMMA::Major;
using namespace deep_gemm;

template <Major kMajorB, uint32_t kCluster, class T>
inline constexpr auto product =
    &sm100_bf16_gemm_impl<Major::K, kMajorB, 0, 0, 0, 128, 128, 64, 1, 128, 128, 128, 4, 128, 128,
                          kCluster, false, 2, 64, false, false, GemmType::Normal, false, T, 100>;

template <uint32_t kCluster, class T>
inline constexpr auto scaled =
    &sm100_fp8_fp4_gemm_1d1d_impl<Major::K, Major::K, 32, 32, 128, 0, 0, 0, 128, 128, 128, 1, 128,
                                  128, 128, 4, 128, 128, kCluster, false, 2, false, false,
                                  GemmType::Normal, false, cutlass::float_e4m3_t, T,
                                  cutlass::bfloat16_t, epilogue::transform::EpilogueIdentity>;

void* const instances[] = {
    reinterpret_cast<void*>(product<Major::K, 1, cutlass::bfloat16_t>),
    reinterpret_cast<void*>(product<Major::MN, 2, float>),
    reinterpret_cast<void*>(scaled<2, cutlass::float_e4m3_t>),
    reinterpret_cast<void*>(scaled<1, cutlass::detail::float_e2m1_unpacksmem_t>)};
