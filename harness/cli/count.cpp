// SPDX-License-Identifier: MIT
#include "harness/cli/count.h"

#include <utility>

#include "harness/cli/bound.h"
#include "harness/results/counts.h"

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
    const Inputs inputs = make_inputs(item.problem(), inputs_, 1);
    verifier_ = std::make_unique<Verifier>(item.problem(), inputs);
    device_.load(item.problem(), inputs);
    problem_ = item.problem();
  }
  Counted counted;
  counted.verdict = pass_gate(
      device_, [&] { device_.launch(item.plan); }, *verifier_);
  counted.item = std::move(item);
  counted.launches = device_.counts();
  counted.total = device_.total_counts();
  return counted;
}

Row counted_row(const Counted& counted, const std::string& run) {
  Row row = empty_row(counted.item, run);
  if (!counted.item.refused.empty()) return row;
  put_verdict(row, counted.verdict);
  if (counted.verdict.ok) {
    row.bound = bound_of(counted);
    row.counts = row_counts(counted.total);
  }
  return row;
}

}  // namespace fa::cli
