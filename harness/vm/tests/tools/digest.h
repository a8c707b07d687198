// SPDX-License-Identifier: MIT
// FNV-1a, 64 bits: enough to tell one generator from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ptxvm_vectors {

class Digest {
 public:
  void add(const void* data, size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) value_ = (value_ ^ p[i]) * 0x100000001b3;
  }
  std::string text() const {
    char out[32];
    std::snprintf(out, sizeof out, "fnv1a64:%016llx", static_cast<unsigned long long>(value_));
    return out;
  }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace ptxvm_vectors
