// SPDX-License-Identifier: MIT
#include "harness/attention/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

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
    : problem_(problem) {
  require_inputs(problem, inputs);
  if (problem.backward) {
    expect_gradients(inputs, options);
    return;
  }
  rows_ = choose_rows(problem, options.budget, options.seed);
  ReferenceRows reference = reference_rows(problem, inputs, rows_);
  expect("", problem, rows_, static_cast<ExpectedRows&&>(reference));
  lse_ = std::move(reference.lse_exact);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto straightforward = static_cast<double>(reference.lse_straightforward[r]);
    if (std::isfinite(lse_[r]))
      lse_error_ = std::max(lse_error_, std::abs(straightforward - lse_[r]));
  }
}

void Verifier::expect_gradients(const Inputs& inputs, const VerifierOptions& options) {
  // A row of dQ takes three products where one of O takes two, one of dK and dV four.
  rows_ = choose_rows(problem_, options.budget / 4, options.seed);
  const Problem keys = transposed(problem_);
  const std::vector<RowId> key_rows = choose_rows(keys, options.budget / 4, options.seed);
  expect("dQ", problem_, rows_, reference_d_q(problem_, inputs, rows_));
  KeyGradientRows of_keys = reference_d_kv(problem_, inputs, key_rows);
  expect("dK", keys, key_rows, std::move(of_keys.d_k));
  expect("dV", keys, key_rows, std::move(of_keys.d_v));
}

void Verifier::expect(const char* name, const Problem& of, const std::vector<RowId>& ids,
                      ExpectedRows reference) {
  Expected& made =
      expected_.emplace_back(Expected{std::move(reference), name, of.dtype, q_shape(of), {}, 0});
  for (const RowId& id : ids) made.rows.push_back(q_row(of, id.head, id.row));
  made.measure();
}

void Verifier::Expected::measure() {
  const auto d = static_cast<std::size_t>(shape[3]);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (spread[r] == 0) continue;
    for (std::size_t i = r * d; i < (r + 1) * d; ++i) {
      const double error = std::abs(static_cast<double>(straightforward[i]) - exact[i]);
      relative_error = std::max(relative_error, error / spread[r]);
    }
  }
}

double Verifier::Expected::tolerance(std::size_t element, double* floor) const {
  const std::size_t row = element / static_cast<std::size_t>(shape[3]);
  const double of_row = spread[row], magnitude = std::abs(exact[element]);
  const double of_scores = 0x1p-24 * largest_score[row] * of_row;
  const double of_weights = dtype == Dtype::bf16 ? 0x1p-7 : 0x1p-10;  // as P is rounded
  const double of_difference = cancelled.empty() ? 0 : cancelled[element];
  const double least =
      of_scores + of_difference +
      (dtype == Dtype::f32 ? 0x1p-24 * (16 * of_row + 4 * magnitude)
                           : of_weights * std::max(of_row, element_spread[element]));
  const double before_rounding = 2 * relative_error * of_row + least;
  // The kernel's value may lie just across a power of two, where the ulp doubles.
  const double rounding = half_ulp(dtype, magnitude + before_rounding);
  *floor = rounding + least;
  return before_rounding + rounding;
}

CheckReport Verifier::check(const HostTensor& output) const {
  return expected_.front().check(output);
}

CheckReport Verifier::check(const Gradients& gradients) const {
  const HostTensor* tensors[] = {&gradients.d_q, &gradients.d_k, &gradients.d_v};
  CheckReport all;
  all.ok = all.finite = true;
  for (std::size_t i = 0; i < std::size(tensors); ++i) {
    const CheckReport one = expected_.at(i).check(*tensors[i]);
    if (i == 0 || one.ratio > all.ratio) {
      all.max_error = one.max_error;
      all.reference_error = one.reference_error;
      all.tolerance = one.tolerance;
      all.floor = one.floor;
      all.ratio = one.ratio;
    }
    all.ok &= one.ok;
    all.finite &= one.finite;
    all.non_finite += one.non_finite;
    all.rows_checked += one.rows_checked;
    all.rows_total += one.rows_total;
    if (all.reason.empty()) all.reason = one.reason;
  }
  return all;
}

CheckReport Verifier::Expected::check(const HostTensor& output) const {
  const std::string what = *name == '\0' ? "" : std::string(name) + " at ";
  if (output.dtype != dtype || output.shape != shape) {
    throw std::invalid_argument((*name == '\0' ? "the output" : name) + std::string(" is ") +
                                to_string(output.dtype) + " " + fa::to_string(output.shape) +
                                ", expected " + to_string(dtype) + " " + fa::to_string(shape));
  }
  CheckReport report;
  report.rows_checked = std::ssize(rows);
  report.rows_total = shape[0] * shape[1] * shape[2];
  report.non_finite = count_non_finite(output);
  report.finite = report.non_finite == 0;

  const std::int64_t d = shape[3];
  std::int64_t worst = -1, lost = -1, wrong_elements = 0, wrong_rows = 0;
  double worst_exact = 0, lost_exact = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::int64_t first = rows[r] * d;
    const std::int64_t wrong_before = wrong_elements;
    for (std::int64_t c = 0; c < d; ++c) {
      const std::size_t element = r * static_cast<std::size_t>(d) + static_cast<std::size_t>(c);
      const double wanted = exact[element];
      const auto got = static_cast<double>(output.at(first + c));
      if (!std::isfinite(got)) {  // counted above, named below
        if (lost < 0) lost = first + c, lost_exact = wanted;
        continue;
      }
      double floor = 0;
      const double allowed = tolerance(element, &floor);
      const double error = std::abs(got - wanted);
      if (error > allowed) ++wrong_elements;
      if (worst >= 0 && error <= report.ratio * allowed) continue;
      worst = first + c;
      worst_exact = wanted;
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
    report.reason = what + describe_index(shape, index) + ": got " +
                    number(static_cast<double>(output.at(index))) +
                    (lost < 0 ? "" : ", expected " + number(lost_exact)) + " (" +
                    std::to_string(report.non_finite) + " of " + std::to_string(output.size()) +
                    " elements are not finite)";
  } else if (wrong_elements > 0) {
    report.reason = what + describe_index(shape, worst) + ": got " +
                    number(static_cast<double>(output.at(worst))) + ", expected " +
                    number(worst_exact) + ", error " + number(report.max_error) +
                    " exceeds tolerance " + number(report.tolerance) + " (" +
                    std::to_string(wrong_elements) + " elements wrong, in " +
                    std::to_string(wrong_rows) + " of " + std::to_string(report.rows_checked) +
                    " checked rows)";
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
