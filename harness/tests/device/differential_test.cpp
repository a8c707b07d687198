// SPDX-License-Identifier: MIT
// A rung is one program, however it is run: on one host thread or two, forward or reversed, on one
// multiprocessor or all, with one batch entry and head or several. Outputs and counts must be the
// same, and so must the findings: there are none. FA_DIFFERENTIAL=all takes every case of the quick
// suite instead of a few for each rung.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>

#include "harness/attention/parallel.h"
#include "harness/attention/suite.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"
#include "ptxvm/races.h"

using namespace fa_test;

namespace {

/// What a run shows. Counts are compared where both have them.
struct Shown {
  std::string findings;                     // or a fault
  decltype(HostTensor::bytes) output, lse;  // or dK and dV; dQ may be summed in any order
  std::optional<ptxvm::Counts> counts;
};

struct Way {
  std::string name;
  int threads;
  bool reversed;
  bool global = false;  // with the checker of global memory, which has blocks run in one order
};

const std::vector<Way> kWays{
    {"one thread", 1, false},          {"two threads", 2, false},
    {"one thread, reversed", 1, true}, {"two threads, reversed", 2, true},
    {"global races", 1, false, true},  {"global races, reversed", 1, true, true}};

Shown run(const LaunchPlan& plan, const Problem& problem, const Inputs& inputs, const Way& way) {
  ptxvm::GlobalRaces global;
  VmOptions options{
      .threads = way.threads, .reversed = way.reversed, .counters = true, .ptx = kernels()};
  if (way.global) options.observers = {&global};
  VmDevice device(options);
  device.load(problem, inputs);
  Shown shown;
  try {
    device.launch(plan);
    shown.counts = device.total_counts();
  } catch (const KernelFault& fault) {
    shown.findings = fault.what() + ("\n" + text_of(fault.findings));
  }
  if (problem.backward) {
    const Gradients gradients = device.download_gradients();
    shown.output = gradients.d_k.bytes, shown.lse = gradients.d_v.bytes;
    return shown;
  }
  shown.output = device.download_output().bytes;
  if (problem.lse) shown.lse = device.download_lse().bytes;
  return shown;
}

/// One sentence; empty where there is no difference.
std::string difference(const Shown& a, const Shown& b) {
  if (a.findings != b.findings) return "other findings:\n" + a.findings + "and\n" + b.findings;
  if (a.output != b.output) return "another output";
  if (a.lse != b.lse) return "another LSE";
  if (a.counts && b.counts && !(*a.counts == *b.counts)) {
    return fmt::format("other counts: {} and {} instructions", a.counts->total_instructions(),
                       b.counts->total_instructions());
  }
  return {};
}

LaunchPlan plan_on(const Rung& rung, const Problem& problem, int sms) {
  DeviceDescription device = vm_description();
  device.sms = sms;
  return std::get<LaunchPlan>(make_plan(rung, problem, device));
}

/// The first batch entry and head alone. Their rows come first in every tensor.
struct Part {
  Problem problem;
  Inputs inputs;
};

std::optional<Part> first_head(const Problem& problem, const Inputs& inputs) {
  if (!problem.lengths.empty() || problem.page > 0 || problem.e4m3) return std::nullopt;
  if (problem.backward && problem.group() > 1) return std::nullopt;
  Part part{problem, {}};
  part.problem.batch = part.problem.heads = 1;
  part.problem.own_kv_heads = 0;
  part.inputs = make_pass_inputs(part.problem, Distribution::normal, 1);
  const auto copy = [](const HostTensor& from, HostTensor& to) {
    std::memcpy(to.bytes.data(), from.bytes.data(), to.bytes.size());
  };
  copy(inputs.q, part.inputs.q);
  copy(inputs.k, part.inputs.k);
  copy(inputs.v, part.inputs.v);
  if (problem.backward) copy(inputs.d_o, part.inputs.d_o);
  complete_inputs(part.problem, part.inputs);
  return part;
}

bool begins_with(const decltype(HostTensor::bytes)& whole,
                 const decltype(HostTensor::bytes)& part) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

/// Every difference of one case, a line each.
std::string differences(const Rung& rung, const Case& c) {
  const Inputs inputs = make_pass_inputs(c.problem, c.inputs, 1);
  const LaunchPlan plan = plan_of(rung, c.problem);
  std::string text;
  const auto note = [&](const std::string& what, const std::string& said) {
    if (said.empty()) return;
    text += fmt::format("{} at {}, {}: {}\n", rung.id, to_string(c.problem), what, said);
  };
  const Shown first = run(plan, c.problem, inputs, kWays[0]);
  note(kWays[0].name, first.findings);
  for (std::size_t i = 1; i < kWays.size(); ++i) {
    Shown other = run(plan, c.problem, inputs, kWays[i]);
    // On Blackwell one lane waits for products while the others of its warp go on to the last
    // barrier. Whether they meet again before it depends on the order, and with that how often it
    // is executed.
    // Where thread blocks wait for their turn, it decides how often they ask.
    const bool waits = has(rung.capabilities, Capabilities::deterministic);
    if ((rung.family == Family::blackwell || waits) && kWays[i].reversed) other.counts.reset();
    note(kWays[i].name, difference(first, other));
  }
  // Against a cache, multiprocessors and heads decide how keys are shared out, so that sums are
  // rounded elsewhere.
  const bool splits = rung.family == Family::decode;
  Shown alone = run(plan_on(rung, c.problem, 1), c.problem, inputs, kWays[0]);
  alone.counts.reset();
  if (splits) alone.output = first.output, alone.lse = first.lse;
  note("one multiprocessor", difference(first, alone));
  if (const auto part = first_head(c.problem, inputs)) {
    const Shown head = run(plan_of(rung, part->problem), part->problem, part->inputs, kWays[0]);
    note("one head", head.findings);
    if (!splits && !begins_with(first.output, head.output)) note("one head", "another output");
  }
  return text;
}

std::vector<Case> cases_of(const Rung& rung, const Instance& instance) {
  RungConstraints constraints;
  constraints.head_dims = {{instance.head_dim, instance.tile.Br, instance.tile.Bc}};
  constraints.capabilities = rung.capabilities;
  constraints.dtype = rung.dtype;
  if (rung.family == Family::decode) constraints.few_queries = rung.most_queries();
  std::vector<Case> taken;
  for (Case& c : suite_cases(Suite::quick, constraints)) {
    const PlanResult plan = make_plan(rung, c.problem, vm_description());
    if (std::holds_alternative<LaunchPlan>(plan)) taken.push_back(std::move(c));
  }
  return taken;
}

}  // namespace

TEST_CASE("a rung is the same program on any number of threads, in any order, on any grid") {
  const char* const wanted = std::getenv("FA_DIFFERENTIAL");
  const bool all = wanted && std::string_view(wanted) == "all";
  struct Subject {
    const Rung* rung;
    Case content;
  };
  std::vector<Subject> subjects;
  std::size_t turn = 0;
  for (const Rung& rung : catalogue()) {
    const int head_dim = rung.head_dims().back();
    const std::vector<Case> cases = cases_of(rung, *rung.find_instance(head_dim, rung.dtype));
    REQUIRE(!cases.empty());
    // The smallest, and another one of the smaller half: each rung has its turn at another place.
    const std::size_t half = std::max<std::size_t>(1, cases.size() / 2);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (all || i == 0 || i == turn % half) subjects.push_back({&rung, cases[i]});
    }
    ++turn;
  }
  std::mutex mutex;
  std::string text;
  parallel_for(std::ssize(subjects), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Subject& s = subjects[static_cast<std::size_t>(i)];
      const std::string found = differences(*s.rung, s.content);
      const std::lock_guard lock(mutex);
      text += found;
    }
  });
  INFO(text);
  CHECK(text.empty());
}
