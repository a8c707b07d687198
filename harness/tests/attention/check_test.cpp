// SPDX-License-Identifier: MIT
#include "harness/attention/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "harness/attention/mutants.h"
#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

using namespace fa;

namespace {

const Problem kProblem{.batch = 2, .heads = 3, .seq_q = 70, .seq_kv = 90, .head_dim = 64};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The log-sum-exp of every row by its definition, with scores of this scale.
HostTensor lse_of(const Problem& p, const Inputs& inputs, double scale) {
  HostTensor lse = make_tensor(Dtype::f32, lse_shape(p), 0.0f);
  for (std::int64_t i = 0; i < lse.size(); ++i) {
    const std::int64_t head = i / p.seq_q;
    double sum = 0;
    for (std::int64_t j = 0; j < visible_keys(p, i % p.seq_q).end; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < p.head_dim; ++c) {
        score += static_cast<double>(inputs.q.at(i * p.head_dim + c)) *
                 static_cast<double>(inputs.k.at((head * p.seq_kv + j) * p.head_dim + c));
      }
      sum += std::exp(score * scale);
    }
    lse.set(i, static_cast<float>(std::log(sum)));
  }
  return lse;
}

HostTensor lse_of(const Problem& p, const Inputs& inputs) {
  return lse_of(p, inputs, p.scale());
}

}  // namespace

TEST_CASE("a report says what was compared") {
  const Inputs inputs = make_inputs(kProblem, Distribution::normal, 1);
  const Verifier verifier(kProblem, inputs);
  HostTensor output = honest_output(kProblem, inputs);
  const CheckReport good = verifier.check(output);
  CHECK(good.ok);
  CHECK(good.finite);
  CHECK(good.reason.empty());
  CHECK(good.rows_checked == 420);
  CHECK(good.rows_total == 420);
  CHECK(good.ratio > 0);
  CHECK(good.ratio < 1);
  CHECK(good.tolerance == 2 * good.reference_error + good.floor);
  CHECK(good.tolerance < 1e-3);

  SECTION("one wrong element is named") {
    const std::int64_t index = ((1 * 3 + 2) * 70 + 69) * 64 + 63;
    output.set(index, output.at(index) + 0.01f);
    const CheckReport bad = verifier.check(output);
    CHECK(!bad.ok);
    CHECK(bad.finite);
    CHECK(contains(bad.reason, "batch 1, head 2, row 69, column 63: got "));
    CHECK(contains(bad.reason, "1 elements wrong, in 1 of 420 checked rows"));
    CHECK(std::abs(bad.max_error - 0.01) < 1e-3);
  }
  SECTION("NaN and infinity are found and counted") {
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      output.set(70 * 64 + 5, value);
      output.set(80 * 64 + 6, -value);
      const CheckReport bad = verifier.check(output);
      CHECK(!bad.ok);
      CHECK(!bad.finite);
      CHECK(bad.non_finite == 2);
      CHECK(contains(bad.reason, "batch 0, head 1, row 0, column 5: got "));
      CHECK(contains(bad.reason, ", expected "));
      CHECK(contains(bad.reason, " (2 of 26880 elements are not finite)"));
    }
  }
  SECTION("another shape or dtype is a mistake of the caller") {
    const HostTensor other = make_tensor(Dtype::f16, {2, 3, 90, 64}, 0.0f);
    CHECK(contains(message_of<std::invalid_argument>([&] { verifier.check(other); }),
                   "expected float16 [2, 3, 70, 64]"));
    const HostTensor wide = make_tensor(Dtype::f32, {2, 3, 70, 64}, 0.0f);
    CHECK(contains(message_of<std::invalid_argument>([&] { verifier.check(wide); }), "float32"));
    Problem longer = kProblem;
    longer.seq_kv = 91;
    CHECK(contains(message_of<std::invalid_argument>([&] { Verifier(longer, inputs); }), "K is"));
  }
}

TEST_CASE("a NaN outside the checked rows is found") {
  const Problem p{.batch = 4, .heads = 8, .seq_q = 2048, .seq_kv = 64, .head_dim = 64};
  const Inputs inputs = make_inputs(p, Distribution::normal, 1);
  const Verifier verifier(p, inputs, {.budget = 1 << 20});
  HostTensor output = honest_output(p, inputs, 64, false, &verifier.rows());
  REQUIRE(verifier.check(output).ok);
  for (std::int64_t row = 0; row < 2048; ++row) {
    if (std::binary_search(verifier.rows().begin(), verifier.rows().end(), RowId{5, row})) continue;
    output.set((5 * 2048 + row) * 64, std::numeric_limits<float>::quiet_NaN());
    break;
  }
  const std::string reason = verifier.check(output).reason;
  CHECK(contains(reason, "batch 0, head 5, "));
  CHECK(contains(reason, "column 0: got nan (1 of 4194304 elements are not finite)"));
  // One whose value is known is rather named.
  output.set((verifier.rows().back().head * 2048 + verifier.rows().back().row) * 64 + 7,
             std::numeric_limits<float>::quiet_NaN());
  CHECK(contains(verifier.check(output).reason, "column 7: got nan, expected "));
}

