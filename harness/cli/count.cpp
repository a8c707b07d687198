// SPDX-License-Identifier: MIT
#include "harness/cli/count.h"

#include <utility>

namespace fa::cli {

Counting::Counting(VmOptions options, const InputKind& inputs)
    : device_([&] {
        options.counters = true;
        return std::move(options);
      }()),
      inputs_(inputs) {}

Counted Counting::count(Item item) {
  if (!verifier_ || !(problem_ == item.problem())) {
    device_.require_memory(item.problem());
    const Inputs inputs = make_pass_inputs(item.problem(), inputs_, 1);
    verifier_ = std::make_unique<Verifier>(item.problem(), inputs);
    device_.load(item.problem(), inputs);
    problem_ = item.problem();
  }
  Counted counted;
  counted.verdict = pass_gate(
      device_, [&] { device_.launch(item.plan); }, *verifier_, promised(item.plan));
  counted.item = std::move(item);
  counted.launches = device_.counts();
  counted.total = device_.total_counts();
  return counted;
}

}  // namespace fa::cli
