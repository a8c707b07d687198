// SPDX-License-Identifier: MIT
// The occupancy arithmetic: known cases, and all cases against the calculator that comes with the
// CUDA toolkit, where there is one. gpu_test asks the driver.
#include "harness/environment/occupancy.h"

#include <climits>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define FA_HAS_CALCULATOR 1
#endif

#include "harness/tests/catch.h"

namespace fa {
namespace {

using Limits = std::vector<Limit>;

constexpr std::size_t kib(std::size_t count) {
  return count << 10;
}

Occupancy on(int sm, const BlockNeeds& needs) {
  const SmLimits* limits = sm_limits(sm);
  REQUIRE(limits);
  return occupancy(*limits, needs);
}

TEST_CASE("allocation units") {
  CHECK(allocated_registers(0) == 0);
  CHECK(allocated_registers(1) == 256);
  CHECK(allocated_registers(128) == 4096);
  CHECK(allocated_registers(129) == 4352);
  CHECK(allocated_registers(255) == 8192);
  CHECK(allocated_shared(0) == 1024);
  CHECK(allocated_shared(1) == 1152);
  CHECK(allocated_shared(kib(64)) == kib(65));
}

// 255 registers and 64 KiB for 4 warps: rung 06 at head_dim 128. 8 warps' registers fit everywhere;
// what the shared memory allows is 1, 2 or 3 such blocks.
TEST_CASE("one tile, three generations: the limit moves from shared memory to registers") {
  const BlockNeeds needs{.threads = 128, .registers = 255, .shared = kib(64)};
  const Occupancy a10 = on(86, needs);
  CHECK(a10.by_registers == 2);
  CHECK(a10.by_shared_memory == 1);
  CHECK(a10.blocks == 1);
  CHECK(a10.limits == Limits{Limit::shared_memory});
  const Occupancy a100 = on(80, needs);
  CHECK(a100.blocks == 2);
  CHECK(a100.limits == Limits{Limit::registers, Limit::shared_memory});
  const Occupancy h100 = on(90, needs);
  CHECK(h100.by_shared_memory == 3);
  CHECK(h100.blocks == 2);
  CHECK(h100.limits == Limits{Limit::registers});
}

TEST_CASE("registers come in steps: the most that a thread may have for so many warps") {
  for (const auto& [registers, warps] :
       {std::pair{255, 8}, {168, 12}, {128, 16}, {96, 20}, {80, 24}}) {
    CHECK(on(90, {.threads = 32, .registers = registers, .shared = 0}).by_registers == warps);
    if (registers == 255) continue;
    CHECK(on(90, {.threads = 32, .registers = registers + 1, .shared = 0}).by_registers ==
          warps - 4);
  }
}

// Q, K and V of an FP32 kernel at head_dim 64 on an A10.
TEST_CASE("a tile that fits exactly leaves no room for a second block") {
  CHECK(on(86, {.threads = 128, .registers = 128, .shared = kib(96)}).blocks == 1);
  CHECK(on(86, {.threads = 128, .registers = 128, .shared = kib(48)}).blocks == 2);
}

TEST_CASE("each limit alone") {
  CHECK(on(90, {.threads = 256, .registers = 16, .shared = 0}).limits == Limits{Limit::warps});
  CHECK(on(90, {.threads = 256, .registers = 16, .shared = 0}).blocks == 8);
  CHECK(on(89, {.threads = 32, .registers = 16, .shared = 0}).limits == Limits{Limit::blocks});
  CHECK(on(89, {.threads = 32, .registers = 16, .shared = 0}).blocks == 24);
  CHECK(on(86, {.threads = 32, .registers = 16, .shared = 0}).blocks == 16);
  CHECK(on(90, {.threads = 128, .registers = 168, .shared = 0}).limits == Limits{Limit::registers});
  // 168 registers are 5376 for a warp: 3 warps in each quarter of the register file.
  CHECK(on(90, {.threads = 128, .registers = 168, .shared = 0}).blocks == 3);
  CHECK(on(80, {.threads = 64, .registers = 40, .shared = kib(40)}).blocks == 4);
  CHECK(on(80, {.threads = 64, .registers = 40, .shared = kib(40)}).limits ==
        Limits{Limit::shared_memory});
}

TEST_CASE("a block that does not fit") {
  CHECK(on(90, {.threads = 128, .registers = 32, .shared = kib(227)}).blocks == 1);
  const Occupancy shared = on(90, {.threads = 128, .registers = 32, .shared = kib(227) + 1});
  CHECK(shared.blocks == 0);
  CHECK(shared.limits == Limits{Limit::shared_memory});
  CHECK(on(86, {.threads = 128, .registers = 32, .shared = kib(100)}).blocks == 0);
  CHECK(on(90, {.threads = 512, .registers = 255, .shared = 0}).limits == Limits{Limit::registers});
  CHECK(on(90, {.threads = 512, .registers = 255, .shared = 0}).blocks == 0);
  CHECK(on(90, {.threads = 1025, .registers = 16, .shared = 0}).limits == Limits{Limit::warps});
}

TEST_CASE("a card that is not known has no limits") {
  CHECK(sm_limits(75) == nullptr);
  CHECK(limits_of(75, {.threads = 128, .registers = 255, .shared = 0}).empty());
  CHECK(limits_of(86, {.threads = 128, .registers = 255, .shared = kib(64)}) ==
        std::vector{Limit::shared_memory});
}

#ifdef FA_HAS_CALCULATOR
/// A card as the runtime would describe it.
cudaOccDeviceProp described(const SmLimits& limits) {
  cudaOccDeviceProp properties;
  properties.computeMajor = limits.sm / 10;
  properties.computeMinor = limits.sm % 10;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsPerMultiprocessor = limits.warps * 32;
  properties.regsPerBlock = 65536;
  properties.regsPerMultiprocessor = limits.registers;
  properties.warpSize = 32;
  properties.sharedMemPerBlock = kib(48);
  properties.sharedMemPerMultiprocessor = limits.shared;
  properties.sharedMemPerBlockOptin = limits.shared_per_block;
  properties.reservedSharedMemPerBlock = 1024;
  properties.numSms = 1;
  return properties;
}

cudaOccResult calculate(const SmLimits& limits, const BlockNeeds& needs) {
  const cudaOccDeviceProp properties = described(limits);
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = INT_MAX;
  attributes.numRegs = needs.registers;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = needs.shared;
  const cudaOccDeviceState state;
  cudaOccResult result{};
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state,
                                              needs.threads, needs.shared) != CUDA_OCC_SUCCESS) {
    FAIL("the calculator refuses its input");
  }
  return result;
}

