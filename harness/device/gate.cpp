// SPDX-License-Identifier: MIT
#include "harness/device/gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace fa {
namespace {

// Launches in its scope are reversed.
class Turned {
 public:
  Turned(Device& device, bool reversed) : device_(device) { device_.set_reversed(reversed); }
  ~Turned() { device_.set_reversed(false); }
  Turned(const Turned&) = delete;
  Turned& operator=(const Turned&) = delete;

 private:
  Device& device_;
};

}  // namespace

std::string Leftovers::reason() const {
  if (!damaged.empty())
    return fmt::format("memory outside {} was overwritten", fmt::join(damaged, ", "));
  if (nonzero.empty()) return {};
  return fmt::format("{} not zero after the launch, as the next launch needs it",
                     fmt::join(nonzero, ", "));
}

Leftovers repair(Device& device) {
  return {device.damaged_red_zones(), device.nonzero_scratch()};
}

Verdict pass_gate(Device& device, const std::function<void()>& launch, const Verifier& verifier,
                  Repeat repeat, HostTensor* output) {
  Verdict verdict;
  const bool with_lse = verifier.problem().lse, backward = verifier.problem().backward;
  struct Output {
    HostTensor o, lse;
    Gradients gradients;
  };
  const auto check = [&](const Output& result) {
    return backward ? verifier.check(result.gradients) : verifier.check(result.o);
  };
  const auto run = [&](bool reversed) {
    device.poison_output();
    const Turned turned(device, reversed);
    launch();
    Output result;
    if (backward) result.gradients = device.download_gradients();
    if (!backward) result.o = device.download_output();
    if (with_lse) result.lse = device.download_lse();
    Leftovers left = repair(device);
    if (verdict.left.empty()) verdict.left = std::move(left);
    return result;
  };
  Output first;
  Output second;
  try {
    first = run(false);
    verdict.check = check(first);
    if (with_lse) verdict.lse = verifier.check_lse(first.lse);
    second = run(true);
  } catch (const KernelFault& fault) {
    verdict.reason = fault.what();
    verdict.findings = fault.findings;
    repair(device);  // a launch that stopped half-way has not reset its counters
    return verdict;
  }
  std::string difference;
  const bool keys_repeat = bitwise_equal(first.gradients.d_k, second.gradients.d_k, &difference) &&
                           bitwise_equal(first.gradients.d_v, second.gradients.d_v, &difference);
  verdict.repeatable = bitwise_equal(first.o, second.o, &difference) &&
                       bitwise_equal(first.lse, second.lse, &difference) && keys_repeat &&
                       bitwise_equal(first.gradients.d_q, second.gradients.d_q);
  const bool only_d_q = backward && keys_repeat && !verdict.repeatable;
  const bool may_differ = repeat == Repeat::correct || (repeat == Repeat::other_d_q && only_d_q);
  // A wrong dQ is named before the broken promise.
  if (!verdict.repeatable && (may_differ || only_d_q)) {
    if (verdict.check.ok) verdict.check = check(second);
    if (with_lse && verdict.lse.ok) verdict.lse = verifier.check_lse(second.lse);
  }
  if (!verdict.left.empty()) {
    verdict.reason = verdict.left.reason();
  } else if (!verdict.check.ok) {
    verdict.reason = verdict.check.reason;
  } else if (with_lse && !verdict.lse.ok) {
    verdict.reason = verdict.lse.reason;
  } else if (!verdict.repeatable && !may_differ) {
    verdict.reason = only_d_q
                         ? "a second launch gave another dQ, which a deterministic rung must not"
                         : "a second launch gave another result: " + difference;
  }
  verdict.ok = verdict.reason.empty();
  if (output) *output = std::move(first.o);
  return verdict;
}

}  // namespace fa
