// SPDX-License-Identifier: MIT
// Whole attention kernels: values and determinism. Their counts are those of
// device/claims_test.cpp.
#include "ladder.h"

#include "catch.h"

using namespace ptxvm_test;

namespace {

Module load(const Rung& rung) {
  return Module::load(std::string(PTXVM_TEST_PTX_DIR) + "/" + rung.file + ".ptx");
}

}  // namespace

TEST_CASE("every rung computes attention, with the same bits however it is run") {
  const Problem problem(256, 2);
  for (const Rung& rung : kRungs) {
    INFO(rung.entry);
    const Module module = load(rung);
    const RungRun first = run_rung(module, rung, problem, {});
    if (first.result.fault) FAIL(first.result.fault->format());
    CHECK(problem.error(first.output, 13) < 5e-4);
    for (int variant = 0; variant < 6; ++variant) {
      Options options;
      Counters counters;
      if (variant == 0) options.threads = 1;
      if (variant == 1) options.warp_order = Order::kReversed;
      if (variant == 2) options.cta_order = Order::kReversed;
      if (variant == 3) options.portable_math = true;
      if (variant == 4) options.observers = {&counters};
      if (variant == 5) options.shared_base = 2048;
      const RungRun other = run_rung(module, rung, problem, options);
      INFO("variant " << variant);
      REQUIRE(!other.result.fault);
      REQUIRE(other.output == first.output);
      REQUIRE(other.result.steps == first.result.steps);
    }
  }
}
