// SPDX-License-Identifier: MIT
#include "harness/measure/inputs_for.h"

#include <utility>
#include <variant>

#include "harness/attention/backward.h"
#include "kernels/catalogue.h"

namespace fa {
namespace {

/// Multiply-adds of Q K^T that a host does in a few seconds.
constexpr double kOfHost = 0x1p32;

}  // namespace

Inputs inputs_for(Device& device, const Problem& problem, const InputKind& kind,
                  std::uint64_t seed) {
  const double work = problem.pairs() * static_cast<double>(problem.heads) * problem.head_dim;
  if (!problem.backward || device.kind() != "gpu" || work <= kOfHost)
    return make_pass_inputs(problem, kind, seed);
  Problem forward = problem;
  forward.backward = false, forward.lse = true;
  for (const Rung& rung : catalogue()) {
    if (rung.family == Family::own || !types_match(rung, forward)) continue;
    PlanResult plan = make_plan(rung, forward, device.description());
    if (!std::holds_alternative<LaunchPlan>(plan)) continue;
    Inputs inputs = make_inputs(forward, kind, seed);
    device.load(forward, inputs);
    device.launch(std::get<LaunchPlan>(plan));
    inputs.o = device.download_output();
    const HostTensor lse = device.download_lse();
    inputs.lse.assign(lse.floats().begin(), lse.floats().end());
    inputs.d_o = make_inputs(problem, kind, seed).d_o;
    return inputs;
  }
  return make_pass_inputs(problem, kind, seed);
}

}  // namespace fa
