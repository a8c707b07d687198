// SPDX-License-Identifier: MIT
// A problem that each kernel of the catalogue takes.
#pragma once

#include <algorithm>

#include "kernels/catalogue.h"

namespace fa::test {

/// Of the instance's types and head_dim, at lengths that rungs with whole tiles take, too.
inline Problem small_problem(const Rung& rung, const Instance& instance) {
  Problem problem{.batch = 2,
                  .heads = 3,
                  .seq_q = std::min<std::int64_t>(256, rung.most_queries()),
                  .seq_kv = 512,
                  .head_dim = instance.head_dim,
                  .dtype = rung.dtype_of(instance)};
  set_types(rung, problem);
  return problem;
}

}  // namespace fa::test
