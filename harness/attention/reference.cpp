// SPDX-License-Identifier: MIT
#include "harness/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>

#include "harness/attention/parallel.h"
#include "harness/attention/roundings.h"
#include "harness/attention/rows.h"

namespace fa {
namespace {

constexpr std::int64_t kKeys = 16;  // keys converted at a time

// The work of one thread on up to kRowsTogether rows of one head. Exact and straightforward
// computation go side by side: they share the loads.
class RowGroup {
 public:
  RowGroup(const Problem& problem, const Inputs& inputs, std::span<const RowId> rows)
      : problem_(problem),
        inputs_(inputs),
        rows_(rows),
        d_(problem.head_dim),
        head_(rows.front().head),
        keys_(visible_keys(problem, rows.back().row, head_).end),
        stride_((keys_ + kKeys - 1) / kKeys * kKeys),
        mean_square_(idx(stride_)),
        p_exact_(rows.size() * idx(stride_) + 1),
        p_(rows.size() * idx(stride_) + 1) {}

  void run(double* exact, float* straightforward, double* spread, double* element_spread,
           double* largest_score, double* lse_exact, float* lse_straightforward) {
    std::fill_n(exact, std::ssize(rows_) * d_, 0.0);
    std::fill_n(straightforward, std::ssize(rows_) * d_, 0.0f);
    std::fill_n(spread, std::ssize(rows_), 0.0);
    std::fill_n(element_spread, std::ssize(rows_) * d_, 0.0);
    std::fill_n(largest_score, std::ssize(rows_), 0.0);
    std::fill_n(lse_exact, std::ssize(rows_), -std::numeric_limits<double>::infinity());
    std::fill_n(lse_straightforward, std::ssize(rows_), -std::numeric_limits<float>::infinity());
    if (keys_ == 0 && !problem_.sinks) return;
    scores();
    for (std::int64_t r = 0; r < std::ssize(rows_); ++r) largest_score[r] = softmax(r);
    weighted_sum(exact, straightforward, element_spread);
    for (std::int64_t r = 0; r < std::ssize(rows_); ++r) {
      const double sum = exact_sum_[r];
      const float rounded_sum = sum_[r];
      if (sum == 0) continue;
      lse_exact[r] = exact_max_[r] + std::log(sum);
      lse_straightforward[r] = max_[r] + std::log(rounded_sum);
      double square = 0;
      for (std::int64_t j = 0; j < keys_; ++j) {
        const double p = p_exact_[idx(r * stride_ + j)] / sum;
        square += p * p * mean_square_[idx(j)];
      }
      spread[r] = std::sqrt(square);
      for (std::int64_t c = 0; c < d_; ++c) {
        exact[r * d_ + c] /= sum;
        straightforward[r * d_ + c] /= rounded_sum;
        element_spread[r * d_ + c] = std::sqrt(element_spread[r * d_ + c]) / sum;
      }
    }
  }

 private:
  // The rows of `count` keys from `first` on.
  void load_keys(const HostTensor& tensor, float scale, std::int64_t first, std::int64_t count,
                 float* out) const {
    for (std::int64_t j = 0; j < count; ++j) {
      load_row(tensor, kv_row(problem_, inputs_, head_, first + j) * d_, d_, out + j * d_);
    }
    if (scale != 1) {
      for (std::int64_t i = 0; i < count * d_; ++i) out[i] *= scale;
    }
  }

  void scores() {
    std::vector<float> q(rows_.size() * idx(d_)), tile(idx(kKeys * d_)), k(idx(kKeys * d_));
    std::vector<double> k_exact(idx(kKeys * d_));
    for (std::int64_t r = 0; r < std::ssize(rows_); ++r) {
      load_row(inputs_.q, q_row(problem_, head_, rows_[idx(r)].row) * d_, d_, q.data() + r * d_);
    }
    for (std::int64_t first = 0; first < keys_; first += kKeys) {
      const std::int64_t count = std::min(kKeys, keys_ - first);
      load_keys(inputs_.k, inputs_.k_scale(problem_, head_), first, count, tile.data());
      for (std::int64_t j = 0; j < kKeys; ++j) {
        for (std::int64_t c = 0; c < d_; ++c) {
          const float value = j < count ? tile[idx(j * d_ + c)] : 0.0f;
          k[idx(c * kKeys + j)] = value;
          k_exact[idx(c * kKeys + j)] = static_cast<double>(value);
        }
      }
      for (std::int64_t r = 0; r < std::ssize(rows_); ++r) {
        dots(q.data() + r * d_, k.data(), k_exact.data(), &p_[idx(r * stride_ + first)],
             &p_exact_[idx(r * stride_ + first)]);
      }
    }
  }

