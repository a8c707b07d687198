// SPDX-License-Identifier: MIT
#include "harness/cli/app.h"

#include "harness/cli/bench_command.h"
#include "harness/cli/command.h"

namespace fa::cli {

std::vector<Entry> make_entries(const std::vector<std::string>& words) {
  std::vector<Entry> entries;
  entries.push_back({"list", "List the rungs", make_list_command()});
  entries.push_back(
      {"run", "Run one rung on one problem and check its output", make_run_command(words)});
  entries.push_back({"check", "Check rungs over a set of shapes and inputs", make_check_command()});
  entries.push_back({"explain",
                     "What bounds rungs, and counts of what they do, in the virtual machine",
                     make_explain_command(words)});
  entries.push_back(
      {"compare", "Two rungs' counts and times side by side", make_compare_command()});
  entries.push_back({"plan", "The launches that rungs make of a problem", make_plan_command()});
  entries.push_back(bench_entry({}, words));
  entries.push_back(
      {"tune", "Sweep a rung's tiles: time, registers, occupancy", make_tune_command(words)});
  entries.push_back(
      {"limits", "Time bare loops: what the card can do at best", make_limits_command(words)});
  entries.push_back({"completions", "Print completions for a shell", make_completions_command()});
  return entries;
}

Exit run_fa(const std::vector<std::string>& words) noexcept {
  return run_command_line(words, [&words] { return make_entries(words); });
}

}  // namespace fa::cli
