// SPDX-License-Identifier: MIT
// Problems with a cache: grouped heads, lengths and pages, from the shape to the reference.
#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include "harness/attention/inputs.h"
#include "harness/attention/metamorphic.h"
#include "harness/attention/mutants.h"
#include "harness/attention/reference.h"
#include "harness/tests/catch.h"
#include "kernels/types.h"

using namespace fa;

namespace {

const Problem kPaged{.batch = 4,
                     .heads = 6,
                     .seq_q = 3,
                     .seq_kv = 100,
                     .head_dim = 64,
                     .causal = true,
                     .own_kv_heads = 2,
                     .lengths = {100, 0, 1, 50},
                     .page = 16};

Problem with(Problem problem, auto change) {
  change(problem);
  return problem;
}

/// The same problem and inputs with neither pages nor groups.
std::pair<Problem, Inputs> spread_out(const Problem& p, const Inputs& inputs) {
  Problem flat = p;
  flat.own_kv_heads = flat.page = 0;
  Inputs out{inputs.q, make_tensor(p.dtype, kv_shape(flat), 0),
             make_tensor(p.dtype, kv_shape(flat), 0)};
  for (std::int64_t head = 0; head < p.batch * p.heads; ++head) {
    for (std::int64_t key = 0; key < p.length(head / p.heads); ++key) {
      const std::int64_t from = kv_row(p, inputs, head, key), to = head * p.seq_kv + key;
      for (std::int64_t c = 0; c < p.head_dim; ++c) {
        out.k.set(to * p.head_dim + c, inputs.k.at(from * p.head_dim + c));
        out.v.set(to * p.head_dim + c, inputs.v.at(from * p.head_dim + c));
      }
    }
  }
  return {flat, out};
}

}  // namespace

TEST_CASE("bytes count each key once for a head of K and V") {
  const Problem p{.batch = 16, .heads = 32, .seq_q = 1, .seq_kv = 8192, .own_kv_heads = 8};
  CHECK(p.group() == 4);
  CHECK(p.kv_bytes() == 2.0 * 2 * 128 * 8 * 16 * 8192);
  CHECK(p.bytes() == p.kv_bytes() + 2.0 * 2 * 128 * 32 * 16);
  CHECK(p.stored_bytes() == p.bytes());
  CHECK(kPaged.keys() == 151);
  CHECK(kPaged.kv_bytes() == 2.0 * 2 * 64 * 2 * 151);
  CHECK(kPaged.pages() == 7 + 0 + 1 + 4 + 1);
  CHECK(kv_shape(kPaged) == Shape{13, 2, 16, 64});
  CHECK(kPaged.stored_bytes() > kPaged.bytes());
  CHECK(kPaged.flops() == 2.0 * 6 * 3 * 151 * 64);
}

TEST_CASE("a cache that does not fit its problem is refused with the value") {
  const auto error = [](auto change) { return cache_error(with(kPaged, change)); };
  CHECK(error([](Problem&) {}).empty());
  CHECK(error([](Problem& p) { p.own_kv_heads = 4; }) == "kv_heads 4 does not divide the 6 heads");
  CHECK(error([](Problem& p) { p.lengths.pop_back(); }) ==
        "3 lengths for a batch of 4; one for each entry is needed");
  CHECK(error([](Problem& p) { p.lengths[1] = 101; }) ==
        "length 101 is not between 0 and seq_kv 100");
  CHECK(error([](Problem& p) { p.lengths[1] = -1; }).starts_with("length -1 is not between"));
  CHECK(error([](Problem& p) { p.lengths = {0, 0, 0, 0}; }).starts_with("all lengths are 0"));
  CHECK(error([](Problem& p) { p.page = -16; }) == "page -16 is below 0");
  CHECK_THROWS_AS(
      make_inputs(with(kPaged, [](Problem& p) { p.lengths = {1}; }), Distribution::normal, 1),
      std::invalid_argument);
}

TEST_CASE("a problem names what it needs, and a text shows it") {
  using enum Capabilities;
  CHECK(needs_of(kPaged) == (causal | grouped | lengths | paged));
  CHECK(needs_of(with(kPaged, [](Problem& p) { p.seq_q = 1; })) == (grouped | lengths | paged));
  CHECK(needs_of(Problem{}) == none);
  CHECK(to_string(kPaged) ==
        "B=4 H=6/2 Nq=3 Nkv=100 D=64 causal float16, lengths 0 to 100, pages of 16");
}

