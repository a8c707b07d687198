// Whole attention kernels: values, determinism, counts in closed form.
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

TEST_CASE("counts equal their closed forms") {
  constexpr uint64_t kLength = 256, kHeads = 2, kDim = kHeadDim;
  const Problem problem(kLength, kHeads);
  for (const Rung& rung : kRungs) {
    INFO(rung.entry);
    Counters counters;
    Options options;
    options.observers = {&counters};
    REQUIRE(run_rung(load(rung), rung, problem, options).result.ok());
    const Counts& c = counters.report().total;
    // Two products of length x length x dim, in steps of 16 x 8 x 16.
    CHECK(c.of(CountClass::kTensor) == 2 * kHeads * kLength * kLength * kDim / (16 * 8 * 16));
    // Each block reads its rows of Q, and all of K and V.
    const uint64_t blocks = kLength / static_cast<uint64_t>(rung.query_rows) * kHeads;
    const uint64_t row = kDim * 2;
    CHECK(c.global_copy.bytes == kHeads * kLength * row + blocks * 2 * kLength * row);
    CHECK(c.global_copy.sectors * 32 == c.global_copy.bytes);
    CHECK(c.of(CountClass::kCpAsync) * 32 * 16 == c.global_copy.bytes);
    CHECK(c.global_store.bytes == kHeads * kLength * row);
    CHECK(c.global_store.sectors * 32 == c.global_store.bytes);
    // Rows of 256 bytes put the eight rows of a matrix into the same banks, unless they are
    // swizzled.
    const uint64_t ways = std::string(rung.file) == "01_base" ? 8 : 1;
    CHECK(c.ldmatrix.wavefronts == ways * c.ldmatrix.ideal);
  }
}
