// SPDX-License-Identifier: MIT
// fa explain: what rungs do, counted in the virtual machine.
#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/bound.h"
#include "harness/cli/command.h"
#include "harness/cli/count.h"
#include "harness/cli/count_table.h"
#include "harness/cli/margin.h"
#include "harness/cli/problem_options.h"
#include "harness/cli/table.h"
#include "harness/cli/terminal.h"
#include "harness/io/interrupt.h"
#include "harness/measure/identity.h"
#include "harness/results/counts.h"
#include "harness/results/json_file.h"

namespace fa::cli {
namespace {

/// In operations; a refused item costs nothing.
double cost_of(const Item& item) {
  return item.refused.empty() ? item.problem().flops() : 0;
}

std::string file_of(const Rung& rung) {
  return std::string(rung.name) + ".cu";
}

std::vector<RowLine> row_lines(const LineTable& table) {
  std::vector<RowLine> lines;
  if (table.elsewhere.total_instructions() > 0) lines.push_back({0, row_counts(table.elsewhere)});
  for (const auto& [line, counts] : table.lines) {
    if (counts.total_instructions() > 0) lines.push_back({line, row_counts(counts)});
  }
  return lines;
}

class ExplainCommand final : public Command {
 public:
  explicit ExplainCommand(std::vector<std::string> words) : argv_(std::move(words)) {}

  void declare(CLI::App& app) override {
    add_rungs(app, words_, "or all")->required();
    problem_.declare(app);
    app.add_flag("--ablations", ablations_, "Each rung's other tiles too")
        ->excludes(add_tile(app, tile_));
    app.add_flag("--by-line", by_line_, "The kernel's source with the counts of each line");
    CLI::Option* json =
        app.add_flag("--json", json_, "Print a result file with a row for each rung");
    CLI::Option* save =
        add_file(app, "--save", save_, "Write that file, row by row as they are finished");
    app.add_flag("--overwrite", overwrite_, "Start the --save file afresh")->needs(save);
    add_vm_options(app, vm_);
    printer_.declare(app)->excludes(json);
  }

  Exit execute() override {
    require_results_file("--save", save_, overwrite_);
    Counting counting(vm_, problem_.inputs());
    const std::vector<Item> items = select(counting.device().description());
    const FileIdentity identity{generator_json(source_state(), argv_),
                                device_json(counting.device(), nullptr),
                                policy_json(std::nullopt, 1, counting.device(), nullptr)};
    std::optional<ResultsFile> file;
    if (!save_.empty()) file.emplace(save_, identity, overwrite_);
    std::vector<Row> rows;
    try {
      const Exit result = count_all(counting, items, rows, file);
      print_document(identity, rows);
      return result;
    } catch (...) {
      if (!rows.empty()) print_document(identity, rows);
      throw;
    }
  }

 private:
  /// Rows of what is finished, whatever ends the work. An item that the host has no memory for is
  /// a row, too, unless it is all there is.
  Exit count_all(Counting& counting, const std::vector<Item>& items, std::vector<Row>& rows,
                 std::optional<ResultsFile>& file) {
    Exit result = Exit::ok;
    std::string no_memory;
    Progress progress;
    expect(progress, items);
    const std::string run = utc_now();
    try {
      for (const Item& item : items) {
        std::string reason;
        Counted counted{.item = item, .verdict = {}, .launches = {}, .total = {}};
        try {
          count(counting, counted, progress);
        } catch (const OutOfMemory& error) {
          if (items.size() == 1) throw;
          reason = error.what();
        }
        if (item.refused.empty() && reason.empty() && !counted.verdict.ok) result = Exit::wrong;
        if (no_memory.empty()) no_memory = reason;
        rows.push_back(row_of(counted, run, reason));
        if (!json_) print(counted, reason);
        std::fflush(stdout);  // before the file, which may fail
        if (file) file->put(std::span(&rows.back(), 1));
      }
    } catch (const io::Interrupted& interrupted) {
      progress.clear();
      print_note(interrupted.note(fmt::format("{} of {} counted", rows.size(), items.size())));
      return Exit::interrupted;
    }
    if (no_memory.empty()) return result;
    print_error(no_memory);
    return result == Exit::wrong ? result : Exit::environment;
  }

