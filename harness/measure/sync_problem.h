// SPDX-License-Identifier: MIT
// Where a rung's synchronisation is taken out, by sync_mutants_test and in the pages' "break it".
#pragma once

#include <array>

#include "harness/attention/inputs.h"
#include "kernels/catalogue.h"

namespace fa {

/// A problem that is just large enough: every wait of the rung's loops has something to wait for.
struct SyncProblem {
  Problem problem;
  LaunchPlan plan;
  std::array<Distribution, 3> inputs;  ///< of seed 1
};

/// Throws std::invalid_argument with the rung's words where it refuses the problem.
SyncProblem sync_problem(const Rung& rung);

}  // namespace fa
