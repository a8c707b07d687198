// SPDX-License-Identifier: MIT
#include "harness/attention/backward.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/attention/parallel.h"
#include "harness/attention/roundings.h"
#include "harness/attention/rows.h"

namespace fa {
namespace {

// Smaller P may be 0: ex2 flushes them.
constexpr double kLeastP = 0x1p-126;
// What a product loses on tensor cores, of its value, for each column: on average half an ulp each
// time that a sum is truncated.
constexpr double kTruncationLoss = 0x1p-24 / kTruncateEvery;

/// D of every query, and the product of the lengths of its vectors.
struct RowTerms {
  std::vector<double> exact, lengths;
  std::vector<float> rounded;
};

double length(const float* x, std::int64_t count) {
  double square = 0;
  for (std::int64_t i = 0; i < count; ++i)
    square += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(square);
}

RowTerms row_terms(const Problem& problem, const Inputs& inputs) {
  const std::int64_t d = problem.head_dim;
  const std::size_t rows = idx(problem.q_rows());
  RowTerms terms{std::vector<double>(rows), std::vector<double>(rows), std::vector<float>(rows)};
  parallel_for(problem.q_rows(), 256, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> o(idx(d)), d_o(idx(d));
    for (std::int64_t row = begin; row < end; ++row) {
      load_row(inputs.o, row * d, d, o.data());
      load_row(inputs.d_o, row * d, d, d_o.data());
      for (std::int64_t c = 0; c < d; ++c) {
        terms.exact[idx(row)] += static_cast<double>(o[idx(c)]) * static_cast<double>(d_o[idx(c)]);
        terms.rounded[idx(row)] += o[idx(c)] * d_o[idx(c)];
      }
      terms.lengths[idx(row)] = length(o.data(), d) * length(d_o.data(), d);
    }
  });
  return terms;
}

/// A sum of weighted vectors for each of kRowsTogether rows, exact and with a kernel's roundings.
/// Elements are [column][row], so that the compiler computes rows side by side.
class Sum {
 public:
  Sum(std::int64_t columns, Dtype dtype)
      : columns_(columns),
        dtype_(dtype),
        exact_(idx(columns * kRowsTogether)),
        squares_(idx(columns * kRowsTogether)),
        cancelled_(idx(columns * kRowsTogether)),
        truncated_(idx(columns * kRowsTogether)),
        straightforward_(idx(columns * kRowsTogether)),
        waiting_(idx(columns * kRowsTogether)) {}

  /// `cancelled` and `truncated`: errors of the weights, of any sign, and all towards zero.
  void add(const double* weights, const float* rounded, const double* cancelled,
           const double* truncated, const float* vector) {
    double mean_square = 0;
    const bool half = dtype_ != Dtype::f32;
    float w[kRowsTogether];
    for (std::int64_t r = 0; r < kRowsTogether; ++r)
      w[r] = half ? rounded_to(dtype_, rounded[r]) : rounded[r];
    float* const sums = half ? waiting_.data() : straightforward_.data();
    for (std::int64_t c = 0; c < columns_; ++c) {
      const float x = vector[c];
      const auto x_exact = static_cast<double>(x);
      mean_square += x_exact * x_exact;
      for (std::int64_t r = 0; r < kRowsTogether; ++r) {
        const double term = weights[r] * x_exact;
        exact_[idx(c * kRowsTogether + r)] += term;
        squares_[idx(c * kRowsTogether + r)] += term * term;
        cancelled_[idx(c * kRowsTogether + r)] += cancelled[r] * cancelled[r] * x_exact * x_exact;
        truncated_[idx(c * kRowsTogether + r)] += truncated[r] * x_exact;
        sums[c * kRowsTogether + r] += w[r] * x;
      }
    }
    mean_square /= static_cast<double>(columns_);
    for (std::int64_t r = 0; r < kRowsTogether; ++r)
      spread_[r] += weights[r] * weights[r] * mean_square;
    if (half && ++count_ % kTruncateEvery == 0) flush();
  }

  /// Row r of those it has, times the factor, as row `place` of the result.
  void store(std::int64_t r, double factor, std::int64_t place, ExpectedRows& to) {
    flush();
    to.spread[idx(place)] = factor * std::sqrt(spread_[r]);
    for (std::int64_t c = 0; c < columns_; ++c) {
      const std::size_t from = idx(c * kRowsTogether + r), at = idx(place * columns_ + c);
      to.exact[at] = factor * exact_[from];
      to.element_spread[at] = factor * std::sqrt(squares_[from]);
      to.cancelled[at] = factor * (std::sqrt(cancelled_[from]) + std::abs(truncated_[from]));
      to.straightforward[at] = static_cast<float>(factor) * straightforward_[from];
    }
  }

 private:
  void flush() {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      straightforward_[i] = add_truncated(straightforward_[i], waiting_[i]);
      waiting_[i] = 0;
    }
  }

