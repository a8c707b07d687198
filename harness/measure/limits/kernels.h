// SPDX-License-Identifier: MIT
// What the kernel files tell loops.cpp.
#pragma once

#include <cstddef>

namespace fa::limits {

struct Kernel {
  const void* function;
  int threads;
  std::size_t shared;
};

extern const Kernel kernel_limit_wgmma_registers, kernel_limit_wgmma_shared,
    kernel_limit_attention_registers, kernel_limit_attention_shared;
extern const Kernel kernel_limit_mma_sync, kernel_limit_ex2, kernel_limit_fma,
    kernel_limit_shared_load, kernel_limit_ldmatrix, kernel_limit_l2_read, kernel_limit_memory_read,
    kernel_limit_memory_copy;

}  // namespace fa::limits
