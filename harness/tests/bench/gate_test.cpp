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
  Gradients gradients, honest_gradients;
  bool drift_d_q = false, drift_d_k = false, wrong_d_v = false;
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
    for (HostTensor* each : {&gradients.d_q, &gradients.d_k, &gradients.d_v})
      for (std::uint16_t& bits : each->halfs()) bits = 0xFFFF;
  }
  void launch(const LaunchPlan&) override { launch(); }
  void launch() {
    if (problem.backward) {
      gradients = honest_gradients;
      if (drift_d_q && launches > 0) gradients.d_q.halfs()[0] ^= 1;
      if (drift_d_k && launches > 0) gradients.d_k.halfs()[0] ^= 1;
      if (wrong_d_v) gradients.d_v.set(5, gradients.d_v.at(5) + 0.1f);
      ++launches;
      return;
    }
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
  Gradients download_gradients() override { return gradients; }
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
        device, [&] { device.launch(); }, verifier, Repeat::bits);
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
    return pass_gate(device, launch, verifier, Repeat::correct);
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
      device, [] { throw KernelFault("trap"); }, verifier, Repeat::bits);
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

struct GradientFixture {
  Problem problem{
      .batch = 1, .heads = 2, .seq_q = 64, .seq_kv = 128, .head_dim = 64, .backward = true};
  Inputs inputs = make_pass_inputs(problem, Distribution::normal, 3);
  Verifier verifier{problem, inputs};
  FakeDevice device;
  GradientFixture() {
    device.load(problem, inputs);
    const auto rounded = [](const Problem& of, const std::vector<double>& exact) {
      HostTensor made = make_tensor(of.dtype, q_shape(of));
      for (std::int64_t i = 0; i < made.size(); ++i)
        made.set(i, static_cast<float>(exact[static_cast<std::size_t>(i)]));
      return made;
    };
    const auto all = [](const Problem& of) { return choose_rows(of, std::int64_t{1} << 40, 1); };
    const Problem keys = transposed(problem);
    const KeyGradientRows of_keys = reference_d_kv(problem, inputs, all(keys));
    device.honest_gradients = {rounded(problem, reference_d_q(problem, inputs, all(problem)).exact),
                               rounded(keys, of_keys.d_k.exact), rounded(keys, of_keys.d_v.exact)};
  }
  Verdict pass(Repeat repeat = Repeat::other_d_q) {
    return pass_gate(
        device, [&] { device.launch(); }, verifier, repeat);
  }
};

TEST_CASE_METHOD(GradientFixture, "an honest device with gradients passes") {
  const Verdict verdict = pass();
  CHECK(verdict.ok);
  CHECK(verdict.repeatable);
  CHECK(verdict.check.rows_total == 2 * 64 + 2 * 2 * 128);
}

TEST_CASE_METHOD(GradientFixture, "dQ may be added up in another order, dK may not") {
  device.drift_d_q = true;
  const Verdict other = pass();
  CHECK(other.ok);
  CHECK_FALSE(other.repeatable);
  device.launches = 0;
  CHECK(pass(Repeat::bits).reason ==
        "a second launch gave another dQ, which a deterministic rung must not");
  device.launches = 0;
  device.drift_d_k = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.reason.find("second launch") != std::string::npos);
}

TEST_CASE_METHOD(GradientFixture, "a wrong gradient is refused by its name") {
  device.wrong_d_v = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.reason.find("dV at batch 0, head 0, row 0, column 5") == 0);
}

TEST_CASE_METHOD(Fixture, "a log-sum-exp that the problem does not ask for is not looked at") {
  device.wrong_lse = device.skip_lse = true;
  CHECK(pass().ok);
}

}  // namespace
}  // namespace fa
