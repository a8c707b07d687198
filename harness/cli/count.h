// Rungs run and counted in the virtual machine; for explain and compare.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "harness/bench/bench.h"
#include "harness/device/vm.h"

namespace fa::cli {

/// A rung after its run.
struct Counted {
  BenchItem item;
  Verdict verdict;
  std::vector<LaunchCounts> launches;
  ptxvm::Counts total;
};

/// The problem to count at and its inputs: the options of `fa run`, but --dim takes a list.
class CountProblem {
 public:
  void declare(CLI::App& app, bool several_dims);
  /// One problem for each head_dim, float16.
  std::vector<Problem> problems() const;
  const InputKind& inputs() const { return inputs_; }

 private:
  Problem problem_;
  InputKind inputs_;
  std::int64_t seq_kv_ = 0;
  std::vector<std::int64_t> dims_{128};
};

/// Runs items of one problem (and one dtype) on one kind of inputs; inputs and reference are made
/// once.
class Counting {
 public:
  Counting(VmOptions options, const InputKind& inputs);

  /// Through the gate; the counts are those of one launch of the plan. Refused items are an error
  /// of the caller.
  Counted count(BenchItem item);

  const VmDevice& device() const { return device_; }

 private:
  VmDevice device_;
  InputKind inputs_;
  Problem problem_;
  std::unique_ptr<Verifier> verifier_;
};

/// The result row: status, check, counts.
Json counted_row(const Counted& counted, const std::string& run);

}  // namespace fa::cli
