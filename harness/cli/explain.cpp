// fa explain: what rungs do, counted in the virtual machine.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "harness/bench/counts.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/count.h"
#include "harness/cli/count_table.h"
#include "harness/cli/margin.h"
#include "harness/cli/terminal.h"
#include "harness/io/interrupt.h"

namespace fa::cli {
namespace {

std::string file_of(const Rung& rung) {
  return std::string(rung.name) + ".cu";
}

Json lines_json(const LineTable& table) {
  Json lines = Json::array();
  for (const auto& [line, counts] : table.lines) {
    if (counts.total_instructions() == 0) continue;
    lines.push_back({{"line", line}, {"counts", counts_json(counts)}});
  }
  return lines;
}

class ExplainCommand final : public Command {
 public:
  explicit ExplainCommand(std::vector<std::string> words) : argv_(std::move(words)) {}

  void declare(CLI::App& app) override {
    app.add_option("rungs", words_, "Rungs: ids, names, a family, or all")->required();
    problem_.declare(app, true);
    app.add_option("--tile", tile_, "Another instance of the rung, such as 64x32w2 (see fa list)")
        ->type_name("TILE");
    app.add_flag("--ablations", ablations_, "Each rung's other tiles too");
    app.add_flag("--by-line", by_line_, "The kernel's source with the counts of each line");
    app.add_flag("--json", json_, "Print a result file with a row for each rung");
    add_file(app, "--save", save_, "Write that file, row by row as they are finished");
    app.add_flag("--overwrite", overwrite_, "Start the --save file afresh");
    add_vm_options(app, vm_);
  }

  Exit execute() override {
    require_results_file("--save", save_, overwrite_);
    Counting counting(vm_, problem_.inputs());
    const std::vector<BenchItem> items = select(counting.device().description());
    const FileIdentity identity{generator_json(source_state(), argv_),
                                device_json(counting.device()), vm_policy_json(1)};
    std::optional<ResultsFile> file;
    if (!save_.empty()) file.emplace(save_, identity, overwrite_);
    std::vector<Json> rows;
    Exit result = Exit::ok;
    try {
      const std::string run = utc_now();
      for (const BenchItem& item : items) {
        const Counted counted = count(counting, item);
        if (item.refused.empty() && !counted.verdict.ok) result = Exit::wrong;
        rows.push_back(row_of(counted, run));
        if (!json_) print(counted);
        std::fflush(stdout);  // before the file, which may fail
        if (file) file->put(std::span(&rows.back(), 1));
      }
    } catch (const io::Interrupted&) {
      print_note(fmt::format("interrupted: {} of {} counted", rows.size(), items.size()));
      result = Exit::interrupted;
    }
    if (json_) fmt::print("{}\n", results_document(identity, rows).dump(1));
    return result;
  }

 private:
  static Counted count(Counting& counting, const BenchItem& item) {
    Progress progress;
    progress.show(fmt::format("{} on {}", item.name, to_string(item.problem)));
    if (item.refused.empty()) return counting.count(item);
    return {.item = item, .verdict = {}, .launches = {}, .total = {}};
  }

  Json row_of(const Counted& counted, const std::string& run) const {
    Json row = counted_row(counted, run);
    if (by_line_ && counted.verdict.ok) {
      row["lines"] = lines_json(by_line(counted.launches, file_of(*counted.item.rung)));
    }
    return row;
  }

  std::vector<BenchItem> select(const DeviceDescription& machine) const {
    std::vector<BenchItem> items;
    bool any = false;
    for (const Problem& shape : problem_.problems()) {
      for (const Rung* rung : select_rungs(words_)) {
        Problem problem = shape;
        problem.dtype = rung->dtype;
        items.push_back(rung_item(*rung, problem, tile_, machine));
        if (!ablations_ || !tile_.empty()) continue;
        const Instance* own = items.back().instance;
        for (const Instance* instance : rung->find_instances(problem.head_dim, false)) {
          if (instance == own) continue;
          items.push_back(rung_item(*rung, problem, to_string(instance->tile), machine));
        }
      }
    }
    for (BenchItem& item : items) {
      item.inputs = problem_.inputs();
      any |= item.refused.empty();
    }
    if (!any) throw UsageError(items.front().refused);
    return items;
  }

  void print(const Counted& counted) const {
    const BenchItem& item = counted.item;
    fmt::print("{} on {}\n", item.name, describe(item.problem, problem_.inputs()));
    if (!item.refused.empty()) {
      fmt::print("{}: {}\n\n", coloured("unsupported", Colour::yellow), item.refused);
      return;
    }
    if (!counted.verdict.ok) {
      fmt::print("{}: {}\n{}\n", coloured("wrong", Colour::red), counted.verdict.reason,
                 counted.verdict.details);
      return;
    }
    for (const Launch& step : item.plan.launches) {
      fmt::print("{}: grid {} x {} x {}, {} threads, {} bytes of dynamic shared memory\n",
                 step.entry, step.grid.x, step.grid.y, step.grid.z, step.block,
                 step.dynamic_shared);
    }
    fmt::print("{}, counted in the PTX virtual machine\n{}", coloured("correct", Colour::green),
               count_table(counted.total));
    if (by_line_) fmt::print("\n{}", margin(by_line(counted.launches, file_of(*item.rung))));
    fmt::print("\n");
  }

  std::vector<std::string> words_, argv_;
  CountProblem problem_;
  std::string tile_;
  VmOptions vm_;
  std::filesystem::path save_;
  bool ablations_ = false, by_line_ = false, json_ = false, overwrite_ = false;
};

}  // namespace

std::unique_ptr<Command> make_explain_command(std::vector<std::string> words) {
  return std::make_unique<ExplainCommand>(std::move(words));
}

}  // namespace fa::cli
