// SPDX-License-Identifier: MIT
// Rows of O and of gradients: which, what they must be, and loops over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <vector>

#include "harness/attention/parallel.h"

namespace fa {

/// One row of O.
struct RowId {
  std::int64_t head = 0;  ///< batch * heads + head
  std::int64_t row = 0;   ///< 0 .. seq_q - 1
  bool operator==(const RowId&) const = default;
  bool operator<(const RowId& other) const {
    return head != other.head ? head < other.head : row < other.row;
  }
};

/// Rows of O or of a gradient, each head_dim long, in the order they were asked for.
struct ExpectedRows {
  /// FP64 throughout.
  std::vector<double> exact;
  /// The straightforward computation with a kernel's roundings, before the one to the output dtype.
  ///   f16: scores in FP32 minus their maximum, exp in FP32, row sum in FP32, P rounded to FP16 (to
  ///        bf16 likewise);
  ///        P V in an FP32 accumulator that truncates after each 8 keys, as tensor cores do
  ///        (Fasi et al. 2021, "Numerical behavior of NVIDIA tensor cores").
  ///   f32: FP32 throughout, each sum in sequence.
  /// Of gradients: P = exp(S - LSE) and dS = P (dO V^T - D) in FP32, each rounded to the type of Q
  /// ahead of its products, whose accumulator truncates likewise; without these roundings for f32.
  std::vector<float> straightforward;
  /// Of O: per row, root of sum_j p_j^2 mean_c(v_jc^2): what independent relative errors of the p_j
  /// amount to, per unit of error. The weights of gradients are P or dS.
  std::vector<double> spread;
  /// The same per element, root of sum_j p_j^2 v_jc^2: where few keys decide a row, its columns
  /// differ. Like O, head_dim values a row.
  std::vector<double> element_spread;
  /// Of gradients, per element: what errors of dS amount to that do not shrink with it. Independent
  /// ones: 2^-22 P of the lengths |dO| |V| + |dO| |O|, from sums of head_dim products, in whatever
  /// order, ahead of their difference; 2^-126 of them, as ex2 flushes smaller P to 0; and for
  /// float16 half of its smallest step, 2^-25, of scale dS. And, but for float32, those that all go
  /// the same way: what truncation on tensor cores takes from dO V^T. For dV, 2^-124 of dO.
  std::vector<double> cancelled;
  /// Per row, the largest magnitude of a scaled score that the row sees.
  std::vector<double> largest_score;
};

inline std::size_t idx(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Rows of a head that share the loads and conversions of the others.
inline constexpr std::int64_t kRowsTogether = 8;

/// Calls body(first, count) for runs of up to kRowsTogether rows of one head, on all threads.
inline void for_each_group(const std::vector<RowId>& rows,
                           const std::function<void(std::int64_t, std::int64_t)>& body) {
  std::vector<std::int64_t> starts;
  for (std::int64_t i = 0; i < std::ssize(rows); ++i) {
    if (starts.empty() || i - starts.back() == kRowsTogether ||
        rows[idx(i)].head != rows[idx(starts.back())].head)
      starts.push_back(i);
  }
  starts.push_back(std::ssize(rows));
  parallel_for(std::ssize(starts) - 1, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g)
      body(starts[idx(g)], starts[idx(g + 1)] - starts[idx(g)]);
  });
}

/// As many rows of zeros, with nothing cancelled.
inline ExpectedRows empty_rows(std::size_t rows, std::int64_t columns) {
  const std::size_t elements = rows * idx(columns);
  return {.exact = std::vector<double>(elements),
          .straightforward = std::vector<float>(elements),
          .spread = std::vector<double>(rows),
          .element_spread = std::vector<double>(elements),
          .cancelled = {},
          .largest_score = std::vector<double>(rows)};
}

}  // namespace fa
