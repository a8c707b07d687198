// SPDX-License-Identifier: MIT
// A whole kernel of warps with different roles: values, determinism, counts.
#include "catch.h"
#include "warp_specialized.h"

using namespace ptxvm_test;

namespace {

Module load() {
  return Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/warp_specialized.ptx");
}

}  // namespace

TEST_CASE("the kernel computes attention, with the same bits however it is run") {
  const Module module = load();
  for (int length : {256, 384, 768}) {
    INFO(length);
    const Problem problem(length, 2);
    Options one;
    one.threads = 1;
    const RungRun first = run_warp_specialized(module, problem, one);
    if (first.result.fault) FAIL(first.result.fault->format());
    CHECK(problem.error(first.output, 13) < 5e-4);
    for (int variant = 0; variant < 6; ++variant) {
      Options options;
      Counters counters;
      options.threads = 2;
      if (variant == 1) options.warp_order = Order::kReversed;
      if (variant == 2) options.cta_order = Order::kReversed;
      if (variant == 3) options.portable_math = true;
      if (variant == 4) options.observers = {&counters};
      if (variant == 5) options.shared_base = 1040;
      const RungRun other = run_warp_specialized(module, problem, options);
      INFO("variant " << variant);
      if (other.result.fault) FAIL(other.result.fault->format());
      REQUIRE(other.output == first.output);
      REQUIRE(other.result.steps == first.result.steps);
    }
  }
}

TEST_CASE("counts equal their closed forms") {
  constexpr uint64_t kLength = 512, kHeads = 2, kRow = kHeadDim * 2;
  Counters counters;
  Options options;
  options.observers = {&counters};
  REQUIRE(run_warp_specialized(load(), Problem(kLength, kHeads), options).result.ok());
  const Counts& c = counters.report().total;
  const uint64_t blocks = kLength / 128 * kHeads, tiles = kLength / 64;
  // By each of 8 consumer warps and tile: 8 + 4 multiplications, 2 fences, 2 commits, 2 waits.
  CHECK(c.of(CountClass::kWgmma) == blocks * 8 * tiles * 12);
  CHECK(c.of(CountClass::kWgmmaSync) == blocks * 8 * tiles * 6);
  // Q, K and V in panels of 64 columns by the producer; O by each consumer.
  CHECK(c.of(CountClass::kBulkCopy) == blocks * (2 + 4 * tiles + 2 * 2));
  CHECK(c.bulk_load.bytes == blocks * (128 + 2 * kLength) * kRow);
  CHECK(c.bulk_load.sectors * 32 == c.bulk_load.bytes);
  CHECK(c.bulk_store.bytes == kHeads * kLength * kRow);
  CHECK(c.bulk_store.sectors * 32 == c.bulk_store.bytes);
  // Each k step of Q K^T reads 64 + 64 rows of 32 bytes, of P V 16 rows of 256.
  CHECK(c.wgmma_bytes == blocks * 2 * tiles * (8 * 128 * 32 + 4 * 16 * 256));
}
