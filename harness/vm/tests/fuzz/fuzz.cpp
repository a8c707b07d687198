// SPDX-License-Identifier: MIT
#include "fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ptxvm_fuzz::one_input(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
