// SPDX-License-Identifier: MIT
// Every instance passes the gate in the virtual machine, with the same bits however it is run.
#include <algorithm>
#include <string>
#include <vector>

#include "harness/measure/measured.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"

using namespace fa_test;

namespace {

struct Shape {
  std::int64_t batch, heads, seq_q, seq_kv;
};

/// Several batches and heads where the problem is small, one of each where it is large. Products on
/// CUDA cores are many more instructions, so those problems are smaller.
std::vector<Shape> shapes(Dtype dtype) {
  if (dtype != Dtype::f32) return {{2, 3, 256, 256}, {1, 1, 256, 1024}};
  return {{2, 2, 128, 128}, {1, 1, 256, 256}, {1, 2, 256, 64}, {1, 1, 128, 192}};
}

struct Subject {
  const Rung* rung;
  const Instance* instance;
};

/// Instances that compute the problem.
std::vector<Subject> subjects(const Problem& problem) {
  std::vector<Subject> found;
  for (const Rung& rung : catalogue()) {
    const bool takes = rung.family != Family::backward && rung.takes(problem.dtype) &&
                       problem.seq_q <= rung.most_queries() &&
                       has(rung.capabilities, Capabilities::lse) == problem.lse &&
                       (has(rung.capabilities, Capabilities::causal) || !problem.causal);
    if (!takes) continue;
    for (const Instance& instance : rung.instances) {
      if (instance.head_dim == problem.head_dim && rung.dtype_of(instance) == problem.dtype)
        found.push_back({&rung, &instance});
    }
  }
  return found;
}

/// head_dims of all rungs, ascending.
std::vector<int> all_head_dims() {
  std::vector<int> dims;
  for (const Rung& rung : catalogue()) {
    for (const int dim : rung.head_dims()) dims.push_back(dim);
  }
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  return dims;
}

/// Every problem that some rung takes.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    for (const Shape& shape : shapes(dtype)) {
      for (const int dim : all_head_dims()) {
        for (const bool causal : {false, true}) {
          for (const bool lse : {false, true}) {
            const Problem problem{shape.batch, shape.heads, shape.seq_q, shape.seq_kv,
                                  dim,         causal,      dtype,       lse};
            if (!subjects(problem).empty()) all.push_back(problem);
          }
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("every instance passes the gate and gives the same bits in every order of warps") {
  // The gate launches in both orders and compares the bits; differential_test.cpp compares those of
  // two threads.
  VmDevice device({.threads = 1, .ptx = kernels()});
  for (const Problem& problem : problems()) {
    const Inputs inputs = make_pass_inputs(problem, Distribution::normal, 7);
    const Verifier verifier(problem, inputs);
    for (const auto& [rung, instance] : subjects(problem)) {
      INFO(instance->entry << " at " << to_string(problem));
      const LaunchPlan plan = plan_of(*rung, problem, to_string(instance->tile));
      device.load(problem, inputs);
      const Verdict verdict = pass_gate(
          device, [&, &steps = plan] { device.launch(steps); }, verifier, promised(plan));
      INFO(verdict.reason << "\n" << text_of(verdict.findings));
      REQUIRE(verdict.ok);
    }
  }
}

TEST_CASE(
    "every rung is among the subjects at one of its head_dims, with each mask that it takes") {
  const std::vector<Problem> all = problems();
  for (const Rung& rung : catalogue()) {
    // decode_test.cpp, and the case below
    if (rung.family == Family::decode || rung.family == Family::backward) continue;
    for (const Instance& instance : rung.instances) {
      INFO(instance.entry);
      for (const bool causal : {false, true}) {
        if (causal && !has(rung.capabilities, Capabilities::causal)) continue;
        CHECK(std::any_of(all.begin(), all.end(), [&](const Problem& problem) {
          const std::vector<Subject> found = subjects(problem);
          return problem.causal == causal &&
                 std::any_of(found.begin(), found.end(),
                             [&](const Subject& each) { return each.instance == &instance; });
        }));
      }
    }
  }
}

TEST_CASE("every instance that computes gradients passes the gate") {
  VmDevice device({.ptx = kernels()});
  for (const Rung& rung : catalogue()) {
    if (rung.family != Family::backward) continue;
    for (const Instance& instance : rung.instances) {
      for (const bool causal : {false, true}) {
        Problem problem{.batch = 2,
                        .heads = 2,
                        .seq_q = 256,
                        .seq_kv = 128,
                        .head_dim = instance.head_dim,
                        .causal = causal,
                        .dtype = rung.dtype_of(instance),
                        .own_kv_heads = 1};
        set_types(rung, problem);
        if (has(rung.capabilities, Capabilities::ragged)) problem.seq_q = 130, problem.seq_kv = 200;
        INFO(instance.entry << " at " << to_string(problem));
        const auto given = judged(problem, Distribution::needle, 7);
        const LaunchPlan plan = plan_of(rung, problem, to_string(instance.tile));
        device.load(problem, given->inputs);
        const Verdict verdict = pass_gate(
            device, [&, &steps = plan] { device.launch(steps); }, given->verifier, promised(plan));
        INFO(verdict.reason << "\n" << text_of(verdict.findings));
        CHECK(verdict.ok);
      }
    }
  }
}

TEST_CASE(
    "a kernel of a plan ends when it is launched again without the others, as fa bench does") {
  VmDevice device({.checkers = false, .ptx = kernels(), .max_steps = 1 << 24});
  for (const Rung& rung : catalogue()) {
    Problem problem{.batch = 1, .heads = 1, .seq_q = 256, .seq_kv = 256};
    if (rung.family == Family::decode) problem.seq_q = 1;
    problem.head_dim = rung.head_dims().front();
    set_types(rung, problem);
    const LaunchPlan plan = plan_of(rung, problem);
    const std::vector<LaunchPlan> parts = launch_parts(plan);
    if (parts.empty()) continue;
    device.load(problem, make_pass_inputs(problem, Distribution::normal, 1));
    device.launch(plan);
    for (const LaunchPlan& part : parts) {
      INFO(part.launches.front().entry);
      for (int launch = 0; launch < 2; ++launch) CHECK_NOTHROW(device.launch(part));
    }
  }
}
