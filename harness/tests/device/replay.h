// SPDX-License-Identifier: MIT
// A recorded launch keeps its grid while a server changes the lengths of its cache.
#pragma once

#include <algorithm>
#include <variant>
#include <vector>

#include "harness/device/gate.h"
#include "harness/tests/catch.h"
#include "kernels/catalogue.h"

namespace fa::test {

/// Plans for some lengths and launches that plan with others: equal, fewer, none and more keys; the
/// kernels that the device runs.
inline void check_replays(Device& device, const Rung& rung) {
  const std::vector<std::vector<std::int64_t>> lengths = {
      {700, 300, 513}, {130, 0, 1}, {0, 0, 0}, {0, 0, 3}, {700, 700, 700}};
  Problem problem{.batch = 3,
                  .heads = 4,
                  .seq_q = std::min<std::int64_t>(4, rung.most_queries()),
                  .seq_kv = 700,
                  .causal = has(rung.capabilities, Capabilities::causal),
                  .lse = true,
                  .own_kv_heads = 2};
  if (has(rung.capabilities, Capabilities::paged)) problem.page = 16;
  set_types(rung, problem);
  for (const int head_dim : {64, 128}) {
    problem.head_dim = head_dim;
    const Instance* instance = rung.find_instance(head_dim, rung.dtype);
    if (device_refusal(rung, device.description(), instance)) continue;
    for (const auto& planned : {lengths[0], lengths[3]}) {
      problem.lengths = planned;
      const auto plan = std::get<LaunchPlan>(make_plan(rung, problem, device.description()));
      for (const auto& replayed : lengths) {
        Problem loaded = problem;
        loaded.lengths = replayed;
        Problem made = loaded;  // inputs are not made for no key at all
        if (made.keys() == 0) made.lengths.back() = 1;
        loaded.own_pages = made.pages();
        const Inputs inputs = make_inputs(made, Distribution::normal, 1);
        device.load(loaded, inputs);
        const Verdict verdict = pass_gate(
            device, [&] { device.launch(plan); }, Verifier(loaded, inputs), promised(plan));
        CAPTURE(rung.name, head_dim, planned, replayed);
        CHECK(verdict.reason == "");
      }
    }
  }
}

}  // namespace fa::test
