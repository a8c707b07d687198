// SPDX-License-Identifier: MIT
#include "harness/results/comparison.h"

#include "harness/tests/catch.h"

namespace fa {
namespace {

Row row(const std::string& id, double tflops, double width, Dtype dtype = Dtype::f16) {
  Row row;
  row.key.id = id;
  row.key.variant = "64x64w4";
  row.key.problem.dtype = dtype;
  row.status = Status::ok;
  row.tflops = tflops;
  row.time_ms = RowTimes{
      .median = 2, .p10 = 2 - width, .p90 = 2 + width, .min = 1, .n = 9, .back_to_back = {}};
  return row;
}

TEST_CASE("a spread has one digit, and the value as many places") {
  CHECK(to_string(Spread{1.1873, 0.0123}) == "1.19 +- 0.01");
  CHECK(to_string(Spread{1.1873, 0.0061}) == "1.187 +- 0.006");
  CHECK(to_string(Spread{612.37, 2.9}) == "612 +- 3");
  CHECK(to_string(Spread{612.37, 29}) == "612 +- 29");
  CHECK(to_string(Spread{612.37, 0}) == "612.4");
}

TEST_CASE("a rate is that of launches back to back, else of the median and with a spread") {
  const Spread rate = rate_of(row("06", 100, 0.1)).value();
  CHECK(rate.value == 100);
  CHECK(rate.plus_minus == Approx(5));
  Row launches = row("06", 100, 0.1);
  launches.time_ms->back_to_back = 4;
  CHECK(rate_of(launches)->value == 50);
  CHECK(rate_of(launches)->plus_minus == 0);
  Row untimed = row("06", 100, 0.1);
  untimed.time_ms.reset();
  CHECK_FALSE(rate_of(untimed));
  untimed = row("06", 100, 0.1);
  untimed.tflops.reset();
  CHECK_FALSE(rate_of(untimed));
}

TEST_CASE("few queries against a cache are compared by their bytes") {
  Row cached = row("40", 100, 0.1);
  cached.key.problem.seq_q = 1;
  CHECK_FALSE(rate_of(cached));
  cached.gbs = 3000;
  CHECK(rate_of(cached)->value == 3000);
  CHECK(rate_unit(cached.key.problem) == std::string("GB/s"));
  CHECK(rate_unit(row("06", 100, 0.1).key.problem) == std::string("TFLOPS"));
}

TEST_CASE("relative spreads of a ratio add in squares") {
  const Spread quotient = ratio({100, 3}, {200, 8});
  CHECK(quotient.value == 2);
  CHECK(quotient.plus_minus == Approx(0.1));
}

TEST_CASE("rows pair on one problem, and of one kernel where that is asked for") {
  const Row a = row("05", 100, 0), b = row("06", 150, 0), other = row("06", 9, 0, Dtype::f32);
  Row spread = row("06", 160, 0);
  spread.key.inputs.spread = 8;
  const std::vector<const Row*> first{&a}, second{&b, &other, &spread};
  const std::vector<RatePair> pairs = pair_problems(first, second);
  REQUIRE(pairs.size() == 1);
  CHECK(pairs.front().kernel == "05 64x64w4");
  CHECK(pairs.front().change().value == 1.5);
  CHECK(pair_kernels(first, second).empty());
  CHECK(pair_kernels(second, second).size() == 3);

  Row tile = b;
  tile.key.variant = "128x64w4";
  CHECK(pair_kernels(std::vector<const Row*>{&b}, std::vector<const Row*>{&tile}).empty());
  Row old = b, recent = tile;
  old.key.kind = recent.key.kind = RowKind::peer;
  CHECK(pair_kernels(std::vector<const Row*>{&old}, std::vector<const Row*>{&recent}).size() == 1);
}

TEST_CASE("what changed most comes first, what did not comes last") {
  const auto pair = [](const char* kernel, double second, double spread) {
    return RatePair{.kernel = kernel,
                    .problem = {},
                    .inputs = {},
                    .first = {100, 0},
                    .second = {second, spread}};
  };
  std::vector<RatePair> pairs{pair("same", 100, 0),  pair("little", 103, 0), pair("faster", 110, 1),
                              pair("noise", 102, 3), pair("half", 50, 1),    pair("twice", 190, 1)};
  CHECK(sort_by_change(pairs) == 3);
  std::vector<std::string> order;
  for (const RatePair& each : pairs) order.push_back(each.kernel);
  CHECK(order == std::vector<std::string>{"half", "twice", "faster", "same", "little", "noise"});
}

}  // namespace
}  // namespace fa
