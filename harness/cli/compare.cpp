// fa compare: two rungs' counts, and their committed times, side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "harness/bench/results.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/count.h"
#include "harness/cli/count_table.h"
#include "harness/cli/terminal.h"

namespace fa::cli {
namespace {

namespace fs = std::filesystem;

/// "05" or "05@128x64w4".
struct Side {
  const Rung* rung = nullptr;
  std::string tile;
  std::string label;
};

Side parse_side(const std::string& word) {
  const std::size_t at = word.find('@');
  Side side{.rung = &select_rung(word.substr(0, at)), .tile = {}, .label = {}};
  if (at != std::string::npos) side.tile = word.substr(at + 1);
  side.label = std::string(side.rung->name) + (side.tile.empty() ? "" : "@" + side.tile);
  return side;
}

/// plots/results/*/ladder.json of the source tree.
std::vector<fs::path> committed_results() {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& folder :
       fs::directory_iterator(source_path("plots/results"), error)) {
    const fs::path file = folder.path() / "ladder.json";
    if (fs::exists(file, error)) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Rows of one side that have a time.
std::vector<const Json*> timed_rows(const Json& document, const Side& side) {
  std::vector<const Json*> rows;
  for (const Json& row : document["rows"]) {
    if (row["kind"] != "rung" || row["id"] != std::string(side.rung->id)) continue;
    const bool wanted =
        side.tile.empty() ? !row.value("ablation", false) : row["variant"] == side.tile;
    if (wanted && row.contains("tflops") && row["tflops"].is_number()) rows.push_back(&row);
  }
  return rows;
}

class CompareCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("rungs", words_, "Two rungs, each RUNG or RUNG@TILE")->required()->expected(2);
    problem_.declare(app, false);
    add_file(app, "--results", results_,
             "Times of this file (default: the committed plots/results/*/ladder.json)");
    add_vm_options(app, vm_);
  }

  Exit execute() override {
    const Side first = parse_side(words_[0]);
    const Side second = parse_side(words_[1]);
    std::vector<fs::path> files = committed_results();
    if (!results_.empty()) {
      std::error_code error;
      if (!fs::exists(results_, error)) {
        throw UsageError(fmt::format("--results: there is no file '{}'", results_.string()));
      }
      files = {results_};
    }
    std::vector<Json> documents;
    for (const fs::path& file : files) documents.push_back(read(file));
    Counting counting(vm_, problem_.inputs());
    const Counted left = count(counting, first);
    const Counted right = count(counting, second);
    fmt::print("{}\nCounted in the PTX virtual machine:\n{}",
               describe(left.item.problem, problem_.inputs()),
               compare_table(first.label, left.total, second.label, right.total));
    for (std::size_t i = 0; i < files.size(); ++i) {
      print_times(files[i], documents[i], first, second);
    }
    return Exit::ok;
  }

 private:
  Counted count(Counting& counting, const Side& side) const {
    Problem problem = problem_.problems().front();
    problem.dtype = side.rung->dtype;
    BenchItem item = rung_item(*side.rung, problem, side.tile, counting.device().description());
    if (!item.refused.empty()) throw UsageError(item.refused);
    Counted counted = counting.count(std::move(item));
    if (!counted.verdict.ok) throw KernelFault(counted.verdict.reason, counted.verdict.details);
    return counted;
  }

  /// Before anything is counted, so that a wrong file costs no time.
  static Json read(const fs::path& path) {
    try {
      if (std::optional<Json> document = read_results(path)) return std::move(*document);
    } catch (const ForeignResults&) {
      // Its advice is for a file that is to be written.
    }
    throw UsageError(fmt::format("'{}' is not a result file of fa bench", path.string()));
  }

  void print_times(const fs::path& path, const Json& document, const Side& first,
                   const Side& second) const {
    const std::vector<const Json*> left = timed_rows(document, first);
    const std::vector<const Json*> right = timed_rows(document, second);
    std::string table;
    for (const Json* a : left) {
      for (const Json* b : right) {
        const RowKey here = key_of(*a), there = key_of(*b);
        if (!(here.problem == there.problem && here.inputs == there.inputs)) continue;
        const double x = (*a)["tflops"];
        const double y = (*b)["tflops"];
        table += fmt::format("{:54}{:>12.1f}{:>12.1f}{:>10.3f}\n",
                             describe(here.problem, here.inputs), x, y, y / x);
      }
    }
    if (table.empty()) return;
    fmt::print("\nTFLOPS measured on {}, not on this machine ({}, commit {}):\n{}",
               document["device"].value("name", "?"), path.lexically_normal().string(),
               document["generator"].value("git_sha", "?").substr(0, 9), table);
  }

  std::vector<std::string> words_;
  CountProblem problem_;
  fs::path results_;
  VmOptions vm_;
};

}  // namespace

std::unique_ptr<Command> make_compare_command() {
  return std::make_unique<CompareCommand>();
}

}  // namespace fa::cli
