// SPDX-License-Identifier: MIT
#include "harness/results/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/types.h"

namespace fa {
namespace {

template <typename Same>
std::vector<RatePair> pair_rows(std::span<const Row* const> first,
                                std::span<const Row* const> second, Same same) {
  std::vector<RatePair> pairs;
  for (const Row* a : first) {
    for (const Row* b : second) {
      const auto x = rate_of(*a), y = rate_of(*b);
      if (!x || !y || !(a->key.problem == b->key.problem && a->key.inputs == b->key.inputs) ||
          !same(a->key, b->key)) {
        continue;
      }
      const bool tile = a->key.kind == RowKind::rung && !a->key.variant.empty();
      pairs.push_back({.kernel = a->key.id + (tile ? " " + a->key.variant : ""),
                       .problem = a->key.problem,
                       .inputs = a->key.inputs,
                       .first = *x,
                       .second = *y});
    }
  }
  return pairs;
}

double distance(const RatePair& pair) {
  return std::abs(std::log(pair.change().value));
}

}  // namespace

std::string to_string(const Spread& spread) {
  if (spread.plus_minus <= 0) return fmt::format("{:.4g}", spread.value);
  constexpr int kMostPlaces = 6;
  const int places =
      std::clamp(-static_cast<int>(std::floor(std::log10(spread.plus_minus))), 0, kMostPlaces);
  return fmt::format("{:.{}f} +- {:.{}f}", spread.value, places, spread.plus_minus, places);
}

const char* rate_unit(const Problem& problem) {
  return problem.seq_q <= kFewQueries ? "GB/s" : "TFLOPS";
}

std::optional<double> rate_at(const Row& row, double ms) {
  const std::optional<double> rate = row.key.problem.seq_q <= kFewQueries ? row.gbs : row.tflops;
  if (!rate || !row.time_ms || ms <= 0) return std::nullopt;
  return *rate * row.time_ms->median / ms;
}

std::optional<Spread> rate_of(const Row& row) {
  if (!row.time_ms) return std::nullopt;
  const RowTimes& times = *row.time_ms;
  const std::optional<double> rate = rate_at(row, times.back_to_back.value_or(times.median));
  if (!rate) return std::nullopt;
  return Spread{*rate, times.back_to_back ? 0 : *rate * (times.p90 - times.p10) / 2 / times.median};
}

Spread ratio(const Spread& first, const Spread& second) {
  const double value = second.value / first.value;
  return {value,
          value * std::hypot(first.plus_minus / first.value, second.plus_minus / second.value)};
}

bool RatePair::differs() const {
  const Spread quotient = change();
  return std::abs(quotient.value - 1) > std::max(kLeastChange, quotient.plus_minus);
}

std::vector<RatePair> pair_problems(std::span<const Row* const> first,
                                    std::span<const Row* const> second) {
  return pair_rows(first, second, [](const RowKey&, const RowKey&) { return true; });
}

std::vector<RatePair> pair_kernels(std::span<const Row* const> first,
                                   std::span<const Row* const> second) {
  return pair_rows(first, second, [](const RowKey& a, const RowKey& b) {
    return a.kind == b.kind && a.id == b.id && (a.kind == RowKind::peer || a.variant == b.variant);
  });
}

std::size_t sort_by_change(std::vector<RatePair>& pairs) {
  const auto split = std::stable_partition(pairs.begin(), pairs.end(),
                                           [](const RatePair& pair) { return pair.differs(); });
  std::stable_sort(pairs.begin(), split,
                   [](const RatePair& a, const RatePair& b) { return distance(a) > distance(b); });
  return static_cast<std::size_t>(split - pairs.begin());
}

}  // namespace fa
