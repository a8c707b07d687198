// SPDX-License-Identifier: MIT
#include "harness/attention/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace fa {
namespace {

// Half a unit in the last place of the dtype at |value|; of the subnormals for tiny values.
double half_ulp(Dtype dtype, double value) {
  const int digits = dtype == Dtype::f16 ? 11 : dtype == Dtype::bf16 ? 8 : 24;
  const int least = dtype == Dtype::f16 ? -14 : -126;
  int exponent = least + 1;
  if (value != 0) std::frexp(value, &exponent);  // |value| in [0.5, 1) * 2^exponent
  return std::ldexp(1.0, std::max(exponent - 1, least) - digits);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

Verifier::Verifier(const Problem& problem, const Inputs& inputs, const VerifierOptions& options)
    : problem_(problem), rows_(choose_rows(problem, options.budget, options.seed)) {
  require_inputs(problem, inputs);
  ReferenceRows reference = reference_rows(problem, inputs, rows_);
  exact_ = std::move(reference.exact);
  spread_ = std::move(reference.spread);
  element_spread_ = std::move(reference.element_spread);
  largest_score_ = std::move(reference.largest_score);
  lse_ = std::move(reference.lse_exact);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto straightforward = static_cast<double>(reference.lse_straightforward[r]);
    if (std::isfinite(lse_[r]))
      lse_error_ = std::max(lse_error_, std::abs(straightforward - lse_[r]));
  }
  const auto d = static_cast<std::size_t>(problem.head_dim);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (spread_[r] == 0) continue;
    for (std::size_t i = r * d; i < (r + 1) * d; ++i) {
      const double error = std::abs(static_cast<double>(reference.straightforward[i]) - exact_[i]);
      relative_error_ = std::max(relative_error_, error / spread_[r]);
    }
  }
}

double Verifier::tolerance(std::size_t element, double* floor) const {
  const std::size_t row = element / static_cast<std::size_t>(problem_.head_dim);
  const double spread = spread_[row], magnitude = std::abs(exact_[element]);
  const double of_scores = 0x1p-24 * largest_score_[row] * spread;
  const double of_weights = problem_.dtype == Dtype::bf16 ? 0x1p-7 : 0x1p-10;  // as P is rounded
  const double least = of_scores + (problem_.dtype == Dtype::f32
                                        ? 0x1p-24 * (16 * spread + 4 * magnitude)
                                        : of_weights * std::max(spread, element_spread_[element]));
  const double before_rounding = 2 * relative_error_ * spread + least;
  // The kernel's value may lie just across a power of two, where the ulp doubles.
  const double rounding = half_ulp(problem_.dtype, magnitude + before_rounding);
  *floor = rounding + least;
  return before_rounding + rounding;
}

