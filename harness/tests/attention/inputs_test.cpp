// SPDX-License-Identifier: MIT
#include "harness/attention/inputs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include "harness/attention/reference.h"
#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

using namespace fa;

namespace {

struct Moments {
  double mean = 0, deviation = 0, least = 0, most = 0;
};

Moments moments(const HostTensor& t) {
  double sum = 0, square = 0;
  Moments m{0, 0, 1e30, -1e30};
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const double x = static_cast<double>(t.at(i));
    sum += x;
    square += x * x;
    m.least = std::min(m.least, x);
    m.most = std::max(m.most, x);
  }
  const auto n = static_cast<double>(t.size());
  m.mean = sum / n;
  m.deviation = std::sqrt(square / n - m.mean * m.mean);
  return m;
}

// Correlation of the first n elements, the second tensor shifted.
double correlation(const HostTensor& a, const HostTensor& b, std::int64_t shift) {
  double ab = 0, aa = 0, bb = 0;
  for (std::int64_t i = 0; i + shift < a.size(); ++i) {
    const double x = static_cast<double>(a.at(i)), y = static_cast<double>(b.at(i + shift));
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / std::sqrt(aa * bb);
}

// Scaled scores of one row with every key.
std::vector<double> scores(const Problem& p, const Inputs& in, std::int64_t head,
                           std::int64_t row) {
  std::vector<double> s;
  for (std::int64_t j = 0; j < p.seq_kv; ++j) {
    double dot = 0;
    for (std::int64_t c = 0; c < p.head_dim; ++c) {
      dot += static_cast<double>(in.q.at((head * p.seq_q + row) * p.head_dim + c)) *
             static_cast<double>(in.k.at((head * p.seq_kv + j) * p.head_dim + c));
    }
    s.push_back(dot * p.scale());
  }
  return s;
}

const Problem kProblem{.batch = 2, .heads = 4, .seq_q = 512, .seq_kv = 512, .head_dim = 128};

}  // namespace

TEST_CASE("distribution names") {
  for (const Distribution d : all_distributions()) CHECK(parse_distribution(to_string(d)) == d);
  CHECK(!parse_distribution("Normal"));
  CHECK(!parse_distribution(""));
}

TEST_CASE("inputs have the moments of their distribution") {
  const Inputs normal = make_inputs(kProblem, Distribution::normal, 1);
  for (const HostTensor* t : {&normal.q, &normal.k, &normal.v}) {
    const Moments m = moments(*t);
    CHECK(std::abs(m.mean) < 0.006);
    CHECK(std::abs(m.deviation - 1) < 0.004);
    CHECK(m.most > 4);
    CHECK(m.most < 4.5);
    CHECK(m.least < -4);
  }
  const Moments large = moments(make_inputs(kProblem, Distribution::large, 1).q);
  CHECK(std::abs(large.deviation - 10) < 0.04);
  const Moments uniform = moments(make_inputs(kProblem, Distribution::uniform, 1).q);
  CHECK(uniform.least == 0);
  CHECK(uniform.most == 2047.0 / 2048);
  CHECK(std::abs(uniform.mean - 0.5) < 0.002);
  CHECK(std::abs(uniform.deviation - std::sqrt(1.0 / 12)) < 0.001);
}

TEST_CASE("normal inputs are the quantiles of the normal distribution") {
  const Inputs inputs = make_inputs(kProblem, Distribution::normal, 3);
  std::vector<double> sorted;
  for (std::int64_t i = 0; i < inputs.q.size(); ++i) {
    sorted.push_back(static_cast<double>(inputs.q.at(i)));
  }
  std::sort(sorted.begin(), sorted.end());
  double distance = 0;  // Kolmogorov-Smirnov
  for (std::size_t i = 0; i < sorted.size(); i += 101) {
    const double expected = 0.5 * std::erfc(-sorted[i] * std::sqrt(0.5));
    distance = std::max(
        distance, std::abs(expected - static_cast<double>(i) / static_cast<double>(sorted.size())));
  }
  CHECK(distance < 2 / std::sqrt(static_cast<double>(sorted.size())));
}