  void dots(const float* q, const float* k, const double* k_exact, float* s,
            double* s_exact) const {
    float sum[kKeys] = {};
    double sum_exact[kKeys] = {};
    for (std::int64_t c = 0; c < d_; ++c) {
      const float qc = q[c];
      const auto qc_exact = static_cast<double>(qc);
      for (std::int64_t j = 0; j < kKeys; ++j) {
        sum[j] += qc * k[c * kKeys + j];
        sum_exact[j] += qc_exact * k_exact[c * kKeys + j];
      }
    }
    std::copy_n(sum, kKeys, s);
    std::copy_n(sum_exact, kKeys, s_exact);
  }

  // Returns the largest magnitude of a score.
  double softmax(std::int64_t r) {
    const auto [first, visible] = visible_keys(problem_, rows_[idx(r)].row, head_);
    float* p = &p_[idx(r * stride_)];
    double* exact = &p_exact_[idx(r * stride_)];
    const double scale = problem_.scale();
    const auto scale_float = static_cast<float>(scale);
    float max = -std::numeric_limits<float>::infinity();
    double max_exact = -std::numeric_limits<double>::infinity(), largest = 0;
    for (std::int64_t j = first; j < visible; ++j) {
      max = std::max(max, p[j] *= scale_float);
      max_exact = std::max(max_exact, exact[j] *= scale);
      largest = std::max(largest, std::abs(exact[j]));
    }
    float sum = 0;
    double sum_exact = 0;
    if (problem_.sinks) {
      const float sink = inputs_.sinks[idx(head_ % problem_.heads)];
      max = std::max(max, sink);
      max_exact = std::max(max_exact, static_cast<double>(sink));
      sum = std::exp(sink - max);
      sum_exact = std::exp(static_cast<double>(sink) - max_exact);
    }
    for (std::int64_t j = first; j < visible; ++j) {
      p[j] = std::exp(p[j] - max);
      sum += p[j];
      p[j] = rounded_to(problem_.dtype, p[j]);
      exact[j] = std::exp(exact[j] - max_exact);
      sum_exact += exact[j];
    }
    std::fill(p, p + first, 0.0f);
    std::fill(p + visible, p + stride_, 0.0f);
    std::fill(exact, exact + first, 0.0);
    std::fill(exact + visible, exact + stride_, 0.0);
    max_[r] = max;
    sum_[r] = sum;
    exact_max_[r] = max_exact;
    exact_sum_[r] = sum_exact;
    return largest;
  }

  void weighted_sum(double* exact, float* straightforward, double* squares) {
    std::vector<float> v(idx(kKeys * d_));
    const bool half = problem_.dtype != Dtype::f32;
    for (std::int64_t first = 0; first < keys_; first += kKeys) {
      const std::int64_t count = std::min(kKeys, keys_ - first);
      load_keys(inputs_.v, inputs_.v_scale(problem_, head_), first, count, v.data());
      std::fill(v.begin() + count * d_, v.end(), 0.0f);
      for (std::int64_t j = 0; j < count; ++j) {
        double square = 0;
        for (std::int64_t c = 0; c < d_; ++c) {
          const auto value = static_cast<double>(v[idx(j * d_ + c)]);
          square += value * value;
        }
        mean_square_[idx(first + j)] = square / static_cast<double>(d_);
      }
      for (std::int64_t r = 0; r < std::ssize(rows_); ++r) {
        const std::size_t p = idx(r * stride_ + first);
        add_exact(&p_exact_[p], v.data(), exact + r * d_, squares + r * d_);
        if (half) {
          for (std::int64_t j = 0; j < kKeys; j += kTruncateEvery) {
            add_half(&p_[p + idx(j)], v.data() + j * d_, straightforward + r * d_);
          }
        } else {
          add_float(&p_[p], v.data(), straightforward + r * d_);
        }
      }
    }
  }

  void add_exact(const double* p, const float* v, double* out, double* squares) const {
    for (std::int64_t j = 0; j < kKeys; j += 4) {
      const float* v0 = v + j * d_;
      for (std::int64_t c = 0; c < d_; ++c) {
        const double a = p[j] * static_cast<double>(v0[c]);
        const double b = p[j + 1] * static_cast<double>(v0[d_ + c]);
        const double e = p[j + 2] * static_cast<double>(v0[2 * d_ + c]);
        const double f = p[j + 3] * static_cast<double>(v0[3 * d_ + c]);
        out[c] += a + b + e + f;
        squares[c] += a * a + b * b + e * e + f * f;
      }
    }
  }

