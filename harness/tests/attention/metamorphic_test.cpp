// SPDX-License-Identifier: MIT
#include "harness/attention/metamorphic.h"

#include <cstring>
#include <stdexcept>

#include "harness/attention/mutants.h"
#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

using namespace fa;

namespace {

Forward honest() {
  return [](const Problem& p, const Inputs& inputs) { return honest_output(p, inputs); };
}

Forward faulty(const char* name) {
  for (const Mutant& mutant : all_mutants()) {
    if (std::strcmp(mutant.name, name) == 0) {
      return [&mutant](const Problem& p, const Inputs& in) { return mutant_output(mutant, p, in); };
    }
  }
  throw std::invalid_argument(name);
}

const Problem kPlain{.batch = 1, .heads = 2, .seq_q = 96, .seq_kv = 160, .head_dim = 64};
const Problem kCausal{
    .batch = 1, .heads = 2, .seq_q = 96, .seq_kv = 160, .head_dim = 64, .causal = true};

}  // namespace

TEST_CASE("keys behind the mask have no influence") {
  const Inputs inputs = make_inputs(kCausal, Distribution::normal, 1);
  for (const std::int64_t cut : {65, 100, 128, 159}) {
    const Relation relation = causal_prefix_invariance(kCausal, inputs, cut, honest());
    CAPTURE(cut, relation.reason);
    CHECK(relation.ok);
  }
  const Relation late = causal_prefix_invariance(kCausal, inputs, 100, faulty("mask_late"));
  CHECK(!late.ok);
  CHECK(contains(late.reason, "batch 0, head 0, row 35, column 0 depends on keys from 100 on"));
  CHECK(!causal_prefix_invariance(kCausal, inputs, 100, faulty("no_mask")).ok);
  CHECK(contains(message_of<std::invalid_argument>(
                     [&] { causal_prefix_invariance(kCausal, inputs, 160, honest()); }),
                 "[1, 160)"));
  CHECK(contains(message_of<std::invalid_argument>(
                     [&] { causal_prefix_invariance(kPlain, inputs, 10, honest()); }),
                 "causal"));
}

TEST_CASE("rows keep their bits when the queries of others change") {
  for (const Problem& p : {kPlain, kCausal}) {
    const Inputs normal = make_inputs(p, Distribution::normal, 1);
    const Inputs spiking = make_inputs(p, Distribution::spike, 1);
    const Relation relation = untouched_rows(p, normal, spiking, honest());
    CAPTURE(to_string(p), relation.reason);
    CHECK(relation.ok);
    // A kernel that scales all rows where one needs it rounds the others anew.
    const Forward disturbed = [&](const Problem& problem, const Inputs& inputs) {
      HostTensor output = honest_output(problem, inputs);
      if (inputs.q.bytes != normal.q.bytes) output.set(5, 1.001f * output.at(5));
      return output;
    };
    const Relation broken = untouched_rows(p, normal, spiking, disturbed);
    CHECK(!broken.ok);
    CHECK(contains(broken.reason, "row 0, column 5 depends on the queries of other rows"));
    CHECK(contains(
        message_of<std::invalid_argument>([&] { untouched_rows(p, normal, normal, honest()); }),
        "some queries must differ"));
    CHECK(contains(message_of<std::invalid_argument>([&] {
                     untouched_rows(p, normal, make_inputs(p, Distribution::normal, 2), honest());
                   }),
                   "Q alone"));
  }
}

TEST_CASE("keys and values may be permuted together") {
  for (const Distribution distribution : all_distributions()) {
    const Inputs inputs = make_inputs(kPlain, distribution, 1);
    const Relation relation = joint_permutation(kPlain, inputs, 3, honest());
    CAPTURE(to_string(distribution), relation.reason);
    CHECK(relation.ok);
    CHECK(!joint_permutation(kPlain, inputs, 3, faulty("half_keys")).ok);
  }
  const Inputs inputs = make_inputs(kCausal, Distribution::normal, 1);
  CHECK(contains(
      message_of<std::invalid_argument>([&] { joint_permutation(kCausal, inputs, 1, honest()); }),
      "without a mask"));
}

TEST_CASE("a constant on a row's scores changes nothing") {
  for (Problem p : {kPlain, kCausal}) {
    for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
      p.dtype = dtype;
      for (const Distribution distribution : all_distributions()) {
        const Inputs inputs = make_inputs(p, distribution, 1);
        const Relation relation = constant_shift(p, inputs, honest());
        CAPTURE(to_string(p), to_string(distribution), relation.reason);
        CHECK(relation.ok);
      }
    }
  }
  const Inputs inputs = make_inputs(kPlain, Distribution::normal, 1);
  CHECK(!constant_shift(kPlain, inputs, faulty("no_max")).ok);
}
