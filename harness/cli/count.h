// SPDX-License-Identifier: MIT
// Rungs run and counted in the virtual machine; for explain and compare.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/device/vm.h"
#include "harness/measure/measured.h"

namespace fa::cli {

/// A rung after its run.
struct Counted {
  Item item;
  Verdict verdict;
  std::vector<LaunchCounts> launches;
  ptxvm::Counts total;
};

/// Runs items of one problem (and one dtype) on one kind of inputs; inputs and reference are made
/// once.
class Counting {
 public:
  Counting(VmOptions options, const InputKind& inputs);

  /// Through the gate, on its own inputs; the counts are those of one launch of the plan. Refused
  /// items are an error of the caller.
  Counted count(Item item);

  const VmDevice& device() const { return device_; }

 private:
  VmDevice device_;
  InputKind inputs_;
  Problem problem_;
  std::unique_ptr<Verifier> verifier_;
};

}  // namespace fa::cli
