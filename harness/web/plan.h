// SPDX-License-Identifier: MIT
// Plans as `fa plan --json` writes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/results/json.h"
#include "kernels/launch_plan.h"

namespace fa::web {

/// A plan, and the names that it points to.
struct HeldPlan {
  LaunchPlan plan;
  std::vector<std::unique_ptr<std::string>> names;
};

HeldPlan read_plan(const Json& json);

}  // namespace fa::web
