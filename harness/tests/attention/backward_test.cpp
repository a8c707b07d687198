// SPDX-License-Identifier: MIT
// The reference of gradients against numeric derivatives, and wrong gradients against the verdict.
#include "harness/attention/backward.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "harness/attention/check.h"
#include "harness/tests/catch.h"

using namespace fa;

namespace {

std::vector<RowId> every_row(const Problem& problem) {
  return choose_rows(problem, std::int64_t{1} << 40, 1);
}

/// Rows in the order of the tensor that they are of.
std::vector<double> in_their_places(const Problem& problem, const std::vector<RowId>& ids,
                                    const std::vector<double>& rows) {
  const auto d = static_cast<std::ptrdiff_t>(problem.head_dim);
  std::vector<double> tensor(rows.size());
  for (std::ptrdiff_t i = 0; i < std::ssize(ids); ++i) {
    const RowId& id = ids[static_cast<std::size_t>(i)];
    std::copy_n(rows.begin() + i * d, d, tensor.begin() + q_row(problem, id.head, id.row) * d);
  }
  return tensor;
}

/// The sum of dO O over all elements, whose gradient with respect to O is dO.
double loss(const Problem& problem, const Inputs& inputs) {
  Problem forward = problem;
  forward.backward = false;
  const std::vector<RowId> ids = every_row(forward);
  const std::vector<double> o =
      in_their_places(forward, ids, reference_rows(forward, inputs, ids).exact);
  double sum = 0;
  for (std::size_t i = 0; i < o.size(); ++i)
    sum += o[i] * static_cast<double>(inputs.d_o.at(static_cast<std::int64_t>(i)));
  return sum;
}

TEST_CASE("the reference is the derivative of the forward pass") {
  for (const bool packed : {false, true})
    for (const bool causal : {false, true}) {
      // In float32, O and the LSE are nearly exact.
      Problem problem{.batch = 1,
                      .heads = 2,
                      .seq_q = 5,
                      .seq_kv = 7,
                      .head_dim = 8,
                      .causal = causal,
                      .dtype = Dtype::f32,
                      .own_kv_heads = 1,
                      .backward = true};
      if (packed) problem.batch = 3, problem.query_lengths = {3, 0, 5}, problem.lengths = {7, 2, 4};
      const Inputs inputs = make_pass_inputs(problem, Distribution::normal, 1);
      const Problem keys = transposed(problem);
      const std::vector<RowId> rows = every_row(problem), key_rows = every_row(keys);
      const ExpectedRows d_q = reference_d_q(problem, inputs, rows);
      const KeyGradientRows of_keys = reference_d_kv(problem, inputs, key_rows);
      const auto check = [&](HostTensor Inputs::*tensor, const Problem& of,
                             const std::vector<RowId>& ids, const std::vector<double>& exact) {
        const std::vector<double> gradient = in_their_places(of, ids, exact);
        for (std::int64_t i = 0; i < (inputs.*tensor).size(); i += 3) {
          constexpr float kStep = 1.0f / 256;
          const float value = (inputs.*tensor).at(i);
          Inputs shifted = inputs;
          (shifted.*tensor).set(i, value + kStep);
          const double above = loss(problem, shifted);
          (shifted.*tensor).set(i, value - kStep);
          const double numeric = (above - loss(problem, shifted)) / static_cast<double>(2 * kStep);
          CHECK(gradient[static_cast<std::size_t>(i)] == Approx(numeric).margin(2e-4));
        }
      };
      check(&Inputs::q, problem, rows, d_q.exact);
      check(&Inputs::k, keys, key_rows, of_keys.d_k.exact);
      check(&Inputs::v, keys, key_rows, of_keys.d_v.exact);
    }
}

/// A mistake of a kernel that computes gradients.
struct Fault {
  std::string name = "none";
  bool no_terms = false, no_scale = false;
  std::int64_t key_tile = -1;  ///< of 16 keys, whose part of dQ counts `times`
  double times = 1;
  bool stale = false;  ///< P of the key before
  bool swapped = false;
  std::int64_t mask = 0;  ///< keys beyond its own that a query sees
  bool first_head = false;
  bool longest = false;        ///< the mask of each sequence is aligned as that of the longest
  std::int64_t neighbour = 0;  ///< keys of the next sequence that a query sees
  bool late = false;           ///< gradients of queries one row further
};

/// Gradients in double precision with one fault, rounded at the end.
Gradients faulty(const Problem& problem, const Inputs& inputs, const Fault& fault) {
  const std::int64_t d = problem.head_dim;
  const double scale = problem.scale();
  const auto n = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<double> d_q(n(problem.q_elements())), d_k(n(problem.kv_elements())),
      d_v(n(problem.kv_elements()));
  const auto dot = [&](const HostTensor& a, std::int64_t i, const HostTensor& b, std::int64_t j) {
    double sum = 0;
    for (std::int64_t c = 0; c < d; ++c)
      sum += static_cast<double>(a.at(i * d + c)) * static_cast<double>(b.at(j * d + c));
    return sum;
  };
  for (std::int64_t head = 0; head < problem.batch * problem.heads; ++head) {
    const std::int64_t entry = head / problem.heads, length = problem.length(entry);
    for (std::int64_t i = 0; i < problem.queries(entry); ++i) {
      const std::int64_t row = q_row(problem, head, i);
      const double term = fault.no_terms ? 0 : dot(inputs.o, row, inputs.d_o, row);
      std::int64_t end = length;
      if (problem.causal && fault.longest) end = i + 1 + problem.seq_kv - problem.seq_q;
      if (problem.causal && !fault.longest) end = visible_keys(problem, i, head).end + fault.mask;
      end = std::min(end, length);
      if (end == length && entry + 1 < problem.batch) end += fault.neighbour;
      for (std::int64_t j = 0; j < end; ++j) {
        const std::int64_t key = kv_row(problem, inputs, head, j);
        const std::int64_t of_p = fault.stale && j > 0 ? key - 1 : key;
        const double p = std::exp(scale * dot(inputs.q, row, inputs.k, of_p) -
                                  static_cast<double>(inputs.lse[n(row)]));
        const double d_s = p * (dot(inputs.d_o, row, inputs.v, key) - term);
        const double times = j / 16 == fault.key_tile ? fault.times : 1;
        const double factor = fault.no_scale ? 1 : scale;
        const bool counts = !fault.first_head || head % problem.group() == 0;
        for (std::int64_t c = 0; c < d; ++c) {
          d_q[n((row + (fault.late && i + 1 < problem.queries(entry) ? 1 : 0)) * d + c)] +=
              times * factor * d_s * static_cast<double>(inputs.k.at(key * d + c));
          if (!counts) continue;
          d_k[n(key * d + c)] += factor * d_s * static_cast<double>(inputs.q.at(row * d + c));
          d_v[n(key * d + c)] += p * static_cast<double>(inputs.d_o.at(row * d + c));
        }
      }
    }
  }
  if (fault.swapped) std::swap(d_k, d_v);
  const auto rounded = [&](const std::vector<double>& values, const Shape& shape) {
    HostTensor made = make_tensor(problem.dtype, shape);
    for (std::int64_t i = 0; i < made.size(); ++i) made.set(i, static_cast<float>(values[n(i)]));
    return made;
  };
  return {rounded(d_q, q_shape(problem)), rounded(d_k, kv_shape(problem)),
          rounded(d_v, kv_shape(problem))};
}

Problem fault_problem(Dtype dtype, bool causal) {
  return {.batch = 2,
          .heads = 4,
          .seq_q = 40,
          .seq_kv = 48,
          .head_dim = 32,
          .causal = causal,
          .dtype = dtype,
          .own_kv_heads = 2,
          .backward = true};
}

Problem packed_problem(Dtype dtype) {
  Problem problem = fault_problem(dtype, /*causal=*/true);
  problem.batch = 4;
  problem.query_lengths = {40, 0, 17, 30}, problem.lengths = {48, 5, 30, 9};
  return problem;
}

constexpr Dtype kDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::f32};

