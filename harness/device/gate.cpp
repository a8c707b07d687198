#include "harness/device/gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace fa {

Verdict pass_gate(Device& device, const std::function<void()>& launch, const Verifier& verifier,
                  HostTensor* output) {
  Verdict verdict;
  const auto run = [&] {
    device.poison_output();
    launch();
    return device.download_output();
  };
  HostTensor first;
  HostTensor second;
  try {
    first = run();
    verdict.check = verifier.check(first);
    second = run();
  } catch (const KernelFault& fault) {
    verdict.reason = fault.what();
    verdict.details = fault.details;
    return verdict;
  }
  std::string difference;
  verdict.repeatable = bitwise_equal(first, second, &difference);
  verdict.damaged = device.damaged_red_zones();

  if (!verdict.damaged.empty()) {
    verdict.reason =
        fmt::format("memory outside {} was overwritten", fmt::join(verdict.damaged, ", "));
  } else if (!verdict.check.ok) {
    verdict.reason = verdict.check.reason;
  } else if (!verdict.repeatable) {
    verdict.reason = "a second launch gave another result: " + difference;
  }
  verdict.ok = verdict.reason.empty();
  if (output) *output = std::move(first);
  return verdict;
}

}  // namespace fa
