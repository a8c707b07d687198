// SPDX-License-Identifier: MIT
#include "harness/measure/timing/statistics.h"

#include "harness/tests/catch.h"

namespace fa {
namespace {

TEST_CASE("quantiles interpolate between neighbours") {
  const std::vector<double> values{1, 2, 3, 4};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 1) == 4);
  CHECK(quantile(values, 0.5) == Approx(2.5));
  CHECK(quantile(values, 0.1) == Approx(1.3));
  CHECK(quantile({7}, 0.9) == 7);
  CHECK_THROWS_AS(quantile({}, 0.5), std::invalid_argument);
}

TEST_CASE("a summary does not depend on the order of the samples") {
  const Summary summary = summarize({5, 1, 4, 2, 3});
  CHECK(summary.median == 3);
  CHECK(summary.min == 1);
  CHECK(summary.p10 == Approx(1.4));
  CHECK(summary.p90 == Approx(4.6));
  CHECK(summary.n == 5);
}

TEST_CASE("no samples give an empty summary") {
  CHECK(summarize({}).n == 0);
  CHECK(summarize({}).median == 0);
}

}  // namespace
}  // namespace fa
