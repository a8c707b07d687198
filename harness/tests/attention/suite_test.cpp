// SPDX-License-Identifier: MIT
#include "harness/attention/suite.h"

#include <algorithm>
#include <set>

#include "harness/tests/catch.h"

using namespace fa;

namespace {

const RungConstraints kTiled{.head_dims = {{64, 128, 64}, {128, 64, 128}}};
const RungConstraints kRagged{.head_dims = {{128, 1, 1}},
                              .capabilities = Capabilities::causal | Capabilities::ragged};

template <class Test>
bool any(const std::vector<Case>& cases, const Test& test) {
  return std::any_of(cases.begin(), cases.end(), test);
}

}  // namespace

TEST_CASE("a suite holds only what the rung takes, once, growing") {
  for (const Suite suite : {Suite::quick, Suite::full}) {
    const std::vector<Case> cases = suite_cases(suite, kTiled);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Problem& p = cases[i].problem;
      const auto& dim = kTiled.head_dims[p.head_dim == 64 ? 0 : 1];
      CHECK(p.head_dim == dim.head_dim);
      CHECK(p.seq_q % dim.multiple_q == 0);
      CHECK(p.seq_kv % dim.multiple_kv == 0);
      CHECK(!p.causal);
      if (i > 0) CHECK(cases[i - 1].problem.flops() <= p.flops());
      CHECK(std::count(cases.begin(), cases.end(), cases[i]) == 1);
    }
    CHECK(cases.size() < (suite == Suite::quick ? 60u : 160u));
  }
}

TEST_CASE("quick suites stay small") {
  for (const RungConstraints& rung : {kTiled, kRagged}) {
    for (const Case& c : suite_cases(Suite::quick, rung)) {
      CHECK(c.problem.seq_q <= 1536);
      CHECK(c.problem.seq_kv <= 1152);
      CHECK(c.problem.batch * c.problem.heads <= 6);
    }
  }
}

TEST_CASE("both suites shift all scores of a row, and give few SMs several tiles each") {
  RungConstraints cache = kRagged;
  cache.few_queries = 1;
  cache.capabilities = cache.capabilities | Capabilities::grouped | Capabilities::lengths;
  for (const Suite suite : {Suite::quick, Suite::full}) {
    for (const RungConstraints& rung : {kRagged, cache}) {
      const std::vector<Case> cases = suite_cases(suite, rung);
      for (const Distribution shifted : {Distribution::low, Distribution::high}) {
        for (const double spread : {1.0, 40.0}) {
          CHECK(any(cases, [&](const Case& c) { return c.inputs == InputKind(shifted, spread); }));
        }
      }
      CHECK(any(cases, [](const Case& c) { return c.sms == 1; }));
      CHECK(any(cases, [](const Case& c) { return c.sms > 1 && c.problem.seq_kv > 512; }));
    }
    for (const bool equal : {false, true}) {
      for (const bool few_sms : {false, true}) {
        CHECK(any(suite_cases(suite, cache), [&](const Case& c) {
          return c.problem.batch > 32 && c.problem.lengths.empty() == equal &&
                 (c.sms > 0) == few_sms;
        }));
      }
    }
    CHECK(any(suite_cases(suite, cache), [](const Case& c) {
      return c.sms > 0 && c.problem.kv_heads() > 8 && c.problem.seq_kv > 1024;
    }));
  }
}

