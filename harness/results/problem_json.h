// SPDX-License-Identifier: MIT
// Problems as result files, plans and the pages hold them.
#pragma once

#include "harness/results/fields_json.h"
#include "kernels/problem.h"

namespace fa {

/// Those of Q. K and V may be e4m3, which is a field of its own.
template <>
inline constexpr auto kNamesOf<Dtype> =
    std::to_array<Named<Dtype>>({{Dtype::f16, to_string(Dtype::f16)},
                                 {Dtype::f32, to_string(Dtype::f32)},
                                 {Dtype::bf16, to_string(Dtype::bf16)}});

/// As many heads of K and V as of Q are none of their own. Throws std::invalid_argument with
/// cache_error().
void settle(Problem& problem);

/// Throws std::exception when a field is missing, of another type or of a value that there is not.
Problem problem_from_json(const Json& json);

}  // namespace fa
