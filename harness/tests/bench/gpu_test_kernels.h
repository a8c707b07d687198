// SPDX-License-Identifier: MIT
// Kernels with known faults and known durations, and the words by which ctest sees a skip.
#pragma once

#include "harness/device/gpu.h"
#include "harness/tests/catch.h"

namespace fa::test {

/// Writes 1 to the element of the output at offset (in elements, may be outside).
extern const void* const kStrayWrite;  // (half* O, int64 offset)
/// Runs for a number of nanoseconds.
extern const void* const kSpin;  // (int64 nanoseconds)
/// Uses all the dynamic shared memory it is given and writes its size to O.
extern const void* const kShared;  // (half* O, int32 bytes)
/// Writes what a counter holds to O[0], then another value to the counter.
extern const void* const kCounter;  // (half* O, unsigned* counter, int32 left)
/// Counts the words in which two buffers differ.
extern const void* const kCompare;  // (const u32* a, const u32* b, int64 words, u64* differences)

inline bool no_gpu() {
  std::string why;
  if (gpu_count(&why) > 0) return false;
  WARN("SKIPPED: no GPU (" << why << ")");
  return true;
}

inline Launch single_block(const void* kernel, std::vector<Argument> arguments,
                           std::size_t shared = 0) {
  Launch launch;
  launch.entry = "test_kernel";
  launch.kernel = kernel;
  launch.block = 32;
  launch.dynamic_shared = shared;
  launch.arguments = std::move(arguments);
  return launch;
}

}  // namespace fa::test
