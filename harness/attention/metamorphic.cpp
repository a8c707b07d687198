// SPDX-License-Identifier: MIT
#include "harness/attention/metamorphic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

namespace fa {
namespace {

Relation from_report(const CheckReport& report, const char* which) {
  return {report.ok, report.ok ? "" : std::string(which) + ": " + report.reason};
}

// The first of `count` elements from `first` on whose bits differ, -1 when none does.
std::int64_t first_difference(const HostTensor& a, const HostTensor& b, std::int64_t first,
                              std::int64_t count) {
  const auto size = static_cast<std::ptrdiff_t>(size_of(a.dtype));
  const auto begin = a.bytes.begin() + first * size, end = begin + count * size;
  const auto found = std::mismatch(begin, end, b.bytes.begin() + first * size).first;
  return found == end ? -1 : first + (found - begin) / size;
}

std::string change_at(const HostTensor& before, const HostTensor& after, std::int64_t index) {
  return std::to_string(before.at(index)) + " became " + std::to_string(after.at(index));
}

}  // namespace

Relation causal_prefix_invariance(const Problem& problem, const Inputs& inputs, std::int64_t cut,
                                  const Forward& forward) {
  if (!problem.causal || cut < 1 || cut >= problem.seq_kv) {
    throw std::invalid_argument("prefix invariance needs a causal problem and a cut in [1, " +
                                std::to_string(problem.seq_kv) + "), got " + to_string(problem) +
                                " and " + std::to_string(cut));
  }
  const std::int64_t d = problem.head_dim;
  Inputs changed = inputs;
  for (std::int64_t h = 0; h < problem.batch * problem.heads; ++h) {
    for (std::int64_t key = cut; key < problem.length(h / problem.heads); ++key) {
      const std::int64_t first = kv_row(problem, inputs, h, key) * d;
      for (std::int64_t i = 0; i < d; ++i) {
        // Either sign, so that some masked scores would win the row maximum by far.
        changed.k.set(first + i, (key + i) % 2 == 0 ? 100.0f : -100.0f);
        changed.v.set(first + i, 30000.0f);
      }
    }
  }
  const HostTensor before = forward(problem, inputs), after = forward(problem, changed);
  for (std::int64_t h = 0; h < problem.batch * problem.heads; ++h) {
    for (std::int64_t row = 0; row < problem.queries(h / problem.heads); ++row) {
      if (visible_keys(problem, row, h).end > cut) break;
      const std::int64_t first = q_row(problem, h, row) * d;
      const std::int64_t index = first_difference(before, after, first, d);
      if (index < 0) continue;
      return {false, describe_index(before.shape, index) + " depends on keys from " +
                         std::to_string(cut) +
                         " on, which it must not see: " + change_at(before, after, index)};
    }
  }
  return {true, ""};
}

Relation untouched_rows(const Problem& problem, const Inputs& inputs, const Inputs& other_queries,
                        const Forward& forward) {
  if (inputs.k.bytes != other_queries.k.bytes || inputs.v.bytes != other_queries.v.bytes) {
    throw std::invalid_argument("the two inputs must differ in Q alone");
  }
  const std::int64_t d = problem.head_dim;
  std::vector<std::int64_t> untouched;
  for (std::int64_t row = 0; row < problem.q_rows(); ++row) {
    if (first_difference(inputs.q, other_queries.q, row * d, d) < 0) untouched.push_back(row);
  }
  if (untouched.empty() || std::ssize(untouched) == problem.q_rows()) {
    throw std::invalid_argument("some queries must differ and some must not, " +
                                std::to_string(untouched.size()) + " of " +
                                std::to_string(problem.q_rows()) + " are equal");
  }
  const HostTensor before = forward(problem, inputs), after = forward(problem, other_queries);
  for (const std::int64_t row : untouched) {
    const std::int64_t index = first_difference(before, after, row * d, d);
    if (index < 0) continue;
    return {false, describe_index(before.shape, index) +
                       " depends on the queries of other rows: " + change_at(before, after, index)};
  }
  return {true, ""};
}

Relation joint_permutation(const Problem& problem, const Inputs& inputs, std::uint64_t seed,
                           const Forward& forward) {
  if (problem.causal) {
    throw std::invalid_argument("permuting keys needs a problem without a mask, got " +
                                to_string(problem));
  }
  Inputs permuted = inputs;
  std::mt19937_64 random(seed);
  const auto row_bytes =
      static_cast<std::ptrdiff_t>(size_of(problem.kv_dtype())) * std::ptrdiff_t{problem.head_dim};
  for (std::int64_t h = 0; h < problem.batch * problem.heads; h += problem.group()) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(problem.length(h / problem.heads)));
    if (order.empty()) continue;
    std::iota(order.begin(), order.end(), std::int64_t{0});
    for (std::size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[random() % (i + 1)]);
    for (std::size_t j = 0; j < order.size(); ++j) {
      const std::ptrdiff_t from = kv_row(problem, inputs, h, order[j]) * row_bytes;
      const std::ptrdiff_t to =
          kv_row(problem, inputs, h, static_cast<std::int64_t>(j)) * row_bytes;
      std::copy_n(inputs.k.bytes.begin() + from, row_bytes, permuted.k.bytes.begin() + to);
      std::copy_n(inputs.v.bytes.begin() + from, row_bytes, permuted.v.bytes.begin() + to);
    }
  }
  return from_report(Verifier(problem, inputs).check(forward(problem, permuted)),
                     "keys and values permuted");
}

