// The gate on a device of our own that misbehaves on demand.
#include "harness/device/gate.h"

#include "harness/attention/mutants.h"
#include "harness/tests/catch.h"

namespace fa {
namespace {

struct FakeDevice final : Device {
  Problem problem;
  Inputs inputs;
  HostTensor output;
  HostTensor lse;
  bool skip_a_row = false, drift = false, write_outside = false;
  int launches = 0;

  std::string kind() const override { return "fake"; }
  std::string name() const override { return "fake"; }
  int sm() const override { return 80; }
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
    ++launches;
  }
  HostTensor download_output() override { return output; }
  HostTensor download_lse() override { return lse; }
  std::vector<std::string> damaged_red_zones() override {
    return write_outside ? std::vector<std::string>{"O"} : std::vector<std::string>{};
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

TEST_CASE_METHOD(Fixture, "a write outside the tensors is refused and named") {
  device.write_outside = true;
  const Verdict verdict = pass();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.reason == "memory outside O was overwritten");
}

}  // namespace
}  // namespace fa