CheckReport Verifier::check(const HostTensor& output) const {
  const Shape shape = q_shape(problem_);
  if (output.dtype != problem_.dtype || output.shape != shape) {
    throw std::invalid_argument(std::string("the output is ") + to_string(output.dtype) + " " +
                                fa::to_string(output.shape) + ", expected " +
                                to_string(problem_.dtype) + " " + fa::to_string(shape));
  }
  CheckReport report;
  report.rows_checked = std::ssize(rows_);
  report.rows_total = problem_.q_rows();
  report.non_finite = count_non_finite(output);
  report.finite = report.non_finite == 0;

  const std::int64_t d = problem_.head_dim;
  std::int64_t worst = -1, lost = -1, wrong_elements = 0, wrong_rows = 0;
  double worst_exact = 0, lost_exact = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const std::int64_t first = q_row(problem_, rows_[r].head, rows_[r].row) * d;
    const std::int64_t wrong_before = wrong_elements;
    for (std::int64_t c = 0; c < d; ++c) {
      const std::size_t element = r * static_cast<std::size_t>(d) + static_cast<std::size_t>(c);
      const double exact = exact_[element];
      const auto got = static_cast<double>(output.at(first + c));
      if (!std::isfinite(got)) {  // counted above, named below
        if (lost < 0) lost = first + c, lost_exact = exact;
        continue;
      }
      double floor = 0;
      const double allowed = tolerance(element, &floor);
      const double error = std::abs(got - exact);
      if (error > allowed) ++wrong_elements;
      if (worst >= 0 && error <= report.ratio * allowed) continue;
      worst = first + c;
      worst_exact = exact;
      report.ratio = error / allowed;
      report.max_error = error;
      report.tolerance = allowed;
      report.floor = floor;
      report.reference_error = (allowed - floor) / 2;
    }
    if (wrong_elements > wrong_before) ++wrong_rows;
  }

  if (!report.finite) {
    // One whose value is known, if there is one.
    const std::int64_t index = lost < 0 ? find_non_finite(output) : lost;
    report.reason = describe_index(shape, index) + ": got " +
                    number(static_cast<double>(output.at(index))) +
                    (lost < 0 ? "" : ", expected " + number(lost_exact)) + " (" +
                    std::to_string(report.non_finite) + " of " + std::to_string(output.size()) +
                    " elements are not finite)";
  } else if (wrong_elements > 0) {
    report.reason =
        describe_index(shape, worst) + ": got " + number(static_cast<double>(output.at(worst))) +
        ", expected " + number(worst_exact) + ", error " + number(report.max_error) +
        " exceeds tolerance " + number(report.tolerance) + " (" + std::to_string(wrong_elements) +
        " elements wrong, in " + std::to_string(wrong_rows) + " of " +
        std::to_string(report.rows_checked) + " checked rows)";
  }
  report.ok = report.finite && wrong_elements == 0;
  return report;
}

LseReport Verifier::check_lse(const HostTensor& lse) const {
  const Shape shape = lse_shape(problem_);
  if (lse.dtype != Dtype::f32 || lse.shape != shape) {
    throw std::invalid_argument(std::string("the LSE is ") + to_string(lse.dtype) + " " +
                                fa::to_string(lse.shape) + ", expected float32 " +
                                fa::to_string(shape));
  }
  LseReport report;
  const auto describe = [&](std::int64_t index, double expected) {
    return "LSE at " + describe_index(shape, index) + ": got " +
           number(static_cast<double>(lse.at(index))) + ", expected " + number(expected);
  };
  std::int64_t worst = -1, wrong = 0;
  double worst_exact = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const std::int64_t index = q_row(problem_, rows_[r].head, rows_[r].row);
    const double exact = lse_[r];
    const auto got = static_cast<double>(lse.at(index));
    if (got == exact) continue;  // also -infinity
    const double magnitude = std::isfinite(exact) ? std::abs(exact) : 0;
    const double floor = 0x1p-22 * magnitude + (problem_.dtype == Dtype::f32 ? 0x1p-20 : 0x1p-11);
    const double allowed = 2 * lse_error_ + floor;
    double error = std::abs(got - exact);
    if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    if (error > allowed) ++wrong;
    if (worst >= 0 && error <= report.ratio * allowed) continue;
    worst = index;
    worst_exact = exact;
    report.ratio = error / allowed;
    report.max_error = error;
    report.tolerance = allowed;
  }
  if (wrong > 0) {
    report.reason = describe(worst, worst_exact) + ", error " + number(report.max_error) +
                    " exceeds tolerance " + number(report.tolerance) + " (" +
                    std::to_string(wrong) + " of " + std::to_string(rows_.size()) +
                    " checked rows are wrong)";
    return report;
  }
  for (std::int64_t i = 0; i < lse.size(); ++i) {
    if (!std::isnan(lse.at(i))) continue;
    report.reason = "LSE at " + describe_index(shape, i) + " is not a number";
    return report;
  }
  report.ok = true;
  return report;
}

}  // namespace fa