TEST_CASE("a spread multiplies Q and nothing else") {
  for (const Distribution d : all_distributions()) {
    const Inputs narrow = make_inputs(kProblem, d, 1);
    const Inputs wide = make_inputs(kProblem, {d, 8}, 1);
    CAPTURE(to_string(d));
    CHECK(bitwise_equal(narrow.k, wide.k));
    CHECK(bitwise_equal(narrow.v, wide.v));
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < narrow.q.size(); ++i) {
      const std::int64_t row = i / kProblem.head_dim;
      const bool spike = d == Distribution::spike &&
                         spike_key(kProblem, 1, row / kProblem.seq_q, row % kProblem.seq_q) >= 0;
      // Subnormal values gain digits when they are multiplied.
      const float expected = (spike ? 1.0f : 8.0f) * narrow.q.at(i), got = wide.q.at(i);
      different += std::abs(got - expected) > 0x1p-10f * std::abs(expected) + 0x1p-20f;
    }
    CHECK(different == 0);
  }
  CHECK(std::abs(moments(make_inputs(kProblem, {Distribution::normal, 3}, 1).q).deviation - 3) <
        0.012);
  CHECK(to_string(InputKind()) == "normal");
  CHECK(to_string(InputKind(Distribution::rising, 0.5)) == "rising, spread 0.5");
  for (const double spread : {0.0, -1.0, 129.0, 0.01, std::nan("")}) {
    CHECK(contains(message_of<std::invalid_argument>([&] {
                     make_inputs(kProblem, {Distribution::normal, spread}, 1);
                   }),
                   "from 1/16 to 128"));
  }
}

TEST_CASE("the widest inputs are finite") {
  for (const Distribution d : all_distributions()) {
    const Inputs inputs =
        make_inputs({.batch = 1, .heads = 2, .head_dim = 256}, {d, InputKind::kGreatestSpread}, 1);
    CAPTURE(to_string(d));
    CHECK(find_non_finite(inputs.q) == -1);
  }
}

TEST_CASE("tensors, neighbours and seeds are independent") {
  const Inputs a = make_inputs(kProblem, Distribution::normal, 1);
  const Inputs b = make_inputs(kProblem, Distribution::normal, 2);
  CHECK(std::abs(correlation(a.q, a.k, 0)) < 0.006);
  CHECK(std::abs(correlation(a.k, a.v, 0)) < 0.006);
  CHECK(std::abs(correlation(a.q, b.q, 0)) < 0.006);
  for (const std::int64_t shift : {1, 2, 3, 4, 8, 64, 128, 65536}) {
    CHECK(std::abs(correlation(a.q, a.q, shift)) < 0.006);
  }
}

TEST_CASE("inputs are reproducible, and equal in FP32") {
  for (const Distribution d : all_distributions()) {
    const Inputs a = make_inputs(kProblem, d, 5), again = make_inputs(kProblem, d, 5);
    CHECK(bitwise_equal(a.q, again.q));
    CHECK(bitwise_equal(a.k, again.k));
    CHECK(bitwise_equal(a.v, again.v));
    Problem wide = kProblem;
    wide.dtype = Dtype::f32;
    const Inputs f32 = make_inputs(wide, d, 5);
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < a.q.size(); ++i) {
      different += a.q.at(i) != f32.q.at(i);
      different += a.k.at(i) != f32.k.at(i);
      different += a.v.at(i) != f32.v.at(i);
    }
    CHECK(different == 0);
  }
  // Recorded once: a change of the generator would silently change every committed measurement.
  const Inputs fixed = make_inputs({.batch = 1, .heads = 1, .seq_q = 1, .seq_kv = 1, .head_dim = 4},
                                   Distribution::normal, 1);
  CHECK(fixed.q.halfs()[0] == 0x3db2);
  CHECK(fixed.k.halfs()[1] == 0x31f8);
  CHECK(fixed.v.halfs()[3] == 0x34c1);
}

TEST_CASE("a needle dominates its row, and needles reach every tile") {
  for (const bool causal : {false, true}) {
    for (const int d : {32, 64, 128}) {
      const Problem p{
          .batch = 1, .heads = 2, .seq_q = 600, .seq_kv = 800, .head_dim = d, .causal = causal};
      const Inputs in = make_inputs(p, Distribution::needle, 9);
      double least = 1, sum = 0;
      std::set<std::int64_t> tiles;
      for (std::int64_t i = 0; i < p.seq_q; ++i) {
        std::vector<double> s = scores(p, in, 1, i);
        s.resize(static_cast<std::size_t>(visible_keys(p, i).end));
        const std::int64_t key = needle_key(p, 9, 1, i);
        REQUIRE(key >= 0);
        REQUIRE(key < visible_keys(p, i).end);
        tiles.insert(key / 16);
        double total = 0;
        for (const double x : s) total += std::exp(x - s[static_cast<std::size_t>(key)]);
        least = std::min(least, 1 / total);
        sum += 1 / total;
      }
      CHECK(sum / 600 > 0.8);
      CHECK(sum / 600 < 0.99);
      CHECK(least > 0.3);
      // Under the mask few rows see the last keys.
      CHECK(tiles.size() >= (causal ? 45 : 50));
    }
  }
}

