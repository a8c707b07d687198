// SPDX-License-Identifier: MIT
// Rates side by side, with their spread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/results/row.h"

namespace fa {

/// A value and how far it varies.
struct Spread {
  double value = 0, plus_minus = 0;
};

/// "1.19 +- 0.01": the spread with one digit, the value with as many places; "1.187" without one.
std::string to_string(const Spread& spread);

/// "GB/s" for few queries against a cache, which bytes bound; else "TFLOPS".
const char* rate_unit(const Problem& problem);

/// In rate_unit(): of launches that take `ms`; nothing where no query sees a key, or without a
/// time.
std::optional<double> rate_at(const Row& row, double ms);

/// In rate_unit(): of launches back to back, which have no spread; where the row has none, of the
/// median, and the spread is half of what lies between the 10th and the 90th percentile. Nothing
/// for a row without a rate.
std::optional<Spread> rate_of(const Row& row);

/// Below this, changes between single runs mean nothing.
inline constexpr double kLeastChange = 0.04;

/// second / first, the two varying independently.
Spread ratio(const Spread& first, const Spread& second);

/// Two rows that compare.
struct RatePair {
  std::string kernel;  ///< "06 128x64w4", "fa2"
  Problem problem;
  RowInputs inputs;
  Spread first, second;

  Spread change() const { return ratio(first, second); }
  /// By more than the spread of the ratio, and by more than kLeastChange.
  bool differs() const;
};

/// Rows of both with a rate on the same problem and inputs.
std::vector<RatePair> pair_problems(std::span<const Row* const> first,
                                    std::span<const Row* const> second);

/// The same, of the same kernel: rungs at one tile, peers of any version.
std::vector<RatePair> pair_kernels(std::span<const Row* const> first,
                                   std::span<const Row* const> second);

/// Pairs that differ, what changed most first, before those that do not; returns how many differ.
std::size_t sort_by_change(std::vector<RatePair>& pairs);

}  // namespace fa