TEST_CASE("gradients that are rounded once are right, whatever the inputs") {
  for (const Dtype dtype : kDtypes) {
    for (const Problem& problem :
         {fault_problem(dtype, false), fault_problem(dtype, true), packed_problem(dtype)}) {
      for (const Distribution distribution : all_distributions()) {
        for (const double spread : {1.0, 16.0}) {
          const InputKind kind(distribution, spread);
          CAPTURE(to_string(kind), to_string(problem));
          const Inputs inputs = make_pass_inputs(problem, kind, 2);
          const CheckReport report = Verifier(problem, inputs).check(faulty(problem, inputs, {}));
          CHECK(report.reason == "");
        }
      }
    }
  }
}

Fault fault(const char* name, const auto& set) {
  Fault made;
  made.name = name;
  set(made);
  return made;
}

void require_rejected(const Problem& problem, const std::vector<Fault>& faults) {
  for (const Distribution distribution : {Distribution::normal, Distribution::uniform}) {
    const Inputs inputs = make_pass_inputs(problem, distribution, 2);
    const Verifier verifier(problem, inputs);
    for (const Fault& each : faults) {
      CAPTURE(each.name, to_string(distribution), to_string(problem));
      CHECK_FALSE(verifier.check(faulty(problem, inputs, each)).ok);
    }
  }
}

