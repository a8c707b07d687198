// SPDX-License-Identifier: MIT
// In place of tensor_checks.cpp in a build without tensor memory, where none of this is called.
#include "observe/block_checks.h"

namespace ptxvm::observe {

bool uses_tensor_memory(const Kernel&) {
  return false;
}
void RaceProbe::tensor(const TensorEvent&) {}
void RaceProbe::arrive_commit(const MbarrierEvent&, Clocks::Release&) {}
void RaceProbe::add_tensor(Problem, Hazard, const TensorAccess&, const TensorUse&, uint32_t) {}
void RaceProbe::exit_tensor(uint32_t) {}

}  // namespace ptxvm::observe
