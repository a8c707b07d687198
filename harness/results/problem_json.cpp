// SPDX-License-Identifier: MIT
#include "harness/results/problem_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace fa {

Problem problem_from_json(const Json& json) {
  const auto extent = [&json](const char* name, auto& value) {
    const Json& found = json.at(name);
    if (!found.is_number_integer() || found.get<std::int64_t>() < 1)
      throw std::invalid_argument(fmt::format("{} {}", name, found.dump()));
    found.get_to(value);
  };
  Problem problem;
  extent("batch", problem.batch);
  extent("heads", problem.heads);
  extent("seq_q", problem.seq_q);
  extent("seq_kv", problem.seq_kv);
  extent("head_dim", problem.head_dim);
  json.at("causal").get_to(problem.causal);
  const auto dtype = json.at("dtype").get<std::string>();
  if (dtype != to_string(Dtype::f16) && dtype != to_string(Dtype::f32)) {
    throw std::invalid_argument("dtype '" + dtype + "'");
  }
  problem.dtype = dtype == to_string(Dtype::f16) ? Dtype::f16 : Dtype::f32;
  problem.lse = json.value("lse", false);
  problem.own_kv_heads = json.value("kv_heads", std::int64_t{0});
  if (problem.own_kv_heads == problem.heads) problem.own_kv_heads = 0;
  if (json.contains("lengths")) json.at("lengths").get_to(problem.lengths);
  problem.page = json.value("page", std::int64_t{0});
  if (json.contains("cache")) {
    const auto cache = json.at("cache").get<std::string>();
    if (cache != to_string(Dtype::e4m3)) throw std::invalid_argument("cache '" + cache + "'");
    problem.e4m3 = true;
  }
  if (const std::string error = cache_error(problem); !error.empty()) {
    throw std::invalid_argument(error);
  }
  return problem;
}

}  // namespace fa
