// SPDX-License-Identifier: MIT
// Problems and plans as `fa plan --json` writes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/problem.h"
#include "harness/results/json.h"
#include "kernels/launch_plan.h"

namespace fa::web {

/// A plan, and the names that it points to.
struct HeldPlan {
  LaunchPlan plan;
  std::vector<std::unique_ptr<std::string>> names;
};

Problem read_problem(const Json& json);
HeldPlan read_plan(const Json& json);

}  // namespace fa::web
