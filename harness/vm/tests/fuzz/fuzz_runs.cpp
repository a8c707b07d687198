// SPDX-License-Identifier: MIT
#include "fuzz/generated.h"
#include "fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ptxvm_fuzz::one_input(ptxvm_fuzz::Generator({data, size}).kernel());
  return 0;
}