TEST_CASE("gradients with a fault are rejected") {
  const std::vector<Fault> faults{
      fault("no D", [](Fault& f) { f.no_terms = true; }),
      fault("no scale", [](Fault& f) { f.no_scale = true; }),
      fault("dQ of a key tile is missing", [](Fault& f) { f.key_tile = 1, f.times = 0; }),
      fault("dQ of a key tile counts twice", [](Fault& f) { f.key_tile = 1, f.times = 2; }),
      fault("P of the key before", [](Fault& f) { f.stale = true; }),
      fault("dK and dV are swapped", [](Fault& f) { f.swapped = true; }),
      fault("the mask shows a key more", [](Fault& f) { f.mask = 1; }),
      fault("the mask hides a key more", [](Fault& f) { f.mask = -1; }),
      fault("the first head of a group alone", [](Fault& f) { f.first_head = true; })};
  for (const Dtype dtype : kDtypes) require_rejected(fault_problem(dtype, /*causal=*/true), faults);
}

TEST_CASE("gradients with a fault in a packed batch are rejected") {
  const std::vector<Fault> faults{
      fault("the mask of the longest sequence", [](Fault& f) { f.longest = true; }),
      fault("a key of the neighbour", [](Fault& f) { f.neighbour = 1; }),
      fault("dQ a row too late", [](Fault& f) { f.late = true; }),
      fault("the mask shows a key more", [](Fault& f) { f.mask = 1; })};
  for (const Dtype dtype : kDtypes) require_rejected(packed_problem(dtype), faults);
}

TEST_CASE("a query that sees no key has no gradient") {
  Problem problem = fault_problem(Dtype::f16, /*causal=*/true);
  problem.seq_q = 60;  // the first 12 rows see no key
  const Inputs inputs = make_pass_inputs(problem, Distribution::normal, 1);
  const Verifier verifier(problem, inputs);
  Gradients gradients = faulty(problem, inputs, {});
  REQUIRE(verifier.check(gradients).ok);
  CHECK(gradients.d_q.at(0) == 0);
  gradients.d_q.set(0, 1e-6f);
  CHECK_FALSE(verifier.check(gradients).ok);
}

}  // namespace
