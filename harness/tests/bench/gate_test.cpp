// SPDX-License-Identifier: MIT
// The gate on a device of our own that misbehaves on demand.
#include "harness/device/gate.h"

#include <cmath>
#include <utility>

#include "harness/attention/mutants.h"
#include "harness/tests/catch.h"

namespace fa {
namespace {

struct FakeDevice final : Device {
  Problem problem;
  Inputs inputs;
  HostTensor output;
  HostTensor lse;
  HostTensor honest_lse;
  bool skip_a_row = false, drift = false, write_outside = false;
  bool counted = false;  ///< a counter is not zero
  bool wrong_lse = false, skip_lse = false, drift_lse = false;
  int launches = 0;

  std::string kind() const override { return "fake"; }
  DeviceDescription traits{.name = "fake", .sm = 80};
  const DeviceDescription& description() const override { return traits; }
  void require_memory(const Problem&) override {}
  void load(const Problem& next, const Inputs& given) override {
    problem = next;
    inputs = given;
    output = make_tensor(problem.dtype, q_shape(problem), 0.f);
    lse = make_tensor(Dtype::f32, lse_shape(problem), 0.f);
  }
  void poison_output() override {
    for (std::uint16_t& bits : output.halfs()) bits = 0xFFFF;
    for (float& value : lse.floats()) value = std::nanf("");
  }
  void launch(const LaunchPlan&) override { launch(); }
  void launch() {
    const HostTensor honest = honest_output(problem, inputs);
    const std::int64_t kept = skip_a_row ? problem.head_dim : 0;
    for (std::int64_t i = 0; i < honest.size() - kept; ++i) output.set(i, honest.at(i));
    if (drift && launches > 0) output.halfs()[0] ^= 1;
    if (problem.lse && !skip_lse) {
      lse = honest_lse;
      if (wrong_lse) lse.floats()[3] += 0.01f;
      if (drift_lse && launches > 0) lse.floats()[0] = std::nextafter(lse.floats()[0], 100.f);
    }
    ++launches;
  }
  HostTensor download_output() override { return output; }
  HostTensor download_lse() override { return lse; }
  std::vector<std::string> damaged_red_zones() override {
    return std::exchange(write_outside, false) ? std::vector<std::string>{"O"}
                                               : std::vector<std::string>{};
  }
  std::vector<std::string> nonzero_scratch() override {
    return std::exchange(counted, false) ? std::vector<std::string>{"counter"}
                                         : std::vector<std::string>{};
  }
};

struct Fixture {
  Problem problem{.batch = 1, .heads = 2, .seq_q = 64, .seq_kv = 128, .head_dim = 64};
  Inputs inputs = make_inputs(problem, Distribution::normal, 3);
  Verifier verifier{problem, inputs};
  FakeDevice device;
  Fixture() { device.load(problem, inputs); }
  Verdict pass() {
    return pass_gate(
        device, [&] { device.launch(); }, verifier);
  }
};

TEST_CASE_METHOD(Fixture, "an honest device passes, after two launches") {
  const Verdict verdict = pass();
  CHECK(verdict.ok);
  CHECK(verdict.reason.empty());
  CHECK(verdict.repeatable);
  CHECK(device.launches == 2);
}

TEST_CASE_METHOD(Fixture, "an element nobody writes is seen, even if an earlier run wrote it") {
  REQUIRE(pass().ok);
  device.skip_a_row = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK_FALSE(verdict.check.finite);
}

TEST_CASE_METHOD(Fixture, "a second launch with other bits is refused") {
  device.drift = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.check.ok);
  CHECK_FALSE(verdict.repeatable);
  CHECK(verdict.reason.find("second launch") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "another implementation may give other bits, but must be right again") {
  bool wrong = false;
  int launches = 0;
  const auto repeat = [&] {
    const auto launch = [&] {
      device.skip_a_row = wrong && launches++ > 0;
      device.launch();
    };
    return pass_gate(device, launch, verifier, nullptr, Repeat::correct);
  };
  device.drift = true;
  const Verdict verdict = repeat();
  CHECK(verdict.ok);
  CHECK_FALSE(verdict.repeatable);
  wrong = true;
  CHECK_FALSE(repeat().ok);
}

TEST_CASE_METHOD(Fixture, "a write outside the tensors is refused, and the next rung is not") {
  device.write_outside = true;  // seen after the first of the two launches, then repaired
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.reason == "memory outside O was overwritten");
  CHECK(pass().ok);
}

TEST_CASE_METHOD(Fixture, "a fault leaves nothing to the next rung") {
  device.counted = device.write_outside = true;
  const Verdict verdict = pass_gate(
      device, [] { throw KernelFault("trap"); }, verifier);
  CHECK(verdict.reason == "trap");
  CHECK(pass().ok);
}

TEST_CASE_METHOD(Fixture, "a counter that is not reset is refused, and the next rung is not") {
  device.counted = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.reason == "counter not zero after the launch, as the next launch needs it");
  CHECK(pass().ok);
}

/// The same with the log-sum-exp.
struct LseFixture : Fixture {
  LseFixture() {
    problem.lse = true;
    verifier = Verifier(problem, inputs);
    device.load(problem, inputs);
    device.honest_lse = make_tensor(Dtype::f32, lse_shape(problem), 0.f);
    const ReferenceRows reference = reference_rows(problem, inputs, verifier.rows());
    for (std::size_t r = 0; r < verifier.rows().size(); ++r) {
      const RowId& row = verifier.rows()[r];
      device.honest_lse.set(row.head * problem.seq_q + row.row,
                            static_cast<float>(reference.lse_exact[r]));
    }
  }
};

TEST_CASE_METHOD(LseFixture, "an honest device with the log-sum-exp passes") {
  const Verdict verdict = pass();
  CHECK(verdict.ok);
  CHECK(verdict.lse.ok);
  CHECK(verdict.repeatable);
}

TEST_CASE_METHOD(LseFixture, "a wrong log-sum-exp is refused, though the output is right") {
  device.wrong_lse = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.check.ok);
  CHECK_FALSE(verdict.lse.ok);
  CHECK(verdict.reason.find("LSE at batch 0, head 0, row 3") != std::string::npos);
}

TEST_CASE_METHOD(LseFixture,
                 "a log-sum-exp that nobody writes is seen, even after a run that did") {
  REQUIRE(pass().ok);
  device.skip_lse = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.check.ok);
  CHECK_FALSE(verdict.lse.ok);
}

TEST_CASE_METHOD(LseFixture, "a log-sum-exp with other bits in the second launch is refused") {
  device.drift_lse = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.lse.ok);
  CHECK_FALSE(verdict.repeatable);
  CHECK(verdict.reason.find("second launch") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "a log-sum-exp that the problem does not ask for is not looked at") {
  device.wrong_lse = device.skip_lse = true;
  CHECK(pass().ok);
}

}  // namespace
}  // namespace fa
