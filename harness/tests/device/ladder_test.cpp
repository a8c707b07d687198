// Every instance passes the gate in the virtual machine, with the same bits however it is run.
#include <array>
#include <string>

#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;

namespace {

/// Several batches and heads where the problem is small, one of each where it is large.
constexpr std::array<std::array<std::int64_t, 3>, 3> kShapes{
    {{256, 2, 3}, {512, 1, 2}, {1024, 1, 1}}};

HostTensor run(const VmOptions& options, const LaunchPlan& plan, const Problem& problem,
               const Inputs& inputs) {
  VmDevice device(options);
  device.load(problem, inputs);
  device.launch(plan);
  return device.download_output();
}

}  // namespace

TEST_CASE("every instance passes the gate and gives the same bits in every order of warps") {
  for (const auto& [seq, batch, heads] : kShapes) {
    for (const int dim : {64, 128}) {
      const Problem problem = square(seq, dim, heads, batch);
      const Inputs inputs = make_inputs(problem, Distribution::normal, 7);
      const Verifier verifier(problem, inputs);
      for (const Rung& rung : catalogue()) {
        if (rung.dtype != problem.dtype) continue;
        for (const Instance& instance : rung.kernels->instances) {
          if (instance.head_dim != dim) continue;
          INFO(instance.entry << " at " << to_string(problem));
          const LaunchPlan plan = plan_of(rung, problem, to_string(instance.tile));
          VmDevice device({.threads = 1});
          device.load(problem, inputs);
          HostTensor first;
          const Verdict verdict = pass_gate(
              device, [&] { device.launch(plan); }, verifier, &first);
          INFO(verdict.reason << "\n" << verdict.details);
          REQUIRE(verdict.ok);
          for (const bool reversed : {false, true}) {
            const VmOptions other{.threads = 2, .reversed = reversed};
            std::string difference;
            const bool same = bitwise_equal(first, run(other, plan, problem, inputs), &difference);
            INFO("reversed " << reversed << ": " << difference);
            REQUIRE(same);
          }
        }
      }
    }
  }
}
