// SPDX-License-Identifier: MIT
// Order statistics of timing samples.
#pragma once

#include <vector>

namespace fa {

struct Summary {
  double median = 0, p10 = 0, p90 = 0, min = 0;
  int n = 0;
};

/// Quantile q in [0, 1] of ascending values, interpolated linearly between neighbours. Needs at
/// least one value.
double quantile(const std::vector<double>& ascending, double q);

/// Median, 10th and 90th percentile, minimum and number of the samples; n = 0 when there are none.
Summary summarize(std::vector<double> samples);

}  // namespace fa