Relation unused_memory(const Problem& problem, const Inputs& inputs, const Forward& forward) {
  if (problem.lengths.empty() && problem.page == 0) {
    throw std::invalid_argument("every row of K and V is a key of " + to_string(problem));
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Inputs changed = inputs;
  fill_unused(problem, changed, kNan, kNan);
  const HostTensor before = forward(problem, inputs), after = forward(problem, changed);
  const std::int64_t index = first_difference(before, after, 0, before.size());
  if (index < 0) return {true, ""};
  return {false, describe_index(before.shape, index) +
                     " depends on what lies behind a length or in an unused page: " +
                     change_at(before, after, index)};
}

Relation neighbours(const Problem& problem, const Inputs& inputs, const Forward& forward) {
  if (!problem.packed()) {
    throw std::invalid_argument("neighbours are sequences of a packed batch, got " +
                                to_string(problem));
  }
  const std::int64_t d = problem.head_dim;
  const HostTensor before = forward(problem, inputs);
  for (const std::int64_t odd : {0, 1}) {
    Inputs changed = inputs;
    const auto spoil = [&](HostTensor& tensor, std::int64_t row) {
      for (std::int64_t i = row * d; i < (row + 1) * d; ++i)
        tensor.set(i, i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                 : std::numeric_limits<float>::infinity());
    };
    for (std::int64_t h = 0; h < problem.batch * problem.heads; ++h) {
      const std::int64_t entry = h / problem.heads;
      if (entry % 2 != odd) continue;
      for (std::int64_t row = 0; row < problem.queries(entry); ++row)
        spoil(changed.q, q_row(problem, h, row));
      for (std::int64_t key = 0; key < problem.length(entry); ++key)
        for (HostTensor* tensor : {&changed.k, &changed.v})
          spoil(*tensor, kv_row(problem, inputs, h, key));
    }
    const HostTensor after = forward(problem, changed);
    for (std::int64_t h = 0; h < problem.batch * problem.heads; ++h) {
      const std::int64_t entry = h / problem.heads;
      for (std::int64_t row = 0; entry % 2 != odd && row < problem.queries(entry); ++row) {
        const std::int64_t index = first_difference(before, after, q_row(problem, h, row) * d, d);
        if (index < 0) continue;
        return {false, describe_index(before.shape, index) +
                           " depends on another sequence of the batch: " +
                           change_at(before, after, index)};
      }
    }
  }
  return {true, ""};
}

Relation constant_shift(const Problem& problem, const Inputs& inputs, const Forward& forward) {
  Inputs rounded = inputs;
  // Steps that both summands and their sum are whole numbers of, within the mantissa.
  const float step = problem.e4m3 ? 32 : 1.0f / 16, limit = problem.e4m3 ? 128 : 8;
  const float shift = problem.e4m3 ? 256 : 8;
  for (std::int64_t i = 0; i < rounded.k.size(); ++i) {
    rounded.k.set(i, std::clamp(std::round(inputs.k.at(i) / step) * step, -limit, limit));
  }
  Inputs shifted = rounded;
  for (std::int64_t i = 0; i < shifted.k.size(); ++i) {
    shifted.k.set(i, rounded.k.at(i) + (i % problem.head_dim % 3 == 0 ? shift : -shift / 2));
  }
  Relation base =
      from_report(Verifier(problem, rounded).check(forward(problem, rounded)), "before the shift");
  if (!base.ok) return base;
  // The exact rows are those of the unshifted problem; larger scores only round more coarsely, and
  // a verifier of their own knows by how much.
  return from_report(Verifier(problem, shifted).check(forward(problem, shifted)),
                     "a constant on each row's scores");
}

}  // namespace fa
