// SPDX-License-Identifier: MIT
#include "harness/measure/timing/statistics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace fa {

double quantile(const std::vector<double>& ascending, double q) {
  if (ascending.empty()) throw std::invalid_argument("quantile of no samples");
  const double position = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double weight = position - static_cast<double>(below);
  return ascending[below] + weight * (ascending[above] - ascending[below]);
}

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {.median = quantile(samples, 0.5),
          .p10 = quantile(samples, 0.1),
          .p90 = quantile(samples, 0.9),
          .min = samples.front(),
          .n = static_cast<int>(samples.size())};
}

}  // namespace fa