TEST_CASE("rising scores grow by the same amount in every block of keys") {
  for (const int d : {32, 64, 128}) {
    const Problem p{.batch = 1, .heads = 2, .seq_q = 16, .seq_kv = 1000, .head_dim = d};
    const Inputs in = make_inputs(p, Distribution::rising, 3);
    std::vector<double> maxima(8, -1e9);
    std::vector<double> means(8, 0.0);
    for (std::int64_t i = 0; i < p.seq_q; ++i) {
      const std::vector<double> s = scores(p, in, 1, i);
      for (std::size_t j = 0; j < s.size(); ++j) {
        maxima[j / 128] = std::max(maxima[j / 128], s[j]);
        means[j / 128] += s[j] / static_cast<double>(j / 128 == 7 ? 16 * 104 : 16 * 128);
      }
    }
    for (std::size_t b = 1; b < means.size(); ++b) {
      CAPTURE(d, b, maxima[b], maxima[b - 1]);
      CHECK(std::abs(means[b] - means[b - 1] - kRise) < 0.5);
      CHECK(maxima[b] > maxima[b - 1] + 4);
    }
    CHECK(std::abs(means.front() + means.back()) < 1);
  }
}

TEST_CASE("a spike exceeds all other visible keys, and only its rows differ from normal") {
  for (const bool causal : {false, true}) {
    for (const int d : {64, 128}) {
      const Problem p{
          .batch = 1, .heads = 2, .seq_q = 600, .seq_kv = 801, .head_dim = d, .causal = causal};
      const Inputs in = make_inputs(p, Distribution::spike, 9);
      const Inputs normal = make_inputs(p, Distribution::normal, 9);
      CHECK(bitwise_equal(in.k, normal.k));
      CHECK(bitwise_equal(in.v, normal.v));
      int spikes = 0, finite = 0, hidden = 0, last = 0, ragged = 0;
      for (std::int64_t i = 0; i < p.seq_q; ++i) {
        std::int64_t different = 0;
        for (std::int64_t c = 0; c < d; ++c) {
          const std::int64_t at = (p.seq_q + i) * d + c;
          different += in.q.at(at) != normal.q.at(at);
        }
        const std::int64_t key = spike_key(p, 9, 1, i), visible = visible_keys(p, i).end;
        CAPTURE(causal, d, i, key, visible);
        CHECK((different > 0) == (key >= 0));
        if (key < 0) continue;
        REQUIRE(key < p.seq_kv);
        ++spikes;
        hidden += key >= visible;
        last += key == visible - 1;
        ragged += key == p.seq_kv - 1;
        std::vector<double> s = scores(p, in, 1, i);
        const double top = s[static_cast<std::size_t>(key)];
        s[static_cast<std::size_t>(key)] = -1e9;
        const double others = *std::max_element(s.begin(), s.end());
        CHECK(top > others + 50);
        CHECK(top < others + 400);
        finite += top < others + 88;
        if (key < visible) CHECK(key >= visible / 2);
      }
      CHECK(spikes > 50);
      CHECK(spikes < 110);
      CHECK(finite > 0);  // exp() of what it exceeds is still a number in FP32
      CHECK(finite < spikes / 4);
      CHECK((hidden > 8) == causal);
      CHECK(last > 10);
      if (!causal) CHECK(ragged > 10);
    }
  }
}

TEST_CASE("needle rows without a key are drawn too") {
  const Problem p{.batch = 1, .heads = 1, .seq_q = 8, .seq_kv = 3, .head_dim = 32, .causal = true};
  CHECK(needle_key(p, 1, 0, 4) == -1);
  CHECK(needle_key(p, 1, 0, 5) == 0);
  CHECK(find_non_finite(make_inputs(p, Distribution::needle, 1).q) == -1);
}

TEST_CASE("extents must be positive") {
  const std::string message =
      message_of<std::invalid_argument>([] { make_inputs({.batch = 0}, Distribution::normal, 1); });
  CHECK(contains(message, "B=0"));
}
