// SPDX-License-Identifier: MIT
// Attention on the CPU for chosen rows: exactly (FP64), and with a kernel's roundings.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/attention/inputs.h"
#include "kernels/problem.h"

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

/// Rows to verify, sorted, without repeats. `budget` counts multiply-adds of Q K^T.
///
/// All rows when they fit. Otherwise at least one random row of every head if half the budget
/// allows it, and the rest for a few heads, always the first and the last: first and last row, both
/// sides of multiples of 16, 64, 128 and 192 (the edges of tiles), random rows. Never fewer than 64
/// rows, whatever the budget.
std::vector<RowId> choose_rows(const Problem& problem, std::int64_t budget, std::uint64_t seed);

/// Rows of O, each head_dim long, in the order they were asked for.
struct ReferenceRows {
  /// FP64 throughout.
  std::vector<double> exact;
  /// The straightforward computation with a kernel's roundings, before the one to the output dtype.
  ///   f16: scores in FP32 minus their maximum, exp in FP32, row sum in FP32, P rounded to FP16 (to
  ///        bf16 likewise);
  ///        P V in an FP32 accumulator that truncates after each 8 keys, as tensor cores do
  ///        (Fasi et al. 2021, "Numerical behavior of NVIDIA tensor cores").
  ///   f32: FP32 throughout, each sum in sequence.
  std::vector<float> straightforward;
  /// Per row, root of sum_j p_j^2 mean_c(v_jc^2): what independent relative errors of the p_j
  /// amount to in O, per unit of error.
  std::vector<double> spread;
  /// The same per element, root of sum_j p_j^2 v_jc^2: where few keys decide a row, its columns
  /// differ. Like O, head_dim values a row.
  std::vector<double> element_spread;
  /// Per row, the largest magnitude of a scaled score that the row sees.
  std::vector<double> largest_score;
  /// Log-sum-exp of the scaled scores, natural logarithm: FP64, and as the straightforward
  /// computation has it (the maximum plus the logarithm of the FP32 row sum). -infinity for a row
  /// without a visible key.
  std::vector<double> lse_exact;
  std::vector<float> lse_straightforward;
};

/// Computes the rows; rows must be sorted. O is 0 in rows without a visible key. Multi-threaded.
ReferenceRows reference_rows(const Problem& problem, const Inputs& inputs,
                             const std::vector<RowId>& rows);

}  // namespace fa
