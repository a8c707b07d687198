// SPDX-License-Identifier: MIT
#include "harness/attention/parallel.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

TEST_CASE("a parallel loop visits each index once") {
  for (const std::int64_t count : {0, 1, 7, 64, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
    fa::parallel_for(count, 7, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    for (const auto& n : visits) CHECK(n == 1);
  }
}

TEST_CASE("a parallel loop passes an exception on") {
  const std::string message = fa::message_of<std::runtime_error>([] {
    fa::parallel_for(100, 1, [](std::int64_t begin, std::int64_t) {
      if (begin == 42) throw std::runtime_error("piece 42");
    });
  });
  CHECK(message == "piece 42");
}