TEST_CASE("both suites let the maximum grow late in the row") {
  RungConstraints rung = kRagged;
  rung.head_dims = {{64, 1, 1}, {128, 1, 1}};
  const std::vector<InputKind> growing{{Distribution::normal, 4},
                                       {Distribution::normal, 16},
                                       Distribution::rising,
                                       Distribution::spike};
  for (const Suite suite : {Suite::quick, Suite::full}) {
    const std::vector<Case> cases = suite_cases(suite, rung);
    for (const InputKind& kind : growing) {
      CAPTURE(to_string(suite), to_string(kind));
      for (const int d : {64, 128}) {
        for (const bool causal : {false, true}) {
          CHECK(any(cases, [&](const Case& c) {
            return c.inputs == kind && c.problem.head_dim == d && c.problem.causal == causal &&
                   c.problem.seq_kv >= 512 && c.problem.heads > 1;
          }));
        }
      }
    }
    // A spike in the last key block, which is not a whole one.
    CHECK(any(cases, [](const Case& c) {
      return c.inputs == InputKind(Distribution::spike) && c.problem.seq_kv % 16 != 0 &&
             c.problem.seq_kv > 256;
    }));
  }
}

TEST_CASE("full suites cover batches, heads, ragged lengths and long sequences") {
  for (const int d : {64, 128}) {
    const std::vector<Case> cases = suite_cases(Suite::full, kTiled);
    for (const auto& [batch, heads] : {std::pair{1, 1}, std::pair{2, 3}, std::pair{4, 16}}) {
      CHECK(any(cases, [&, b = batch, h = heads](const Case& c) {
        return c.problem.batch == b && c.problem.heads == h && c.problem.head_dim == d;
      }));
    }
    for (const InputKind& kind : suite_inputs()) {
      CHECK(any(cases, [&](const Case& c) {
        return c.inputs == kind && c.problem.seq_q == 8192 && c.problem.head_dim == d;
      }));
    }
    CHECK(any(cases, [&](const Case& c) {
      const auto& dim = kTiled.head_dims[d == 64 ? 0 : 1];
      return c.problem.seq_q == dim.multiple_q && c.problem.seq_kv == dim.multiple_kv;
    }));
    CHECK(any(cases, [](const Case& c) { return c.problem.seq_q > c.problem.seq_kv; }));
    CHECK(any(cases, [](const Case& c) { return c.problem.seq_q < c.problem.seq_kv; }));
  }
}

TEST_CASE("full suites of ragged rungs take every length") {
  const std::vector<Case> cases = suite_cases(Suite::full, kRagged);
  for (const bool causal : {false, true}) {
    for (const std::int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 1000, 8191}) {
      CHECK(any(cases, [&](const Case& c) {
        return c.problem.causal == causal && c.problem.seq_q == n && c.problem.seq_kv == n;
      }));
    }
    CHECK(any(cases, [&](const Case& c) {
      return c.problem.causal == causal && c.problem.seq_q > c.problem.seq_kv;
    }));
    CHECK(any(cases, [&](const Case& c) {
      return c.problem.causal == causal && c.problem.seq_q < c.problem.seq_kv;
    }));
  }
}

TEST_CASE("every case has the rung's type") {
  RungConstraints rung = kRagged;
  rung.dtype = Dtype::f32;
  for (const Case& c : suite_cases(Suite::full, rung)) CHECK(c.problem.dtype == Dtype::f32);
}

TEST_CASE("causal suites put the diagonal on both sides of the corner") {
  RungConstraints rung = kTiled;
  rung.capabilities = rung.capabilities | Capabilities::causal;
  for (const Suite suite : {Suite::quick, Suite::full}) {
    const std::vector<Case> cases = suite_cases(suite, rung);
    for (const int d : {64, 128}) {
      for (const int side : {-1, 0, 1}) {
        CHECK(any(cases, [&](const Case& c) {
          const std::int64_t more = c.problem.seq_q - c.problem.seq_kv;
          return c.problem.causal && c.problem.head_dim == d && (more > 0) - (more < 0) == side;
        }));
      }
    }
  }
}

TEST_CASE("every case of a rung that writes the log-sum-exp asks for it, and no other") {
  for (const bool lse : {false, true}) {
    RungConstraints rung = kRagged;
    if (lse) rung.capabilities = rung.capabilities | Capabilities::lse;
    for (const Case& c : suite_cases(Suite::full, rung)) CHECK(c.problem.lse == lse);
  }
}
