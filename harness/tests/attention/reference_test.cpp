// SPDX-License-Identifier: MIT
#include "harness/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "harness/tests/catch.h"

using namespace fa;

namespace {

std::vector<RowId> all_rows(const Problem& p) {
  return choose_rows(p, 1LL << 40, 1);
}

// The textbook formula in long double, one element at a time.
long double textbook(const Problem& p, const Inputs& in, RowId id, std::int64_t column) {
  const std::int64_t d = p.head_dim;
  long double sum = 0, weighted = 0, top = -1e300L;
  std::vector<long double> s;
  const std::int64_t place = id.row + p.seq_kv - p.seq_q;
  std::vector<std::int64_t> seen;
  for (std::int64_t j = 0; j < p.seq_kv; ++j) {
    if (p.causal && j > place) break;
    if (p.window_left >= 0 && j < place - p.window_left) continue;
    if (p.window_right >= 0 && j > place + p.window_right) continue;
    seen.push_back(j);
    long double dot = 0;
    for (std::int64_t c = 0; c < d; ++c) {
      dot += static_cast<long double>(in.q.at((id.head * p.seq_q + id.row) * d + c)) *
             static_cast<long double>(in.k.at((id.head * p.seq_kv + j) * d + c));
    }
    s.push_back(dot / std::sqrt(static_cast<long double>(d)));
    top = std::max(top, s.back());
  }
  for (std::size_t j = 0; j < s.size(); ++j) {
    const long double weight = std::exp(s[j] - top);
    sum += weight;
    weighted +=
        weight * static_cast<long double>(in.v.at((id.head * p.seq_kv + seen[j]) * d + column));
  }
  if (p.sinks) {
    const auto head = static_cast<std::size_t>(id.head % p.heads);
    sum += std::exp(static_cast<long double>(in.sinks[head]) - top);
  }
  return s.empty() ? 0 : weighted / sum;
}

}  // namespace

TEST_CASE("the exact rows are the textbook formula") {
  const Problem shapes[] = {
      {.batch = 2, .heads = 3, .seq_q = 21, .seq_kv = 37, .head_dim = 64},
      {.batch = 1, .heads = 2, .seq_q = 20, .seq_kv = 33, .head_dim = 32, .causal = true},
      {.batch = 1, .heads = 2, .seq_q = 40, .seq_kv = 19, .head_dim = 24, .causal = true},
      {.batch = 1, .heads = 1, .seq_q = 3, .seq_kv = 1, .head_dim = 128, .dtype = Dtype::f32},
      {.batch = 1, .heads = 2, .seq_q = 21, .seq_kv = 37, .head_dim = 64, .dtype = Dtype::bf16},
      {.batch = 1,
       .heads = 2,
       .seq_q = 40,
       .seq_kv = 33,
       .head_dim = 32,
       .window_left = 5,
       .window_right = 2},
      {.batch = 2,
       .heads = 2,
       .seq_q = 30,
       .seq_kv = 33,
       .head_dim = 32,
       .causal = true,
       .window_left = 7,
       .sinks = true},
  };
  for (const Problem& p : shapes) {
    for (const Distribution distribution : all_distributions()) {
      const Inputs in = make_inputs(p, distribution, 4);
      const std::vector<RowId> rows = all_rows(p);
      const ReferenceRows reference = reference_rows(p, in, rows);
      REQUIRE(std::ssize(rows) == p.batch * p.heads * p.seq_q);
      double worst = 0, rough = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::int64_t c = 0; c < p.head_dim; c += 5) {
          const auto i = r * static_cast<std::size_t>(p.head_dim) + static_cast<std::size_t>(c);
          const auto expected = static_cast<double>(textbook(p, in, rows[r], c));
          worst = std::max(worst, std::abs(reference.exact[i] - expected));
          const auto got = static_cast<double>(reference.straightforward[i]);
          rough = std::max(rough, std::abs(got - expected));
        }
        if (visible_keys(p, rows[r].row).end == 0) CHECK(reference.spread[r] == 0);
      }
      CHECK(worst < 1e-13);
      CHECK(rough < (p.dtype == Dtype::f32 ? 2e-5 : p.dtype == Dtype::bf16 ? 2e-2 : 2e-3));
    }
  }
}

TEST_CASE("rows that see no key are zero") {
  const Problem p{.batch = 1, .heads = 1, .seq_q = 9, .seq_kv = 4, .head_dim = 16, .causal = true};
  CHECK(visible_keys(p, 4).end == 0);
  CHECK(visible_keys(p, 5).end == 1);
  CHECK(visible_keys(p, 8).end == 4);
  const Inputs inputs = make_inputs(p, Distribution::normal, 1);
  const ReferenceRows reference = reference_rows(p, inputs, all_rows(p));
  for (std::size_t i = 0; i < 5 * 16; ++i) CHECK(reference.exact[i] == 0);
  for (std::size_t c = 0; c < 16; ++c) {
    CHECK(reference.exact[5 * 16 + c] ==
          static_cast<double>(inputs.v.at(static_cast<std::int64_t>(c))));
  }
}

TEST_CASE("a single row is the same alone and among others") {
  const Problem p{
      .batch = 1, .heads = 2, .seq_q = 50, .seq_kv = 77, .head_dim = 40, .causal = true};
  const Inputs inputs = make_inputs(p, Distribution::normal, 1);
  const std::vector<RowId> rows = all_rows(p);
  const ReferenceRows together = reference_rows(p, inputs, rows);
  const ReferenceRows alone = reference_rows(p, inputs, {rows[63]});
  for (std::size_t c = 0; c < 40; ++c) {
    CHECK(alone.exact[c] == together.exact[63 * 40 + c]);
    CHECK(alone.straightforward[c] == together.straightforward[63 * 40 + c]);
  }
}

TEST_CASE("small problems are checked in full, large ones where it matters") {
  const Problem small{.batch = 2, .heads = 3, .seq_q = 256, .seq_kv = 256, .head_dim = 128};
  CHECK(choose_rows(small, 1 << 30, 1).size() == 2 * 3 * 256);

  const Problem large{.batch = 16, .heads = 16, .seq_q = 16384, .seq_kv = 16384, .head_dim = 128};
  const std::vector<RowId> rows = choose_rows(large, 1 << 30, 1);
  CHECK(rows.size() > 400);
  CHECK(rows.size() <= 512);
  CHECK(std::is_sorted(rows.begin(), rows.end()));
  CHECK(std::adjacent_find(rows.begin(), rows.end()) == rows.end());
  std::set<std::int64_t> heads;
  for (const RowId& id : rows) heads.insert(id.head);
  CHECK(heads.size() == 256);
  auto has = [&](std::int64_t head, std::int64_t row) {
    return std::binary_search(rows.begin(), rows.end(), RowId{head, row});
  };
  for (const std::int64_t head : {0, 15, 16, 255}) {
    for (const std::int64_t row : {0, 15, 16, 63, 64, 127, 128, 191, 192, 16319, 16320, 16383}) {
      CAPTURE(head, row);
      CHECK(has(head, row));
    }
  }
  CHECK(choose_rows(large, 1 << 30, 2) != rows);
  CHECK(choose_rows(large, 1, 1).size() >= 60);
  // One row of many heads, and one head of few rows.
  CHECK(choose_rows({.batch = 64, .heads = 64, .seq_q = 1, .seq_kv = 65536}, 1 << 28, 1).size() >=
        32);
  CHECK(choose_rows({.batch = 1, .heads = 1, .seq_q = 65536, .seq_kv = 65536}, 1 << 28, 1).size() >=
        60);
}