  void print_document(const FileIdentity& identity, const std::vector<Row>& rows) const {
    if (json_) fmt::print("{}", document_text(results_document(identity, rows)));
  }

  static void expect(Progress& progress, const std::vector<Item>& items) {
    double cost = 0;
    for (const Item& item : items) cost += cost_of(item);
    progress.expect(items.size(), cost);
  }

  static void count(Counting& counting, Counted& counted, Progress& progress) {
    const Item& item = counted.item;
    const double cost = cost_of(item);
    progress.show(fmt::format("{} on {}", item.name, to_string(item.problem())));
    if (item.refused.empty()) counted = counting.count(item);
    progress.advance(cost);
    progress.clear();
  }

  /// `no_memory`: why the item was not counted.
  Row row_of(const Counted& counted, const std::string& run, const std::string& no_memory) const {
    if (!no_memory.empty()) {
      Row row = empty_row(counted.item, run);
      row.settle(Status::out_of_memory, no_memory);
      return row;
    }
    Row row = counted_row(counted, run);
    if (by_line_ && counted.verdict.ok) {
      row.lines = row_lines(by_line(counted.launches, file_of(*counted.item.rung)));
    }
    return row;
  }

  std::vector<Item> select(const DeviceDescription& machine) const {
    std::vector<Item> items;
    bool any = false;
    const std::vector<const Rung*> rungs = select_rungs(words_);
    for (const Problem& shape : problem_.problems()) {
      for (const Rung* rung : rungs) {
        if (left_out(*rung, rungs, shape)) continue;
        Problem problem = shape;
        set_types(*rung, problem);
        items.push_back(rung_item(*rung, problem, tile_, machine, problem_.inputs()));
        if (!ablations_) continue;
        const Instance* own = items.back().instance;
        for (const Instance* instance :
             rung->find_instances(problem.head_dim, problem.dtype, false)) {
          if (instance == own) continue;
          items.push_back(rung_item(*rung, *instance, problem, machine, problem_.inputs()));
        }
      }
    }
    for (const Item& item : items) any |= item.refused.empty();
    if (any) return items;
    if (items.empty()) throw UsageError(kAllLeftOut);
    const Item& first = items.front();
    throw UsageError(with_example(first.refused, *first.rung, first.problem()));
  }

  void print(const Counted& counted, const std::string& no_memory) {
    const Item& item = counted.item;
    const std::string what =
        fmt::format("{} on {}", item.name, describe(item.problem(), problem_.inputs()));
    if (!item.refused.empty() || !no_memory.empty()) {
      const char* status = no_memory.empty() ? "unsupported" : "out of memory";
      printer_.say(fmt::format("{}\n{}: {}\n\n", what, coloured(status, Colour::yellow),
                               no_memory.empty() ? item.refused : no_memory));
      return;
    }
    if (!counted.verdict.ok) {
      printer_.say(fmt::format("{}\n{}: {}\n{}\n", what, coloured("wrong", Colour::red),
                               counted.verdict.reason, text_of(counted.verdict.findings)));
      return;
    }
    const std::optional<RowBound> bound = bound_of(counted);
    printer_.say(what + "\n" + to_string(bound, item.plan));
    for (std::size_t i = 0; i < counted.launches.size(); ++i) {
      const Launch& step = item.plan.launches.at(i);
      printer_.say(fmt::format(
          "{}: grid {} x {} x {}, {} threads, {} bytes of dynamic shared memory\n", step.entry,
          step.grid.x, step.grid.y, step.grid.z, step.block, step.dynamic_shared));
      if (bound && bound->launches.size() > 1) printer_.say(to_string(bound->launches[i]));
    }
    printer_.say(fmt::format("{}, counted in the PTX virtual machine\n",
                             coloured("correct", Colour::green)));
    print_counts(printer_, counted.total, what);
    if (by_line_) {
      printer_.say("\n" + margin(by_line(counted.launches, file_of(*item.rung))));
    }
    printer_.say("\n");
  }

  std::vector<std::string> words_, argv_;
  ProblemOptions problem_{{.shape = {},
                           .seqs = {},
                           .dim_default = {},
                           .seq_kv = true,
                           .dims = true,
                           .cache = true,
                           .types = true}};
  TablePrinter printer_;
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
