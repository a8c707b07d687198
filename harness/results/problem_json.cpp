// SPDX-License-Identifier: MIT
#include "harness/results/problem_json.h"

#include <stdexcept>
#include <string>

namespace fa {

void settle(Problem& problem) {
  if (problem.own_kv_heads == problem.heads) problem.own_kv_heads = 0;
  if (const std::string error = cache_error(problem); !error.empty()) {
    throw std::invalid_argument(error);
  }
}

Problem problem_from_json(const Json& json) {
  auto problem = from_json<Problem>(json);
  settle(problem);
  return problem;
}

}  // namespace fa
