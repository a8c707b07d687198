// SPDX-License-Identifier: MIT
// The vote by which a warp decides whether its rows must be rescaled is what keeps such a rung
// right: with the vote made false, the check rejects the rung.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/attention/backward.h"
#include "harness/attention/metamorphic.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"
#include "harness/tests/helpers.h"
#include "harness/vm/tests/sync_sites.h"

using namespace fa_test;

namespace {

/// Whether the rung takes no maximum after the first key block: 28 is the first such rung.
bool is_guarded(const Rung& rung) {
  return rung.family == Family::hopper && rung.id >= "28";
}

using Site = ptxvm_test::SyncSite;

std::string ptx_of(const Rung& rung) {
  return ptxvm_test::read_text(fmt::format("{}/{}.ptx", FA_PTX_DIR, rung.name));
}

/// Votes "does any lane need it?" of an entry, in order.
std::vector<Site> votes(const Rung& rung, const std::string& text, std::string_view entry) {
  const std::string name = std::string(rung.name);
  return ptxvm_test::find_sites(ptxvm::Module::parse(text, name + ".ptx"), text,
                                {std::string(entry)}, name + ".cu", {"vote.sync.any"});
}

/// The text in which the vote always says no: its result becomes a comparison that is false.
std::string never(const std::string& text, const Site& vote) {
  const std::string instruction = text.substr(vote.begin, vote.end - vote.begin);
  const std::size_t first = instruction.find('%');
  const std::string result = instruction.substr(first, instruction.find(',') - first);
  std::string changed = text;
  // On one line, so that every other line keeps its number.
  return changed.replace(vote.begin, vote.end - vote.begin,
                         fmt::format("setp.ne.s32 {}, 0, 0;", result));
}

Problem problem_of(const Rung& rung, int head_dim) {
  Problem problem{.batch = 1, .heads = 2, .seq_q = 128, .seq_kv = 640, .head_dim = head_dim};
  const Tile tile = rung.find_instance(head_dim, rung.dtype)->tile;
  problem.seq_q = std::min<std::int64_t>(tile.Br, rung.most_queries());
  problem.seq_kv = (problem.seq_kv + tile.Bc - 1) / tile.Bc * tile.Bc;
  set_types(rung, problem);
  problem.lse = has(rung.capabilities, Capabilities::lse);
  return problem;
}

/// Where the guard has to act: whole blocks of keys, and where the rung can, a last block that is
/// masked and not whole.
std::vector<Problem> problems_of(const Rung& rung, int head_dim) {
  std::vector<Problem> problems{problem_of(rung, head_dim)};
  if (has(rung.capabilities, Capabilities::causal)) {
    problems.push_back(problems.front());
    problems.back().causal = true;
    if (has(rung.capabilities, Capabilities::ragged)) problems.back().seq_kv += 3;
  }
  return problems;
}

/// Whether the check accepts the rung with this PTX, or with its own.
bool passes(const Rung& rung, const Problem& problem, const Inputs& inputs,
            const Verifier& verifier, const std::shared_ptr<PtxLibrary>& ptx = kernels()) {
  VmDevice device({.checkers = false, .ptx = ptx, .max_warp_steps = 1 << 22});
  device.load(problem, inputs);
  const LaunchPlan plan = plan_of(rung, problem);
  const Verdict verdict = pass_gate(
      device, [&] { device.launch(plan); }, verifier, promised(plan));
  return verdict.ok;
}

bool passes(const Rung& rung, const Problem& problem, Distribution distribution,
            const std::shared_ptr<PtxLibrary>& ptx = kernels()) {
  const auto given = judged(problem, distribution);
  return passes(rung, problem, given->inputs, given->verifier, ptx);
}

/// Whether the check accepts the rung where scores grow, so that a guard has to act.
bool passes_all(const Rung& rung, const std::vector<Problem>& problems,
                const std::shared_ptr<PtxLibrary>& ptx = kernels()) {
  for (const Problem& problem : problems) {
    // Some scores are too large for half only, others for FP32: a vote may be for either.
    for (const Distribution each : {Distribution::rising, Distribution::spike}) {
      if (!passes(rung, problem, each, ptx)) return false;
    }
  }
  return true;
}

/// Normal inputs, but each row of Q is the key in `late`, so long that its own score lies by
/// `from` to `to` powers of two above about what the others reach, row by row in even steps.
Inputs spikes_of_all_heights(const Problem& problem, std::int64_t late, double from, double to) {
  Inputs inputs = make_inputs(problem, Distribution::normal, 1);
  const std::int64_t d = problem.head_dim;
  for (std::int64_t row = 0; row < problem.q_rows(); ++row) {
    const std::int64_t head = row / problem.seq_q / problem.group();
    const std::int64_t key = (head * problem.seq_kv + late) * d;
    double square = 0;
    for (std::int64_t c = 0; c < d; ++c) square += std::pow(inputs.k.at(key + c), 2);
    const double share = static_cast<double>(row) / static_cast<double>(problem.q_rows());
    const double largest = 2.5 / std::sqrt(square);  // of 128 other keys, of this key's own score
    const double score = (from + share * (to - from)) / (1 - largest);
    const double factor = score / (square * problem.scale() * std::numbers::log2e);
    for (std::int64_t c = 0; c < d; ++c)
      inputs.q.set(row * d + c, round_to_half(static_cast<float>(factor) * inputs.k.at(key + c)));
  }
  return inputs;
}

}  // namespace

