// SPDX-License-Identifier: MIT
#include "harness/attention/mutants.h"

#include <map>
#include <set>
#include <string>

#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

using namespace fa;

namespace {

using Distributions = std::set<Distribution>;

// Where no row's maximum grows by more than half can hold.
const Distributions kNarrow{Distribution::normal, Distribution::uniform, Distribution::needle};

// The distributions that show a mutant.
Distributions seen_with(const std::string& mutant) {
  if (mutant == "no_max")
    return {Distribution::large, Distribution::rising, Distribution::spike, Distribution::low,
            Distribution::high};
  if (mutant.ends_with("_sink") || mutant.starts_with("sink_")) return kNarrow;
  if (mutant == "max_from_zero") return {Distribution::low};
  if (mutant == "guard_finite_only") return {Distribution::spike};
  if (mutant.starts_with("guard_")) return {Distribution::rising, Distribution::spike};
  Distributions all(all_distributions().begin(), all_distributions().end());
  if (mutant == "half_accumulator") all.erase(Distribution::rising);
  return all;
}

}  // namespace

TEST_CASE("every mutant is rejected and the honest output passes, at one tolerance") {
  const std::vector<Problem> problems = mutant_problems();
  std::vector<MutantResult> results;
  for (const Problem& problem : problems) {
    for (const Distribution distribution : all_distributions()) {
      const std::vector<MutantResult> some = mutant_results(problem, distribution);
      results.insert(results.end(), some.begin(), some.end());
    }
  }
  std::map<std::string, Distributions> seen;
  for (const MutantResult& r : results) {
    CAPTURE(r.mutant, to_string(r.problem), to_string(r.distribution), r.ratio, r.finite);
    if (is_honest(r.mutant)) {
      CHECK(!r.rejected);
      CHECK(r.ratio < 0.97);
    } else if (r.invisible.empty()) {
      CHECK(r.rejected);
      seen[r.mutant].insert(r.distribution);
    }
  }
  // A fault may be out of reach of a problem, but some problem shows it in every distribution.
  for (const Mutant& mutant : all_mutants()) {
    CAPTURE(mutant.name);
    CHECK(seen[mutant.name] == seen_with(mutant.name));
  }
  // Elsewhere no fault of the guard shows: the needle among 8192 keys alone is large enough for a
  // repair, and not for an overflow.
  for (const MutantResult& r : results) {
    if (!r.mutant.starts_with("guard_")) continue;
    CAPTURE(r.mutant, to_string(r.problem), to_string(r.distribution), r.ratio);
    if (kNarrow.count(r.distribution) == 0) continue;
    if (r.distribution == Distribution::needle && r.problem.seq_kv == 8192 &&
        r.mutant.starts_with("guard_keeps_")) {
      continue;
    }
    CHECK(!r.rejected);
  }
  const std::string table = mutant_markdown(results);
  for (const Mutant& mutant : all_mutants()) {
    CHECK(contains(table, std::string("| `") + mutant.name + "` |"));
  }
}

TEST_CASE("wide scores show a missing guard, narrow ones do not") {
  const Problem p{.batch = 1, .heads = 2, .seq_q = 128, .seq_kv = 512, .head_dim = 128};
  for (const double spread : {1.0, 2.0, 4.0, 16.0}) {
    const Inputs inputs = make_inputs(p, {Distribution::normal, spread}, 1);
    const Verifier verifier(p, inputs);
    CAPTURE(spread);
    CHECK(verifier.check(guarded_output(p, inputs)).ok);
    for (const Mutant& mutant : all_mutants()) {
      if (!std::string(mutant.name).starts_with("guard_")) continue;
      CAPTURE(mutant.name);
      const CheckReport report = verifier.check(mutant_output(mutant, p, inputs));
      if (spread <= 2) CHECK(report.ok);
      if (spread == 16 && std::string(mutant.name) != "guard_finite_only") CHECK(!report.ok);
    }
  }
}

TEST_CASE("the reasons why a mutant cannot be seen") {
  auto reason = [](const char* name, const Problem& p, Distribution d = Distribution::normal) {
    for (const Mutant& m : all_mutants()) {
      if (std::string(m.name) == name) {
        const char* why = m.invisible(p, d);
        return std::string(why == nullptr ? "" : why);
      }
    }
    return std::string("no such mutant");
  };
  const Problem one{.batch = 1, .heads = 1, .seq_q = 16, .seq_kv = 1, .head_dim = 64};
  for (const char* name :
       {"half_keys", "keys_permuted", "no_scale", "wrong_base", "no_rescale", "no_normalisation",
        "rows_rotated", "stale_batch", "next_head_v", "no_mask", "top_left_mask",
        "half_accumulator", "no_max", "guard_removed", "guard_finite_only"}) {
    CAPTURE(name);
    CHECK(reason(name, one).size() > 10);
  }
  for (const char* name : {"constant", "columns_rotated", "gain", "one_nan", "zero_tail"}) {
    CAPTURE(name);
    CHECK(reason(name, one).empty());
  }
}