  void add_half(const float* p, const float* v, float* out) const {
    static_assert(kTruncateEvery == 8);
    for (std::int64_t c = 0; c < d_; ++c) {
      const float low =
          p[0] * v[c] + p[1] * v[d_ + c] + p[2] * v[2 * d_ + c] + p[3] * v[3 * d_ + c];
      const float high =
          p[4] * v[4 * d_ + c] + p[5] * v[5 * d_ + c] + p[6] * v[6 * d_ + c] + p[7] * v[7 * d_ + c];
      out[c] = add_truncated(out[c], low + high);
    }
  }

  void add_float(const float* p, const float* v, float* out) const {
    for (std::int64_t c = 0; c < d_; ++c) {
      float sum = out[c];
      for (std::int64_t j = 0; j < kKeys; ++j) sum += p[j] * v[j * d_ + c];
      out[c] = sum;
    }
  }

  const Problem& problem_;
  const Inputs& inputs_;
  std::span<const RowId> rows_;
  std::int64_t d_;
  std::int64_t head_;
  std::int64_t keys_;    // visible to the last row, hence to any
  std::int64_t stride_;  // keys_ in whole tiles
  std::vector<double> mean_square_;
  std::vector<double> p_exact_;  // scores, then weights; rows x stride_
  std::vector<float> p_;
  double exact_max_[kRowsTogether] = {};
  double exact_sum_[kRowsTogether] = {};
  float max_[kRowsTogether] = {};
  float sum_[kRowsTogether] = {};
};

}  // namespace

std::vector<RowId> choose_rows(const Problem& problem, std::int64_t budget, std::uint64_t seed) {
  const std::int64_t heads = problem.batch * problem.heads;
  const auto rows_of = [&](std::int64_t head) { return problem.queries(head / problem.heads); };
  // Rows with few keys still cost their share of memory.
  const std::int64_t cost = std::max<std::int64_t>(problem.seq_kv, 64) * problem.head_dim;
  const std::int64_t affordable = std::max<std::int64_t>(64, budget / cost);
  std::vector<RowId> rows;
  if (problem.q_rows() <= affordable) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < rows_of(h); ++i) rows.push_back({h, i});
    }
    return rows;
  }

  std::mt19937_64 random(
      seed);  // its sequence is fixed by the standard, those of distributions not
  auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  if (heads <= affordable / 2) {
    for (std::int64_t h = 0; h < heads; ++h)
      if (rows_of(h) > 0) rows.push_back({h, below(rows_of(h))});
  }
  const std::int64_t left = affordable - std::ssize(rows);
  constexpr std::int64_t kRowsPerHead = 32;
  const std::int64_t sampled = std::clamp<std::int64_t>(
      left / std::min(problem.seq_q, kRowsPerHead), std::min<std::int64_t>(2, heads), heads);
  std::vector<std::int64_t> chosen{0, heads - 1};
  // The last head of the first batch and the first of the next: where a batch stride goes wrong.
  if (problem.batch > 1 && sampled >= 4) {
    chosen.insert(chosen.end(), {problem.heads - 1, problem.heads});
  }
  while (std::ssize(chosen) < sampled) chosen.push_back(below(heads));
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  const std::int64_t per_head = std::max(kRowsPerHead, left / std::ssize(chosen));
  for (const std::int64_t h : chosen) {
    const std::int64_t n = rows_of(h);
    if (n <= per_head) {
      for (std::int64_t i = 0; i < n; ++i) rows.push_back({h, i});
      continue;
    }
    std::vector<std::int64_t> picked{0, 1, n - 2, n - 1};
    for (const std::int64_t tile : {16, 64, 128, 192}) {
      const std::int64_t edges = (n - 1) / tile;
      if (edges == 0) continue;
      for (const std::int64_t edge : {std::int64_t{1}, 1 + below(edges), edges}) {
        picked.insert(picked.end(), {edge * tile - 1, edge * tile});
      }
    }
    while (std::ssize(picked) < per_head) picked.push_back(below(n));
    for (const std::int64_t i : picked) rows.push_back({h, i});
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

ReferenceRows reference_rows(const Problem& problem, const Inputs& inputs,
                             const std::vector<RowId>& rows) {
  const std::int64_t d = problem.head_dim;
  ReferenceRows result{empty_rows(rows.size(), d), std::vector<double>(rows.size()),
                       std::vector<float>(rows.size())};
  for_each_group(rows, [&](std::int64_t first, std::int64_t count) {
    RowGroup group(problem, inputs, std::span(rows).subspan(idx(first), idx(count)));
    group.run(&result.exact[idx(first * d)], &result.straightforward[idx(first * d)],
              &result.spread[idx(first)], &result.element_spread[idx(first * d)],
              &result.largest_score[idx(first)], &result.lse_exact[idx(first)],
              &result.lse_straightforward[idx(first)]);
  });
  return result;
}

}  // namespace fa
