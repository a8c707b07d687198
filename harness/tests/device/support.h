// SPDX-License-Identifier: MIT
// Runs a rung in the virtual machine.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/attention/backward.h"
#include "harness/device/gate.h"
#include "harness/device/vm.h"
#include "kernels/catalogue.h"

namespace fa_test {

using namespace fa;

/// The plan, or an exception with the rung's words.
inline LaunchPlan plan_of(const Rung& rung, const Problem& problem, std::string_view tile = {}) {
  PlanResult result = make_plan(rung, problem, vm_description(), tile);
  if (const auto* refused = std::get_if<Unsupported>(&result)) {
    throw std::runtime_error(refused->reason);
  }
  return std::get<LaunchPlan>(std::move(result));
}

inline Problem square(std::int64_t seq, int head_dim, std::int64_t heads = 1,
                      std::int64_t batch = 1) {
  return {.batch = batch, .heads = heads, .seq_q = seq, .seq_kv = seq, .head_dim = head_dim};
}

/// The kernels of this build, each parsed once for all devices of a test.
inline const std::shared_ptr<PtxLibrary>& kernels() {
  static const auto shared = std::make_shared<PtxLibrary>();
  return shared;
}

/// A problem with inputs, and the reference that judges what is computed of them.
struct Judged {
  Problem problem;
  Distribution distribution;
  std::uint64_t seed;
  Inputs inputs = make_pass_inputs(problem, distribution, seed);
  Verifier verifier{problem, inputs};
};

/// Most rungs of a family compute the same problems: the last ones are kept.
inline std::shared_ptr<const Judged> judged(const Problem& problem, Distribution distribution,
                                            std::uint64_t seed = 1) {
  static std::list<std::shared_ptr<const Judged>> known;
  for (const auto& each : known) {
    if (each->problem == problem && each->distribution == distribution && each->seed == seed)
      return each;
  }
  constexpr std::size_t kKept = 24;
  if (known.size() == kKept) known.pop_front();
  return known.emplace_back(std::make_shared<const Judged>(Judged{problem, distribution, seed}));
}

/// What the launches of a rung's plan did, in order. Neighbouring claims are about the same runs,
/// so the last ones are kept; what is returned is one of them, because a copy of the counts of all
/// instructions takes as long as a small launch.
inline const std::vector<LaunchCounts>& launches(std::string_view id, const Problem& problem,
                                                 std::string_view tile = {}) {
  struct Run {
    std::string id, tile;
    Problem problem;
    std::vector<LaunchCounts> counts;
  };
  static std::list<Run> runs;
  for (const Run& run : runs) {
    if (run.id == id && run.tile == tile && run.problem == problem) return run.counts;
  }
  VmDevice device({.checkers = false, .counters = true, .ptx = kernels()});
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  device.launch(plan_of(*find_rung(id), problem, tile));
  constexpr std::size_t kKept = 96;  // two cases about the same problem of all rungs of a family
  if (runs.size() == kKept) runs.pop_front();
  return runs.emplace_back(std::string(id), std::string(tile), problem, device.counts()).counts;
}

/// Their counts together.
inline ptxvm::Counts count(std::string_view id, const Problem& problem,
                           std::string_view tile = {}) {
  ptxvm::Counts sum;
  for (const LaunchCounts& launch : launches(id, problem, tile)) sum.add(launch.report.total);
  return sum;
}

/// Executed instructions of a launch whose opcode starts like this.
inline std::uint64_t executed(const LaunchCounts& launch, std::string_view opcode) {
  std::uint64_t sum = 0;
  for (const ptxvm::LineCounts& line : launch.report.by_instruction) {
    if (line.opcode.starts_with(opcode)) sum += line.counts.total_instructions();
  }
  return sum;
}

/// The same of all launches of a rung's plan.
inline std::uint64_t executed(std::string_view id, const Problem& problem,
                              std::string_view opcode) {
  std::uint64_t sum = 0;
  for (const LaunchCounts& launch : launches(id, problem)) sum += executed(launch, opcode);
  return sum;
}

}  // namespace fa_test
