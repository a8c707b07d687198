// SPDX-License-Identifier: MIT
// Relations that must hold between outputs of one kernel, with no reference in between.
#pragma once

#include <functional>
#include <string>

#include "harness/attention/check.h"
#include "harness/attention/inputs.h"
#include "kernels/problem.h"

namespace fa {

/// Runs the kernel under test.
using Forward = std::function<HostTensor(const Problem&, const Inputs&)>;

struct Relation {
  bool ok = false;
  std::string reason;  ///< empty when ok
};

/// Causal problems: replaces K and V from key `cut` on by large values and compares all rows that
/// see none of them, bit for bit. Throws std::invalid_argument when the problem is not causal or
/// `cut` is not in [1, seq_kv).
Relation causal_prefix_invariance(const Problem& problem, const Inputs& inputs, std::int64_t cut,
                                  const Forward& forward);

/// Rows whose query is the same in both inputs must have the same bits, whatever other rows need:
/// K and V must be equal. Throws std::invalid_argument when they are not, or when no query or every
/// query differs.
Relation untouched_rows(const Problem& problem, const Inputs& inputs, const Inputs& other_queries,
                        const Forward& forward);

/// Permutes keys and values of each head together; the output must pass the check of the original
/// inputs. Throws std::invalid_argument for causal problems, where the order of keys matters.
Relation joint_permutation(const Problem& problem, const Inputs& inputs, std::uint64_t seed,
                           const Forward& forward);

/// Problems with lengths or pages: replaces all rows of K and V that are no key by NaN, which must
/// not change a bit. Throws std::invalid_argument for any other problem.
Relation unused_memory(const Problem& problem, const Inputs& inputs, const Forward& forward);

/// Packed batches: replaces Q, K and V of every other sequence by NaN and infinities, which must
/// not change a bit of the others. Throws std::invalid_argument for any other problem.
Relation neighbours(const Problem& problem, const Inputs& inputs, const Forward& forward);

/// Adds one vector to all keys, which adds a constant to each row of scores and must not change the
/// output. K is first rounded to multiples of 1/16 in [-8, 8] (e4m3: of 32 in [-128, 128]), so that
/// the sum is exact in its type; both outputs must pass their check, whose exact rows are the same.
Relation constant_shift(const Problem& problem, const Inputs& inputs, const Forward& forward);

}  // namespace fa