TEST_CASE("equal to the toolkit's calculator") {
  int cases = 0, differences = 0;
  for (const SmLimits& limits : known_sm_limits()) {
    // Its table of blocks is the toolkit's own, so this checks ours.
    for (int threads = 32; threads <= 1056; threads += 32) {
      for (int registers = 1; registers <= 255; ++registers) {
        for (const std::size_t shared : {std::size_t{0}, std::size_t{1}, kib(20) + 100, kib(48),
                                         kib(64), kib(99), kib(99) + 1, kib(163), kib(227)}) {
          const BlockNeeds needs{.threads = threads, .registers = registers, .shared = shared};
          // It knows no shared memory larger than the SM's.
          if (allocated_shared(shared) > limits.shared) continue;
          const cudaOccResult expected = calculate(limits, needs);
          const Occupancy found = occupancy(limits, needs);
          ++cases;
          if (found.blocks != expected.activeBlocksPerMultiprocessor ||
              found.by_registers != expected.blockLimitRegs ||
              found.by_shared_memory != expected.blockLimitSharedMem ||
              found.by_warps != expected.blockLimitWarps ||
              found.by_blocks != expected.blockLimitBlocks) {
            CAPTURE(limits.sm, threads, registers, shared);
            if (++differences < 10) CHECK(found.blocks == expected.activeBlocksPerMultiprocessor);
          }
        }
      }
    }
  }
  CHECK(cases > 100'000);
  CHECK(differences == 0);
}
#endif

}  // namespace
}  // namespace fa