// Where P, or the sum of a row, reaches the last powers of two that FP32 has, 2^-e is no normal
// number any more.
TEST_CASE("a spike of any height is followed, also where a sum is nearly infinite") {
  for (const Rung& rung : catalogue()) {
    if (!is_guarded(rung)) continue;
    for (const int head_dim : rung.head_dims()) {
      Problem problem = problem_of(rung, head_dim);
      problem.heads = 4;
      const Inputs inputs = spikes_of_all_heights(problem, problem.seq_kv - 5, 110, 145);
      CAPTURE(rung.name, head_dim);
      CHECK(passes(rung, problem, inputs, Verifier(problem, inputs)));
    }
  }
}

TEST_CASE("every rung follows scores that grow along the row, slowly and at once") {
  for (const Rung& rung : catalogue()) {
    for (const int head_dim : rung.head_dims()) {
      CAPTURE(rung.name, head_dim);
      CHECK(passes_all(rung, problems_of(rung, head_dim)));
    }
  }
}

TEST_CASE("a rung without the vote of its guard is rejected") {
  const Folder folder;
  for (const Rung& rung : catalogue()) {
    // 37 and 38 have the guard of 36, and votes for rows that have seen no key yet.
    if (!is_guarded(rung) || has(rung.capabilities, Capabilities::windowed)) continue;
    const std::string text = ptx_of(rung);
    for (const int head_dim : rung.head_dims()) {
      const std::vector<Problem> problems = problems_of(rung, head_dim);
      const std::string entry = plan_of(rung, problems.front()).launches.front().entry;
      const std::vector<Site> sites = votes(rung, text, entry);
      CAPTURE(rung.name, head_dim);
      CHECK(!sites.empty());
      for (const Site& site : sites) {
        CAPTURE(site.key(), site.line);
        folder.write(fmt::format("{}.ptx", rung.name), never(text, site));
        const auto mutant = std::make_shared<PtxLibrary>(folder.path);
        CHECK(!passes_all(rung, problems, mutant));
        // Narrow scores never take the branch.
        CHECK(passes(rung, problems.front(), Distribution::normal, mutant));
      }
    }
  }
}

TEST_CASE("rows without a spike keep their bits, whatever the other rows of their warp need") {
  for (const Rung& rung : catalogue()) {
    if (has(rung.capabilities, Capabilities::backward)) continue;  // its rows are given their LSE
    for (const int head_dim : rung.head_dims()) {
      Problem problem = problem_of(rung, head_dim);
      problem.lse = false;
      set_types(rung, problem);
      if (problem.seq_q == 1) continue;  // no other row
      for (const bool causal : {false, true}) {
        if (causal && !has(rung.capabilities, Capabilities::causal)) continue;
        problem.causal = causal;
        const LaunchPlan plan = plan_of(rung, problem);
        const Relation relation = untouched_rows(
            problem, make_inputs(problem, Distribution::normal, 1),
            make_inputs(problem, Distribution::spike, 1), [&](const Problem& p, const Inputs& in) {
              VmDevice device({.checkers = false, .ptx = kernels()});
              device.load(p, in);
              device.launch(plan);
              return device.download_output();
            });
        CAPTURE(rung.name, head_dim, causal, relation.reason);
        CHECK(relation.ok);
      }
    }
  }
}
