// Runs a rung in the virtual machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/device/gate.h"
#include "harness/device/vm.h"
#include "kernels/catalogue.h"

namespace fa_test {

using namespace fa;

/// The plan, or an exception with the rung's words.
inline LaunchPlan plan_of(const Rung& rung, const Problem& problem, std::string_view tile = {}) {
  PlanResult result = make_plan(rung, problem, tile);
  if (const auto* refused = std::get_if<Unsupported>(&result)) {
    throw std::runtime_error(refused->reason);
  }
  return std::get<LaunchPlan>(std::move(result));
}

inline Problem square(std::int64_t seq, int head_dim, std::int64_t heads = 1,
                      std::int64_t batch = 1) {
  return {.batch = batch, .heads = heads, .seq_q = seq, .seq_kv = seq, .head_dim = head_dim};
}

/// Counts of one launch of a rung's plan.
inline ptxvm::Counts count(std::string_view id, const Problem& problem,
                           std::string_view tile = {}) {
  VmDevice device({.checkers = false, .counters = true});
  const Rung& rung = *find_rung(id);
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  device.launch(plan_of(rung, problem, tile));
  return device.total_counts();
}

}  // namespace fa_test
