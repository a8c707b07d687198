// SPDX-License-Identifier: MIT
// What 71 makes of the sequences of a packed batch.
#include <cmath>

#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;

namespace {

Problem packed_gradients(int dim, bool causal) {
  return {.batch = 5,
          .heads = 4,
          .seq_q = 257,
          .seq_kv = 321,
          .head_dim = dim,
          .causal = causal,
          .own_kv_heads = 2,
          .query_lengths = {130, 1, 0, 64, 257},
          .lengths = {321, 5, 40, 128, 200},
          .window_left = 150,
          .backward = true};
}

/// Calls body(row of Q, row of K, head) of the first query and key of each head of an entry.
template <class Body>
void for_each_head(const Problem& p, const Inputs& inputs, std::int64_t entry, const Body& body) {
  for (std::int64_t head = 0; head < p.heads; ++head) {
    const std::int64_t of_all = entry * p.heads + head;
    body(q_row(p, of_all, 0), kv_row(p, inputs, of_all, 0), head);
  }
}

/// The entry alone, as a problem of its own.
Problem alone_of(const Problem& batch, std::int64_t entry) {
  Problem own = batch;
  own.batch = 1, own.seq_q = batch.queries(entry), own.seq_kv = batch.length(entry);
  own.query_lengths.clear(), own.lengths.clear();
  return own;
}

void copy_rows_of(const HostTensor& from, std::int64_t first, HostTensor& to, std::int64_t place,
                  std::int64_t rows) {
  const std::int64_t d = from.shape[3];
  for (std::int64_t i = 0; i < rows * d; ++i) to.set(place * d + i, from.at(first * d + i));
}

Inputs sequence_inputs(const Problem& batch, const Inputs& all, std::int64_t entry,
                       const Problem& own) {
  Inputs inputs = make_pass_inputs(own, Distribution::normal, 1);
  for_each_head(batch, all, entry, [&](std::int64_t query, std::int64_t key, std::int64_t head) {
    const std::int64_t q = q_row(own, head, 0), k = kv_row(own, inputs, head, 0);
    copy_rows_of(all.q, query, inputs.q, q, own.seq_q);
    copy_rows_of(all.o, query, inputs.o, q, own.seq_q);
    copy_rows_of(all.d_o, query, inputs.d_o, q, own.seq_q);
    copy_rows_of(all.k, key, inputs.k, k, own.seq_kv);
    copy_rows_of(all.v, key, inputs.v, k, own.seq_kv);
    for (std::int64_t i = 0; i < own.seq_q; ++i)
      inputs.lse[static_cast<std::size_t>(q + i)] = all.lse[static_cast<std::size_t>(query + i)];
  });
  return inputs;
}

/// All rows of the other entries become NaN.
Inputs without_others(const Problem& p, const Inputs& all, std::int64_t entry) {
  Inputs inputs = all;
  const auto fill = [&](HostTensor& tensor, std::int64_t first, std::int64_t rows) {
    for (std::int64_t i = first * p.head_dim; i < (first + rows) * p.head_dim; ++i)
      tensor.set(i, i % 2 == 0 ? NAN : INFINITY);
  };
  for (std::int64_t other = 0; other < p.batch; ++other) {
    if (other == entry) continue;
    for_each_head(p, all, other, [&](std::int64_t query, std::int64_t key, std::int64_t) {
      for (HostTensor* tensor : {&inputs.q, &inputs.o, &inputs.d_o})
        fill(*tensor, query, p.queries(other));
      for (HostTensor* tensor : {&inputs.k, &inputs.v}) fill(*tensor, key, p.length(other));
    });
  }
  return inputs;
}

Gradients gradients_by(const char* rung, const Problem& problem, const Inputs& inputs) {
  VmDevice device({.ptx = kernels()});
  device.load(problem, inputs);
  device.launch(plan_of(*find_rung(rung), problem));
  return device.download_gradients();
}

/// Whether an entry's gradients in a batch have the bits of `other`, at its entry.
bool same_bits(const Problem& p, const Inputs& inputs, std::int64_t entry,
               const Gradients& together, const Problem& own, const Gradients& other,
               std::int64_t own_entry) {
  const std::int64_t d = p.head_dim;
  bool equal = true;
  const auto compare = [&](const HostTensor& a, std::int64_t first, const HostTensor& b,
                           std::int64_t second, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows * d; ++i)
      equal &= a.at(first * d + i) == b.at(second * d + i);
  };
  for_each_head(p, inputs, entry, [&](std::int64_t query, std::int64_t key, std::int64_t head) {
    const std::int64_t of_all = own_entry * p.heads + head;
    const std::int64_t q = q_row(own, of_all, 0), k = kv_row(own, inputs, of_all, 0);
    compare(together.d_q, query, other.d_q, q, p.queries(entry));
    compare(together.d_k, key, other.d_k, k, p.length(entry));
    compare(together.d_v, key, other.d_v, k, p.length(entry));
  });
  return equal;
}

}  // namespace

TEST_CASE("71 gives each sequence the bits that 70 gives it alone, whatever is beside it") {
  for (const int dim : {64, 128}) {
    const Problem p = packed_gradients(dim, /*causal=*/dim == 64);
    const Inputs all = make_pass_inputs(p, Distribution::normal, 1);
    const Gradients together = gradients_by("71", p, all);
    for (std::int64_t entry = 0; entry < p.batch; ++entry) {
      INFO("head_dim " << dim << ", sequence " << entry);
      const Gradients without = gradients_by("71", p, without_others(p, all, entry));
      CHECK(same_bits(p, all, entry, together, p, without, entry));
      if (p.queries(entry) == 0) continue;
      const Problem own = alone_of(p, entry);
      const Gradients alone = gradients_by("70", own, sequence_inputs(p, all, entry, own));
      CHECK(same_bits(p, all, entry, together, own, alone, 0));
    }
  }
}