  std::int64_t columns_;
  Dtype dtype_;
  std::vector<double> exact_, squares_, cancelled_, truncated_;
  std::vector<float> straightforward_, waiting_;
  double spread_[kRowsTogether] = {};
  std::int64_t count_ = 0;
};

/// A row of Q and dO, or of K and V.
struct Pair {
  const HostTensor *first, *second;
  std::int64_t row;
};

/// Up to kRowsTogether rows of one head, queries or keys, beside which those of the other kind go
/// past.
class Group {
 public:
  Group(const Problem& problem, const RowTerms& terms, const Inputs& inputs)
      : problem_(problem),
        terms_(terms),
        inputs_(inputs),
        d_(problem.head_dim),
        a_(idx(d_ * kRowsTogether)),
        b_(idx(d_ * kRowsTogether)),
        x_(idx(d_)),
        y_(idx(d_)),
        d_s_(d_, problem.dtype),
        p_(d_, problem.dtype) {}

  void set_row(std::int64_t r, const Pair& own) {
    load(own);
    for (std::int64_t c = 0; c < d_; ++c) {
      a_[idx(c * kRowsTogether + r)] = x_[idx(c)];
      b_[idx(c * kRowsTogether + r)] = y_[idx(c)];
    }
    length_[r] = length(y_.data(), d_);
  }

  /// Adds what a row of the other kind contributes; query(r) is the row of the query, or -1 where
  /// the two do not see each other.
  template <class Query>
  void add(const Pair& other, bool with_p, const Query& query) {
    load(other);
    float s[kRowsTogether] = {}, d_p[kRowsTogether] = {};
    double s_exact[kRowsTogether] = {}, d_p_exact[kRowsTogether] = {};
    for (std::int64_t c = 0; c < d_; ++c) {
      const float x = x_[idx(c)], y = y_[idx(c)];
      for (std::int64_t r = 0; r < kRowsTogether; ++r) {
        const float a = a_[idx(c * kRowsTogether + r)], b = b_[idx(c * kRowsTogether + r)];
        s[r] += a * x;
        d_p[r] += b * y;
        s_exact[r] += static_cast<double>(a) * static_cast<double>(x);
        d_p_exact[r] += static_cast<double>(b) * static_cast<double>(y);
      }
    }
    const double scale = problem_.scale();
    const auto scale_float = static_cast<float>(scale);
    const double other_length = length(y_.data(), d_);
    double p_exact[kRowsTogether] = {}, d_s_exact[kRowsTogether] = {};
    double cancelled[kRowsTogether] = {}, truncated[kRowsTogether] = {};
    float p[kRowsTogether] = {}, d_s[kRowsTogether] = {};
    for (std::int64_t r = 0; r < kRowsTogether; ++r) {
      const std::int64_t row = query(r);
      if (row < 0) continue;
      const float lse = inputs_.lse[idx(row)];
      const double score = scale * s_exact[r], of_row = terms_.exact[idx(row)];
      largest_[r] = std::max(largest_[r], std::abs(score));
      p_exact[r] = std::exp(score - static_cast<double>(lse));
      d_s_exact[r] = p_exact[r] * (d_p_exact[r] - of_row);
      p[r] = std::exp(scale_float * s[r] - lse);
      d_s[r] = p[r] * (d_p[r] - terms_.rounded[idx(row)]);
      const double lengths = length_[r] * other_length + terms_.lengths[idx(row)];
      const double step = problem_.dtype == Dtype::f16 ? 0x1p-25 / scale : 0;
      cancelled[r] = std::hypot((0x1p-22 * p_exact[r] + kLeastP) * lengths, step);
      if (problem_.dtype != Dtype::f32)
        truncated[r] = kTruncationLoss * static_cast<double>(d_) * p_exact[r] * d_p_exact[r];
    }
    d_s_.add(d_s_exact, d_s, cancelled, truncated, x_.data());
    if (!with_p) return;
    constexpr double kNothing[kRowsTogether] = {};
    std::fill_n(cancelled, kRowsTogether, 4 * kLeastP);  // the largest of many sums of errors
    p_.add(p_exact, p, cancelled, kNothing, y_.data());
  }

  void store_d_s(std::int64_t r, std::int64_t place, ExpectedRows& to) {
    d_s_.store(r, problem_.scale(), place, to);
    to.largest_score[idx(place)] = largest_[r];
  }
  void store_p(std::int64_t r, std::int64_t place, ExpectedRows& to) {
    p_.store(r, 1, place, to);
    to.largest_score[idx(place)] = largest_[r];
  }

 private:
  void load(const Pair& pair) {
    load_row(*pair.first, pair.row * d_, d_, x_.data());
    load_row(*pair.second, pair.row * d_, d_, y_.data());
  }

