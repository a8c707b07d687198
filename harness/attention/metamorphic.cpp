#include "harness/attention/metamorphic.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

namespace fa {
namespace {

Relation from_report(const CheckReport& report, const char* which) {
  return {report.ok, report.ok ? "" : std::string(which) + ": " + report.reason};
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
    for (std::int64_t i = cut * d; i < problem.seq_kv * d; ++i) {
      // Either sign, so that some masked scores would win the row maximum by far.
      const float sign = (i / d + i) % 2 == 0 ? 1.0f : -1.0f;
      changed.k.set(h * problem.seq_kv * d + i, 100.0f * sign);
      changed.v.set(h * problem.seq_kv * d + i, 30000.0f);
    }
  }
  const HostTensor before = forward(problem, inputs), after = forward(problem, changed);
  for (std::int64_t h = 0; h < problem.batch * problem.heads; ++h) {
    for (std::int64_t row = 0; row < problem.seq_q; ++row) {
      if (visible_keys(problem, row) > cut) break;
      const std::size_t bytes = static_cast<std::size_t>(d) * size_of(problem.dtype);
      const std::int64_t first = (h * problem.seq_q + row) * d;
      const auto offset =
          static_cast<std::ptrdiff_t>(first) * static_cast<std::ptrdiff_t>(size_of(problem.dtype));
      const auto a = before.bytes.begin() + offset, b = after.bytes.begin() + offset;
      const auto end = a + static_cast<std::ptrdiff_t>(bytes);
      const auto found = std::mismatch(a, end, b).first;
      if (found == end) continue;
      const std::int64_t index =
          first + (found - a) / static_cast<std::ptrdiff_t>(size_of(problem.dtype));
      return {false, describe_index(before.shape, index) + " depends on keys from " +
                         std::to_string(cut) +
                         " on, which it must not see: " + std::to_string(before.at(index)) +
                         " became " + std::to_string(after.at(index))};
    }
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
  std::vector<std::int64_t> order(static_cast<std::size_t>(problem.seq_kv));
  const auto row_bytes =
      static_cast<std::ptrdiff_t>(size_of(problem.dtype)) * std::ptrdiff_t{problem.head_dim};
  for (std::int64_t h = 0; h < problem.batch * problem.heads; ++h) {
    std::iota(order.begin(), order.end(), std::int64_t{0});
    for (std::size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[random() % (i + 1)]);
    for (std::size_t j = 0; j < order.size(); ++j) {
      const std::ptrdiff_t from = (h * problem.seq_kv + order[j]) * row_bytes;
      const std::ptrdiff_t to = (h * problem.seq_kv + static_cast<std::int64_t>(j)) * row_bytes;
      std::copy_n(inputs.k.bytes.begin() + from, row_bytes, permuted.k.bytes.begin() + to);
      std::copy_n(inputs.v.bytes.begin() + from, row_bytes, permuted.v.bytes.begin() + to);
    }
  }
  return from_report(Verifier(problem, inputs).check(forward(problem, permuted)),
                     "keys and values permuted");
}

Relation constant_shift(const Problem& problem, const Inputs& inputs, const Forward& forward) {
  Inputs rounded = inputs;
  for (std::int64_t i = 0; i < rounded.k.size(); ++i) {
    rounded.k.set(i, std::clamp(std::round(16 * inputs.k.at(i)) / 16, -8.0f, 8.0f));
  }
  Inputs shifted = rounded;
  for (std::int64_t i = 0; i < shifted.k.size(); ++i) {
    shifted.k.set(i, rounded.k.at(i) + (i % problem.head_dim % 3 == 0 ? 8.0f : -4.0f));
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
