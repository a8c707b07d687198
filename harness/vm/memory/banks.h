// SPDX-License-Identifier: MIT
// Shared memory: 32 banks of 4 bytes.
#pragma once

#include <cstdint>

namespace ptxvm {

struct Wavefronts {
  uint32_t actual = 0;
  uint32_t ideal = 0;  ///< For the same bytes without a conflict.
};

/// Passes over the banks that one request needs. Lanes of up to 4 bytes go together; of 8 bytes in
/// two groups of 16 lanes, of 16 bytes in four groups of 8. Groups of a load (`ld`) are twice as
/// large where every lane has the address of lane ^ 1, or every lane that of lane ^ 2. Within a
/// group the same word takes part once; two words of one bank take two passes. This is what the
/// hardware counters of an H200 say for every pattern of harness/vm/tests/wavefronts.jsonl.
Wavefronts shared_wavefronts(uint32_t mask, const uint32_t* addresses, uint32_t bytes,
                             bool is_load);

}  // namespace ptxvm