  const Problem& problem_;
  const RowTerms& terms_;
  const Inputs& inputs_;
  std::int64_t d_;
  std::vector<float> a_, b_;  // of its own rows, [column][row]
  std::vector<float> x_, y_;  // of the row that goes past
  Sum d_s_, p_;
  double length_[kRowsTogether] = {};  // of b_
  double largest_[kRowsTogether] = {};
};

ExpectedRows empty_gradients(std::size_t rows, std::int64_t columns) {
  ExpectedRows made = empty_rows(rows, columns);
  made.cancelled.resize(made.exact.size());
  return made;
}

}  // namespace

void complete_inputs(const Problem& problem, Inputs& inputs) {
  if (!problem.backward) return;
  const std::int64_t d = problem.head_dim;
  std::vector<RowId> rows;
  for (std::int64_t head = 0; head < problem.batch * problem.heads; ++head)
    for (std::int64_t row = 0; row < problem.queries(head / problem.heads); ++row)
      rows.push_back({head, row});
  const ReferenceRows reference = reference_rows(problem, inputs, rows);
  inputs.o = make_tensor(problem.dtype, q_shape(problem));
  inputs.lse.resize(rows.size());
  parallel_for(std::ssize(rows), 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = q_row(problem, rows[idx(i)].head, rows[idx(i)].row);
      inputs.lse[idx(row)] = static_cast<float>(reference.lse_exact[idx(i)]);
      for (std::int64_t c = 0; c < d; ++c)
        inputs.o.set(row * d + c, static_cast<float>(reference.exact[idx(i * d + c)]));
    }
  });
}

Inputs make_pass_inputs(const Problem& problem, const InputKind& kind, std::uint64_t seed) {
  Inputs inputs = make_inputs(problem, kind, seed);
  complete_inputs(problem, inputs);
  return inputs;
}

ExpectedRows reference_d_q(const Problem& problem, const Inputs& inputs,
                           const std::vector<RowId>& rows) {
  const RowTerms terms = row_terms(problem, inputs);
  ExpectedRows result = empty_gradients(rows.size(), problem.head_dim);
  for_each_group(rows, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t head = rows[idx(first)].head;
    Group group(problem, terms, inputs);
    std::int64_t own[kRowsTogether] = {};
    Problem::Keys seen[kRowsTogether] = {};
    std::int64_t end = 0;
    for (std::int64_t r = 0; r < count; ++r) {
      own[r] = q_row(problem, head, rows[idx(first + r)].row);
      seen[r] = visible_keys(problem, rows[idx(first + r)].row, head);
      end = std::max(end, seen[r].end);
      group.set_row(r, {&inputs.q, &inputs.d_o, own[r]});
    }
    for (std::int64_t key = 0; key < end; ++key) {
      group.add({&inputs.k, &inputs.v, kv_row(problem, inputs, head, key)}, false,
                [&](std::int64_t r) {
                  return r < count && key >= seen[r].begin && key < seen[r].end ? own[r] : -1;
                });
    }
    for (std::int64_t r = 0; r < count; ++r) group.store_d_s(r, first + r, result);
  });
  return result;
}

KeyGradientRows reference_d_kv(const Problem& problem, const Inputs& inputs,
                               const std::vector<RowId>& rows) {
  const RowTerms terms = row_terms(problem, inputs);
  KeyGradientRows result{empty_gradients(rows.size(), problem.head_dim),
                         empty_gradients(rows.size(), problem.head_dim)};
  for_each_group(rows, [&](std::int64_t first, std::int64_t count) {
    Group group(problem, terms, inputs);
    const std::int64_t queries = rows[idx(first)].head * problem.group();  // head of the first
    for (std::int64_t r = 0; r < count; ++r) {
      group.set_row(
          r, {&inputs.k, &inputs.v, kv_row(problem, inputs, queries, rows[idx(first + r)].row)});
    }
    for (std::int64_t head = queries; head < queries + problem.group(); ++head) {
      for (std::int64_t i = 0; i < problem.queries(head / problem.heads); ++i) {
        const Problem::Keys seen = visible_keys(problem, i, head);
        if (rows[idx(first)].row >= seen.end) continue;
        const std::int64_t row = q_row(problem, head, i);
        group.add({&inputs.q, &inputs.d_o, row}, true, [&](std::int64_t r) {
          if (r >= count) return std::int64_t{-1};
          const std::int64_t key = rows[idx(first + r)].row;
          return key >= seen.begin && key < seen.end ? row : -1;
        });
      }
    }
    for (std::int64_t r = 0; r < count; ++r) {
      group.store_d_s(r, first + r, result.d_k);
      group.store_p(r, first + r, result.d_v);
    }
  });
  return result;
}

Problem transposed(const Problem& problem) {
  return {.batch = problem.batch,
          .heads = problem.kv_heads(),
          .seq_q = problem.seq_kv,
          .seq_kv = problem.seq_q * problem.group(),
          .head_dim = problem.head_dim,
          .dtype = problem.dtype,
          .query_lengths = problem.lengths,
          .lengths = problem.query_lengths};
}

}  // namespace fa
