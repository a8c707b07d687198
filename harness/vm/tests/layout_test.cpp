// SPDX-License-Identifier: MIT
// Order of blocks: topological, loops contiguous, exits behind.
#include <algorithm>

#include "catch.h"
#include "lower/cfg.h"

using namespace ptxvm;

namespace {

using Order = std::vector<uint32_t>;

}  // namespace

TEST_CASE("straight line and diamond keep the order of the text") {
  CHECK(order_blocks({{1}, {2}, {}}) == Order{0, 1, 2});
  CHECK(order_blocks({{2, 1}, {3}, {3}, {}}) == Order{0, 1, 2, 3});
}

TEST_CASE("a block that the text puts first but paths reach last goes last") {
  // 0 -> 2 or 3; 1 joins them although it is written before them.
  CHECK(order_blocks({{2, 3}, {}, {1}, {1}}) == Order{0, 2, 3, 1});
}

TEST_CASE("a loop is contiguous and its exit stands behind it") {
  // 0 -> 1 (header) -> 3 (body) -> 1; 1 -> 2 (exit), written before the body.
  CHECK(order_blocks({{1}, {2, 3}, {}, {1}}) == Order{0, 1, 3, 2});
}

TEST_CASE("nested loops nest") {
  // 1: outer header, 2: inner header, 3: inner body, 4: outer latch, 5: exit
  CHECK(order_blocks({{1}, {5, 2}, {4, 3}, {2}, {1}, {}}) == Order{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a break out of two loops goes behind both") {
  // 3 leaves to 4, which is written inside.
  const Order order = order_blocks({{1}, {2, 6}, {3, 5}, {4, 2}, {}, {1}, {}});
  auto at = [&](uint32_t b) { return std::find(order.begin(), order.end(), b) - order.begin(); };
  CHECK(at(4) > at(5));
  CHECK(at(3) == at(2) + 1);
}

TEST_CASE("unreachable blocks are left out, irreducible loops are not lost") {
  CHECK(order_blocks({{2}, {2}, {}}) == Order{0, 2});
  const Order order = order_blocks({{1, 2}, {2, 3}, {1, 3}, {}});
  CHECK(order.size() == 4);
  CHECK(order.front() == 0);
  CHECK(order.back() == 3);
}