// Different tilings, roundings and accumulators are all correct, and must stay so with a margin.
TEST_CASE("honest computations pass") {
  const Problem shapes[] = {
      {.batch = 1, .heads = 1, .seq_q = 1, .seq_kv = 1, .head_dim = 64},
      {.batch = 1, .heads = 2, .seq_q = 2, .seq_kv = 2, .head_dim = 64},
      {.batch = 1, .heads = 1, .seq_q = 1, .seq_kv = 17, .head_dim = 32},
      {.batch = 2, .heads = 3, .seq_q = 65, .seq_kv = 129, .head_dim = 128, .causal = true},
      {.batch = 1, .heads = 2, .seq_q = 129, .seq_kv = 65, .head_dim = 64, .causal = true},
      {.batch = 1, .heads = 2, .seq_q = 256, .seq_kv = 1024, .head_dim = 64},
      {.batch = 1, .heads = 1, .seq_q = 64, .seq_kv = 16384, .head_dim = 64},
  };
  for (Problem p : shapes) {
    for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
      p.dtype = dtype;
      for (const Distribution distribution : all_distributions()) {
        for (const std::uint64_t seed : {1u, 2u}) {
          const Inputs inputs = make_inputs(p, distribution, seed);
          const Verifier verifier(p, inputs);
          for (const int tile : {32, 128}) {
            for (const bool truncate : {false, true}) {
              if (truncate && dtype == Dtype::f32) continue;  // no tensor cores there
              const CheckReport report =
                  verifier.check(honest_output(p, inputs, tile, truncate, &verifier.rows()));
              CAPTURE(to_string(p), to_string(distribution), seed, tile, truncate, report.reason);
              CHECK(report.ok);
              CHECK(report.ratio < 0.97);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the tolerance follows |O| down the sequence") {
  const Problem p{.batch = 1, .heads = 1, .seq_q = 8192, .seq_kv = 8192, .causal = true};
  const Inputs inputs = make_inputs(p, Distribution::normal, 1);
  const Verifier verifier(p, inputs, {.budget = 1 << 26});
  HostTensor output = honest_output(p, inputs, 64, false, &verifier.rows());
  REQUIRE(verifier.check(output).ok);
  // An error that row 0 allows is rejected in the last row.
  const double first_row = 1e-3;
  const std::int64_t last = (p.seq_q - 1) * p.head_dim;
  output.set(last, output.at(last) + static_cast<float>(first_row));
  const CheckReport report = verifier.check(output);
  CHECK(!report.ok);
  CHECK(report.tolerance < first_row / 5);
}

TEST_CASE("bitwise comparison names the first difference") {
  HostTensor a = make_tensor(Dtype::f16, {1, 2, 3, 4}, 0.0f), b = a;
  std::string difference;
  CHECK(bitwise_equal(a, b, &difference));
  b.set(23, -0.0f);
  CHECK(!bitwise_equal(a, b, &difference));
  CHECK(difference == "first difference at batch 0, head 1, row 2, column 3: 0 and -0");
  CHECK(!bitwise_equal(a, make_tensor(Dtype::f32, {1, 2, 3, 4}, 0.0f), &difference));
  CHECK(contains(difference, "dtypes differ"));
  CHECK(!bitwise_equal(a, make_tensor(Dtype::f16, {1, 2, 4, 3}, 0.0f), &difference));
  CHECK(contains(difference, "[1, 2, 4, 3]"));
}

TEST_CASE("the right log-sum-exp passes") {
  for (const auto& [seq_q, seq_kv] : {std::pair{70, 90}, {90, 70}, {1, 1}, {1, 130}}) {
    for (const bool causal : {false, true}) {
      for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
        for (const Distribution distribution : {Distribution::normal, Distribution::uniform}) {
          const Problem p{.batch = 2,
                          .heads = 2,
                          .seq_q = seq_q,
                          .seq_kv = seq_kv,
                          .head_dim = 64,
                          .causal = causal,
                          .dtype = dtype,
                          .lse = true};
          const Inputs inputs = make_inputs(p, distribution, 1);
          const LseReport report = Verifier(p, inputs).check_lse(lse_of(p, inputs));
          CAPTURE(to_string(p), to_string(distribution), report.reason);
          CHECK(report.ok);
          CHECK(report.reason.empty());
          CHECK(report.ratio <= 0.5);
        }
      }
    }
  }
}

TEST_CASE("a log-sum-exp far from 0 may have the roundings of a kernel that works in base 2") {
  const Problem p{.heads = 4, .seq_q = 8, .seq_kv = 200, .head_dim = 64, .lse = true};
  const Inputs inputs = make_inputs(p, {Distribution::low, 40}, 1);
  const float factor = static_cast<float>(p.scale()) * 1.44269504f;
  HostTensor lse = make_tensor(Dtype::f32, lse_shape(p), 0.0f), coarse = lse;
  for (std::int64_t i = 0; i < lse.size(); ++i) {
    float top = -kInfinity, sum = 0;
    std::vector<float> scores;
    for (std::int64_t j = 0; j < p.seq_kv; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < p.head_dim; ++c) {
        score += static_cast<double>(inputs.q.at(i * p.head_dim + c)) *
                 static_cast<double>(inputs.k.at((i / p.seq_q * p.seq_kv + j) * p.head_dim + c));
      }
      scores.push_back(static_cast<float>(score));
      top = std::max(top, scores.back());
    }
    const float max = top * factor;
    for (const float score : scores) sum += std::exp2(std::fmaf(score, factor, -max));
    lse.set(i, (max + std::log2(sum)) * 0.693147181f);
    // With a scale of the cache, that is with one more factor, and with log2(e) rounded down.
    for (int u = 0; u < 2; ++u) lse.set(i, std::nextafter(lse.at(i), kInfinity));
    coarse.set(i, lse.at(i) * (1 + 0x1p-19f));
  }
  const Verifier verifier(p, inputs);
  const LseReport right = verifier.check_lse(lse);
  CAPTURE(right.reason, lse.at(0));
  CHECK(right.ok);
  CHECK(lse.at(0) < -1000);
  CHECK(!verifier.check_lse(coarse).ok);
}

TEST_CASE("a wrong log-sum-exp is rejected and named") {
  for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
    // The first 20 rows of each head see no key.
    const Problem p{.batch = 2,
                    .heads = 3,
                    .seq_q = 90,
                    .seq_kv = 70,
                    .head_dim = 64,
                    .causal = true,
                    .dtype = dtype,
                    .lse = true};
    const Inputs inputs = make_inputs(p, Distribution::normal, 2);
    const Verifier verifier(p, inputs);
    const HostTensor right = lse_of(p, inputs);
    REQUIRE(verifier.check_lse(right).ok);
    HostTensor wrong = right;
    const auto rejected = [&](const char* what, const std::string& part) {
      const LseReport report = verifier.check_lse(wrong);
      CAPTURE(what, to_string(p), report.reason);
      CHECK(!report.ok);
      CHECK(contains(report.reason, part));
    };
    for (std::int64_t i = 0; i < wrong.size(); ++i) wrong.set(i, right.at(i) / std::log(2.0f));
    rejected("in units of log 2", "checked rows are wrong");
    wrong = lse_of(p, inputs, 1.0);
    rejected("scores without the scale", "checked rows are wrong");
    for (std::int64_t i = 0; i < wrong.size(); ++i)
      wrong.set(i, right.at(std::max(i, std::int64_t{1}) - 1));
    rejected("off by one row", "checked rows are wrong");

    // The last row of the last head, then a row without a key.
    for (const float value : {right.at(right.size() - 1) + 0.01f, kInfinity, -kInfinity,
                              std::numeric_limits<float>::quiet_NaN()}) {
      wrong = right;
      wrong.set(wrong.size() - 1, value);
      rejected("one row", "LSE at batch 1, head 2, row 89, column 0: got ");
      rejected("one row", "(1 of 540 checked rows are wrong)");
    }
    for (const float value : {0.0f, -1e30f, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      wrong = right;
      wrong.set(90 + 19, value);
      rejected("no -infinity", "LSE at batch 0, head 1, row 19, column 0: got ");
      rejected("no -infinity", "expected -inf");
    }
  }
}

TEST_CASE("a NaN in the log-sum-exp is found outside the checked rows") {
  const Problem p{.batch = 4, .heads = 8, .seq_q = 2048, .seq_kv = 64, .head_dim = 64, .lse = true};
  const Inputs inputs = make_inputs(p, Distribution::normal, 1);
  const Verifier verifier(p, inputs, {.budget = 1 << 20});
  HostTensor lse = make_tensor(Dtype::f32, lse_shape(p), 0.0f);
  const HostTensor right = lse_of(p, inputs);
  for (const RowId& row : verifier.rows()) {
    const std::int64_t index = row.head * p.seq_q + row.row;
    lse.set(index, right.at(index));
  }
  REQUIRE(verifier.check_lse(lse).ok);
  for (std::int64_t row = 0; row < p.seq_q; ++row) {
    if (std::binary_search(verifier.rows().begin(), verifier.rows().end(), RowId{5, row})) continue;
    lse.set(5 * p.seq_q + row, std::numeric_limits<float>::quiet_NaN());
    break;
  }
  const LseReport report = verifier.check_lse(lse);
  CHECK(!report.ok);
  CHECK(contains(report.reason, "is not a number"));
}

TEST_CASE("a log-sum-exp of another shape or dtype is a mistake of the caller") {
  const Verifier verifier(kProblem, make_inputs(kProblem, Distribution::normal, 1));
  for (const HostTensor& other : {make_tensor(Dtype::f32, {2, 3, 90, 1}, 0.0f),
                                  make_tensor(Dtype::f16, {2, 3, 70, 1}, 0.0f)}) {
    CHECK(contains(message_of<std::invalid_argument>([&] { verifier.check_lse(other); }),
                   "expected float32 [2, 3, 70, 1]"));
  }
}
