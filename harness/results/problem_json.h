// SPDX-License-Identifier: MIT
// Problems as result files, plans and the pages hold them.
#pragma once

#include "harness/results/json.h"
#include "kernels/problem.h"

namespace fa {

/// Throws std::exception when a field is missing, of another type or of a value that there is not.
Problem problem_from_json(const Json& json);

}  // namespace fa