TEST_CASE("the page table gives every key a row of its own, and each seed another order") {
  const Inputs inputs = make_inputs(kPaged, Distribution::normal, 1);
  std::set<std::int64_t> rows;
  std::size_t keys = 0;
  for (std::int64_t head = 0; head < kPaged.batch * kPaged.heads; head += kPaged.group()) {
    for (std::int64_t key = 0; key < kPaged.length(head / kPaged.heads); ++key, ++keys) {
      const std::int64_t row = kv_row(kPaged, inputs, head, key);
      CHECK(row >= 0);
      CHECK(row < inputs.k.size() / kPaged.head_dim);
      rows.insert(row);
      CHECK(kv_row(kPaged, inputs, head + kPaged.group() - 1, key) == row);
    }
  }
  CHECK(rows.size() == keys);
  CHECK(keys == 2 * 151);
  CHECK(inputs.page_table[7] == -1);  // the entry without keys has no page
  CHECK(make_inputs(kPaged, Distribution::normal, 2).page_table != inputs.page_table);
}

TEST_CASE("random lengths lie between 1 and all, and differ") {
  const std::vector<std::int64_t> lengths = random_lengths(64, 32768, 1);
  CHECK(lengths == random_lengths(64, 32768, 1));
  CHECK(std::set<std::int64_t>(lengths.begin(), lengths.end()).size() > 60);
  for (const std::int64_t length : lengths) CHECK((length >= 1 && length <= 32768));
}

TEST_CASE("the reference of a paged, grouped cache is that of its keys spread out") {
  for (const Distribution distribution : all_distributions()) {
    const Inputs inputs = make_inputs(kPaged, distribution, 1);
    const auto [flat, flat_inputs] = spread_out(kPaged, inputs);
    const std::vector<RowId> rows = choose_rows(kPaged, 1 << 30, 1);
    const ReferenceRows paged = reference_rows(kPaged, inputs, rows);
    const ReferenceRows spread = reference_rows(flat, flat_inputs, rows);
    CHECK(paged.exact == spread.exact);
    CHECK(paged.straightforward == spread.straightforward);
    CHECK(paged.lse_exact == spread.lse_exact);
    CHECK(std::ssize(rows) == 4 * 6 * 3);
    CHECK(paged.lse_exact[6 * 3] == -std::numeric_limits<double>::infinity());  // length 0
  }
}

TEST_CASE("a kernel that reads unused memory is found out") {
  const Forward honest = [](const Problem& p, const Inputs& inputs) {
    return honest_output(p, inputs);
  };
  const Inputs inputs = make_inputs(kPaged, Distribution::normal, 1);
  CHECK(unused_memory(kPaged, inputs, honest).ok);
  const Forward late = [](const Problem& p, const Inputs& given) {
    for (const Mutant& mutant : all_mutants()) {
      if (std::string(mutant.name) == "length_late") return mutant_output(mutant, p, given);
    }
    throw std::logic_error("no such mutant");
  };
  const Relation found = unused_memory(kPaged, inputs, late);
  CHECK(!found.ok);
  CHECK(found.reason.find("behind a length") != std::string::npos);
  CHECK_THROWS_AS(unused_memory(Problem{}, inputs, honest), std::invalid_argument);
}

TEST_CASE("a sequence must not depend on its neighbours in a packed batch") {
  const Problem p{.batch = 4,
                  .heads = 2,
                  .seq_q = 30,
                  .seq_kv = 40,
                  .head_dim = 32,
                  .query_lengths = {30, 5, 0, 9},
                  .lengths = {40, 3, 0, 9}};
  const Inputs inputs = make_inputs(p, Distribution::normal, 1);
  const Forward honest = [](const Problem& given, const Inputs& all) {
    return honest_output(given, all);
  };
  CHECK(neighbours(p, inputs, honest).ok);
  // As a tile that reaches into the next sequence, with weights of 0 there.
  const Forward beyond = [](const Problem& given, const Inputs& all) {
    HostTensor o = honest_output(given, all);
    const std::int64_t last = (given.length(0) - 1) * given.head_dim;
    o.set(0, o.at(0) + 0 * all.v.at(last + given.head_dim));
    return o;
  };
  CHECK(beyond(p, inputs).bytes == honest(p, inputs).bytes);
  const Relation found = neighbours(p, inputs, beyond);
  CHECK(!found.ok);
  CHECK(found.reason.find("another sequence") != std::string::npos);
  CHECK_THROWS_AS(neighbours(Problem{}, inputs, honest), std::invalid_argument);
}

