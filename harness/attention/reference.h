// SPDX-License-Identifier: MIT
// Attention on the CPU for chosen rows: exactly (FP64), and with a kernel's roundings.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/attention/inputs.h"
#include "harness/attention/rows.h"
#include "kernels/problem.h"

namespace fa {

/// Rows to verify, sorted, without repeats. `budget` counts multiply-adds of Q K^T.
///
/// All rows when they fit. Otherwise at least one random row of every head if half the budget
/// allows it, and the rest for a few heads, always the first and the last: first and last row, both
/// sides of multiples of 16, 64, 128 and 192 (the edges of tiles), random rows. Never fewer than 64
/// rows, whatever the budget.
std::vector<RowId> choose_rows(const Problem& problem, std::int64_t budget, std::uint64_t seed);

/// Rows of O and their log-sum-exp.
struct ReferenceRows : ExpectedRows {
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
