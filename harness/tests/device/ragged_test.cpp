// SPDX-License-Identifier: MIT
// Masks and lengths in the virtual machine, whose buffers end where the tensors end: every access
// outside is a finding, and a finding fails the gate.
#include <array>
#include <limits>
#include <string>

#include "harness/attention/metamorphic.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;

namespace {

constexpr std::array<std::int64_t, 8> kLengths{1, 15, 16, 64, 65, 127, 129, 390};

/// The rungs that take any length.
std::vector<const Rung*> ragged_rungs() {
  std::vector<const Rung*> rungs;
  for (const Rung& rung : catalogue()) {
    // decode_test.cpp, ladder_test.cpp
    if (rung.family == Family::decode || rung.family == Family::backward) continue;
    if (has(rung.capabilities, Capabilities::ragged)) rungs.push_back(&rung);
  }
  return rungs;
}

void check_lengths(const Rung& rung, std::int64_t seq_q, std::int64_t seq_kv) {
  for (const int dim : rung.head_dims()) {
    for (const bool causal : {false, true}) {
      if (causal && !has(rung.capabilities, Capabilities::causal)) continue;
      const Problem problem{.batch = 1,
                            .heads = 2,
                            .seq_q = seq_q,
                            .seq_kv = seq_kv,
                            .head_dim = dim,
                            .causal = causal,
                            .dtype = rung.dtype,
                            .lse = has(rung.capabilities, Capabilities::lse)};
      const auto given = judged(problem, Distribution::normal, 5);
      const LaunchPlan plan = plan_of(rung, problem);
      VmDevice device({.ptx = kernels()});
      device.load(problem, given->inputs);
      const Verdict verdict = pass_gate(
          device, [&] { device.launch(plan); }, given->verifier, promised(plan));
      INFO(rung.name << " at " << to_string(problem) << "\n"
                     << verdict.reason << "\n"
                     << text_of(verdict.findings));
      REQUIRE(verdict.ok);
    }
  }
}

HostTensor forward_of(const Rung& rung, const Problem& problem, const Inputs& inputs) {
  VmDevice device({.checkers = false, .ptx = kernels()});
  device.load(problem, inputs);
  device.launch(plan_of(rung, problem));
  return device.download_output();
}

}  // namespace

TEST_CASE("ragged rungs take every length, and every pair of lengths both ways") {
  REQUIRE(!ragged_rungs().empty());
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    for (const std::size_t step : {0u, 3u, 5u}) {
      const std::int64_t other = kLengths[(i + step) % kLengths.size()];
      for (const Rung* rung : ragged_rungs()) check_lengths(*rung, kLengths[i], other);
    }
  }
}

// The relation in `fa check` runs on squares of whole tiles; here the diagonal lies anywhere.
TEST_CASE("keys behind the mask have no influence, wherever the diagonal lies") {
  for (const Rung& rung : catalogue()) {
    if (!has(rung.capabilities, Capabilities::causal) || rung.family == Family::decode ||
        rung.family == Family::backward)
      continue;
    for (const int dim : rung.head_dims()) {
      std::vector<std::array<std::int64_t, 2>> shapes{{256, 512}, {512, 256}};
      if (has(rung.capabilities, Capabilities::ragged))
        shapes.insert(shapes.end(), {{129, 129}, {70, 200}, {200, 70}});
      for (const auto& [seq_q, seq_kv] : shapes) {
        Problem problem{.batch = 1,
                        .heads = 2,
                        .seq_q = seq_q,
                        .seq_kv = seq_kv,
                        .head_dim = dim,
                        .causal = true,
                        .dtype = rung.dtype};
        const Inputs inputs = make_pass_inputs(problem, Distribution::normal, 6);
        const HostTensor unchanged = forward_of(rung, problem, inputs);
        for (const std::int64_t cut : {std::int64_t{1}, seq_kv / 2, seq_kv - 1}) {
          const Relation relation = causal_prefix_invariance(
              problem, inputs, cut, [&](const Problem& p, const Inputs& given) {
                return &given == &inputs ? unchanged : forward_of(rung, p, given);
              });
          INFO(rung.name << " at " << to_string(problem) << ", cut " << cut << ": "
                         << relation.reason);
          CHECK(relation.ok);
        }
      }
    }
  }
}

TEST_CASE("rows that see no key are zeros, and their log-sum-exp is -infinity") {
  for (const Rung& rung : catalogue()) {
    if (!has(rung.capabilities, Capabilities::causal) || rung.family == Family::decode ||
        rung.family == Family::backward)
      continue;
    for (const int dim : rung.head_dims()) {
      // 192 rows without a key where the tile allows it: a whole tile of 128, half of the next.
      const int keys = rung.find_instance(dim, rung.dtype)->tile.Bc;
      const Problem problem{
          .batch = 1,
          .heads = 1,
          .seq_q = 384,
          .seq_kv = has(rung.capabilities, Capabilities::ragged) || 192 % keys == 0 ? 192 : 128,
          .head_dim = dim,
          .causal = true,
          .dtype = rung.dtype,
          .lse = has(rung.capabilities, Capabilities::lse)};
      const std::int64_t blind = problem.seq_q - problem.seq_kv;
      VmDevice device({.ptx = kernels()});
      device.load(problem, make_pass_inputs(problem, Distribution::large, 7));
      device.poison_output();
      device.launch(plan_of(rung, problem));
      const HostTensor output = device.download_output();
      INFO(rung.name << " at " << to_string(problem));
      std::int64_t zeros = 0;
      while (zeros < output.size() && output.at(zeros) == 0) ++zeros;
      CHECK(zeros == blind * dim);
      if (!has(rung.capabilities, Capabilities::lse)) continue;
      const HostTensor lse = device.download_lse();
      for (std::int64_t i = 0; i < lse.size(); ++i) {
        CHECK((lse.at(i) == -std::numeric_limits<float>::infinity()) == (i < blind));
      }
    }
  }
}