TEST_CASE("an e4m3 cache is the cache rounded, with a scale for each head of K and V") {
  Problem problem{.batch = 2,
                  .heads = 4,
                  .seq_q = 1,
                  .seq_kv = 70,
                  .head_dim = 32,
                  .own_kv_heads = 2,
                  .lengths = {70, 33},
                  .page = 16};
  const Inputs before = make_inputs(problem, Distribution::normal, 5);
  problem.e4m3 = true;
  const Inputs after = make_inputs(problem, Distribution::normal, 5);
  REQUIRE(after.kv_scales.size() == 8);
  CHECK(std::set<float>(after.kv_scales.begin(), after.kv_scales.end()).size() == 8);
  CHECK(after.q.bytes == before.q.bytes);
  for (std::int64_t head = 0; head < 8; ++head) {
    double worst = 0;  // in units of the scale
    float largest = 0;
    for (std::int64_t key = 0; key < problem.length(head / 4); ++key) {
      const std::int64_t first = kv_row(problem, before, head, key) * 32;
      for (std::int64_t i = first; i < first + 32; ++i) {
        const float value = before.v.at(i) / after.v_scale(problem, head);
        largest = std::max(largest, std::abs(after.v.at(i)));
        worst = std::max(worst, std::abs(static_cast<double>(after.v.at(i) - value)) /
                                    std::max(0x1p-6, std::abs(static_cast<double>(value))));
      }
    }
    CHECK(worst <= 1.0 / 16);  // half of the last of three bits
    CHECK(largest >= 224);     // room of a factor of two at most
    CHECK(largest <= fa::kLargestE4m3);
  }
}

TEST_CASE("the reference of an e4m3 cache is that of its values") {
  Problem problem{
      .heads = 4, .seq_q = 1, .seq_kv = 100, .head_dim = 32, .own_kv_heads = 2, .e4m3 = true};
  const Inputs inputs = make_inputs(problem, Distribution::normal, 3);
  Problem widened = problem;
  widened.e4m3 = false;
  widened.dtype = Dtype::f32;  // holds the products with the scales to 2^-24
  Inputs values{fa::make_tensor(Dtype::f32, inputs.q.shape),
                fa::make_tensor(Dtype::f32, inputs.k.shape),
                fa::make_tensor(Dtype::f32, inputs.v.shape)};
  for (std::int64_t i = 0; i < values.q.size(); ++i) values.q.set(i, inputs.q.at(i));
  for (std::int64_t i = 0; i < values.k.size(); ++i) {
    const std::int64_t head = i / (100 * 32) * 2;  // of Q
    values.k.set(i, inputs.k.at(i) * inputs.k_scale(problem, head));
    values.v.set(i, inputs.v.at(i) * inputs.v_scale(problem, head));
  }
  const std::vector<fa::RowId> rows{{0, 0}, {1, 0}, {3, 0}};
  const auto expected = fa::reference_rows(widened, values, rows).exact;
  const auto found = fa::reference_rows(problem, inputs, rows).exact;
  double difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference = std::max(difference, std::abs(found[i] - expected[i]));
  }
  CHECK(difference == 0);
}

TEST_CASE("an e4m3 cache counts a byte an element, and needs half queries") {
  Problem problem{
      .batch = 2, .heads = 8, .seq_q = 1, .seq_kv = 100, .head_dim = 64, .own_kv_heads = 2};
  const double half = problem.kv_bytes();
  problem.e4m3 = true;
  CHECK(problem.kv_bytes() == half / 2);
  CHECK(problem.input_bytes() == 2.0 * 2 * 8 * 64 + 2.0 * 2 * 2 * 100 * 64);
  CHECK(to_string(problem) == "B=2 H=8/2 Nq=1 Nkv=100 D=64 float16, K and V float8_e4m3");
  CHECK(fa::cache_error(problem).empty());
  problem.dtype = Dtype::f32;
  CHECK(fa::cache_error(problem) == "K and V of float8_e4m3 need Q of float16, it is float32");
}

TEST_CASE("an e4m3 cache changes O by 3.5 to 4 percent of its size, whatever the number of keys") {
  for (const std::int64_t keys : {64, 1024, 8192}) {
    Problem problem{
        .batch = 2, .heads = 8, .seq_q = 1, .seq_kv = keys, .head_dim = 128, .own_kv_heads = 4};
    std::vector<RowId> rows;
    for (std::int64_t head = 0; head < 16; ++head) rows.push_back({head, 0});
    const auto half =
        reference_rows(problem, make_inputs(problem, Distribution::normal, 1), rows).exact;
    problem.e4m3 = true;
    const auto stored =
        reference_rows(problem, make_inputs(problem, Distribution::normal, 1), rows).exact;
    double square = 0, error = 0;
    for (std::size_t i = 0; i < half.size(); ++i) {
      square += half[i] * half[i];
      error += (stored[i] - half[i]) * (stored[i] - half[i]);
    }
    INFO(keys << " keys: " << std::sqrt(error / square));
    CHECK(std::sqrt(error / square) > 0.035);
    CHECK(std::sqrt(error / square) < 0.04);
  }
}
