#include "harness/attention/mutants.h"

#include <map>
#include <set>
#include <string>

#include "harness/tests/attention/helpers.h"
#include "harness/tests/catch.h"

using namespace fa;

TEST_CASE("every mutant is rejected and the honest output passes, at one tolerance") {
  const std::vector<Problem> problems = mutant_problems();
  const std::vector<MutantResult> results = mutant_table(problems);
  CHECK(results.size() ==
        problems.size() * all_distributions().size() * (all_mutants().size() + 1));
  std::map<std::string, std::set<Distribution>> seen;
  for (const MutantResult& r : results) {
    CAPTURE(r.mutant, to_string(r.problem), to_string(r.distribution), r.ratio, r.finite);
    if (r.mutant == "honest") {
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
    if (std::string(mutant.name) == "no_max") {
      CHECK(seen[mutant.name] == std::set{Distribution::large});
    } else {
      CHECK(seen[mutant.name].size() == all_distributions().size());
    }
  }
  const std::string table = mutant_markdown(results);
  for (const Mutant& mutant : all_mutants()) {
    CHECK(contains(table, std::string("| `") + mutant.name + "` |"));
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
  for (const char* name : {"half_keys", "keys_permuted", "no_scale", "wrong_base", "no_rescale",
                           "no_normalisation", "rows_rotated", "stale_batch", "next_head_v",
                           "no_mask", "top_left_mask", "half_accumulator", "no_max"}) {
    CAPTURE(name);
    CHECK(reason(name, one).size() > 10);
  }
  for (const char* name : {"constant", "columns_rotated", "gain", "one_nan", "zero_tail"}) {
    CAPTURE(name);
    CHECK(reason(name, one).empty());
  }
}
