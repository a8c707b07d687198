// SPDX-License-Identifier: MIT
#include "harness/cli/bench_command.h"

#include <fmt/format.h>

#include "harness/cli/arguments.h"
#include "harness/cli/measure.h"
#include "harness/cli/problem_options.h"
#include "harness/cli/table.h"
#include "harness/results/comparison.h"

namespace fa::cli {
namespace {

const std::vector<std::int64_t> kDefaultSeqs{512, 1024, 2048, 4096, 8192, 16384};

Table row_table(const Problem& problem, const std::vector<Row>& rows) {
  using enum Table::Align;
  Table table({{"id", left},
               {"variant", left},
               {"ms"},
               {"p10"},
               {"p90"},
               {rate_unit(problem)},
               {"sustained"},
               {"MHz"},
               {"W"},
               {"status", left}});
  const int places = problem.seq_q <= kFewQueries ? 0 : 1;
  for (const Row& row : rows) {
    std::optional<double> median, p10, p90, rate, sustained;
    if (const auto& times = row.time_ms) {
      median = times->median, p10 = times->p10, p90 = times->p90;
      rate = rate_at(row, *median);
      if (times->back_to_back) sustained = rate_at(row, *times->back_to_back);
    }
    table.add({row.key.id, row.key.variant, number_cell(median, 4), number_cell(p10, 4),
               number_cell(p90, 4), number_cell(rate, places), number_cell(sustained, places),
               number_cell(row.clock_mhz, 0), number_cell(row.power_w, 0),
               status_cell(row.status, row.reason)});
  }
  return table;
}

class BenchCommand final : public Command {
 public:
  BenchCommand(std::vector<Peer> peers, std::vector<std::string> words) {
    options_.peers = std::move(peers);
    options_.argv = std::move(words);
  }

  void declare(CLI::App& app) override {
    add_rungs(app, words_, "all, or none (peers alone); default: all of --dtype");
    problem_.declare(app);
    add_choice<std::optional<Dtype>>(
        app, "--dtype", options_.dtype,
        {{to_string(Dtype::f16), Dtype::f16},
         {to_string(Dtype::f32), Dtype::f32},
         {to_string(Dtype::bf16), Dtype::bf16}},
        "Only rungs that take it (default: those that are named; float16 when none is)");
    add_no_ablations(app, no_ablations_);
    add_measure_options(app, options_);
    printer_.declare(app);
  }

  Exit execute() override {
    const bool none = words_.size() == 1 && words_.front() == "none";
    if (none && options_.peers.empty()) {
      throw UsageError("'none' leaves nothing to measure: there are no peers here");
    }
    if (words_.empty() && !options_.dtype) options_.dtype = Dtype::f16;
    if (!none) select();
    options_.ablations = !no_ablations_;
    options_.problems = problem_.problems();
    options_.inputs = problem_.inputs();
    options_.seed = problem_.seed();
    if (!none) require_some_support(options_);
    require_results_file("--json", options_.json, options_.overwrite);
    return measure_on_gpu(options_, [this](const Problem& problem, const std::vector<Row>& rows) {
      printer_.say("\n");
      printer_.print(row_table(problem, rows), "problem", describe(problem, options_.inputs));
    });
  }

 private:
  void select() {
    options_.rungs = select_rungs(words_);
    if (!options_.dtype) return;
    std::erase_if(options_.rungs,
                  [this](const Rung* rung) { return !rung->takes(*options_.dtype); });
    if (options_.rungs.empty()) {
      throw UsageError(fmt::format("none of the rungs takes {}", to_string(*options_.dtype)));
    }
  }

  BenchOptions options_;
  ProblemOptions problem_{{.shape = {.batch = 16, .heads = 16},
                           .seqs = kDefaultSeqs,
                           .dim_default = {},
                           .seed = true,
                           .cache = true}};
  TablePrinter printer_;
  std::vector<std::string> words_;
  bool no_ablations_ = false;
};

}  // namespace

Entry bench_entry(std::vector<Peer> peers, std::vector<std::string> words) {
  return {"bench", "Verify and time rungs on the GPU",
          std::make_unique<BenchCommand>(std::move(peers), std::move(words))};
}

}  // namespace fa::cli
