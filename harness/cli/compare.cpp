// SPDX-License-Identifier: MIT
// fa compare: two rungs' counts and times, or two result files, side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/bound.h"
#include "harness/cli/command.h"
#include "harness/cli/count.h"
#include "harness/cli/count_table.h"
#include "harness/cli/problem_options.h"
#include "harness/cli/table.h"
#include "harness/environment/build.h"
#include "harness/io/file.h"
#include "harness/results/comparison.h"
#include "harness/results/results.h"

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
  if (at != std::string::npos) {
    side.tile = parse_tile(fmt::format("rung '{}': tile", word), word.substr(at + 1));
  }
  side.label = std::string(side.rung->name) + (side.tile.empty() ? "" : "@" + side.tile);
  return side;
}

bool is_of(const Row& row, const Side& side) {
  if (row.key.kind != RowKind::rung || row.key.id != side.rung->id) return false;
  return side.tile.empty() ? !row.ablation : row.key.variant == side.tile;
}

struct File {
  fs::path path;
  bool committed = false;  ///< comes with the repository
  ResultsDocument content;
  int runs = 1;  ///< that it stands for
};

std::string text_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "?";
}

/// As one would write it in the source tree.
std::string short_name(const fs::path& path) {
  const fs::path relative = path.lexically_relative(source_path(""));
  const bool inside = !relative.empty() && *relative.begin() != "..";
  return (inside ? relative : path).lexically_normal().string();
}

std::string describe(const File& file) {
  return fmt::format("{}{} ({}{}, commit {})", text_at(file.content.identity.device, "name"),
                     file.committed ? ", not on this machine" : "", short_name(file.path),
                     file.runs > 1 ? fmt::format(", one of {} runs", file.runs) : "",
                     text_at(file.content.identity.generator, "git_sha").substr(0, 9));
}

/// The result files with times below a folder, in order of their paths.
std::vector<File> files_below(const fs::path& folder, bool committed) {
  std::vector<fs::path> paths;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(folder, options, error)) {
    if (each.is_regular_file(error) && each.path().extension() == ".json") {
      paths.push_back(each.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<File> files;
  for (const fs::path& path : paths) {
    try {
      std::optional<ResultsDocument> document = read_results(path);
      if (document) files.push_back({path, committed, std::move(*document)});
    } catch (const ForeignResults&) {
      // Limits, profiles and other documents live there, too.
    } catch (const io::FileError&) {
      // Nobody asked for this one.
    }
  }
  return files;
}

/// Of the runs in one folder, which have the same rows, the first stands for all.
std::vector<File> one_run_each(std::vector<File> files) {
  std::vector<File> kept;
  for (File& file : files) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const File& other) {
      return other.path.parent_path() == file.path.parent_path() && !file.content.rows.empty() &&
             std::any_of(other.content.rows.begin(), other.content.rows.end(),
                         [&](const Row& row) { return row.key == file.content.rows.front().key; });
    });
    if (same == kept.end()) {
      kept.push_back(std::move(file));
    } else {
      ++same->runs;
    }
  }
  return kept;
}

/// Committed results, then the reader's own.
std::vector<File> all_results() {
  std::vector<File> files = files_below(source_path("plots/results"), true);
  const char* named = std::getenv("FA_RUNS_DIR");
  const fs::path runs = named && *named ? fs::path(named) : source_path("runs");
  for (File& own : files_below(runs, false)) files.push_back(std::move(own));
  return one_run_each(std::move(files));
}

/// A file that is named must be one.
File read_file(const std::string& path) {
  if (path.empty()) throw UsageError("--results '' is not the name of a file");
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw UsageError(fmt::format("--results: there is no file '{}'", path));
  }
  try {
    if (std::optional<ResultsDocument> document = read_results(path)) {
      return {path, false, std::move(*document)};
    }
  } catch (const ForeignResults&) {
    // Its advice is for a file that is to be written.
  } catch (const io::FileError& unread) {
    throw UsageError(fmt::format("--results: {}", unread.what()));
  }
  throw UsageError(fmt::format("'{}' is not a result file of fa bench", path));
}

std::vector<const Row*> rows_of(const File& file, const auto& wanted) {
  std::vector<const Row*> rows;
  for (const Row& row : file.content.rows) {
    if (wanted(row)) rows.push_back(&row);
  }
  return rows;
}

class CompareCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("rungs", words_,
                   "Two rungs, each RUNG or RUNG@TILE; with two files any number, default all");
    problem_.declare(app);
    app.add_option("--results", results_,
                   "Times of this file (default: every file of plots/results and of runs, or of "
                   "FA_RUNS_DIR); of two files: their times side by side, nothing is counted")
        ->type_name("FILE")
        ->expected(1, 2);
    add_vm_options(app, vm_);
    printer_.declare(app);
    app_ = &app;
  }

  Exit execute() override { return results_.size() == 2 ? compare_files() : compare_rungs(); }

 private:
  Exit compare_rungs() {
    if (words_.size() != 2) {
      throw UsageError(
          fmt::format("rungs: {} given, two are needed: fa compare 05 06", words_.size()));
    }
    const Side first = parse_side(words_[0]);
    const Side second = parse_side(words_[1]);
    if (first.label == second.label) {
      throw UsageError(
          fmt::format("rungs: {} is named twice; fa compare {} {}@TILE takes another tile of it",
                      first.label, first.rung->id, first.rung->id));
    }
    // Before anything is counted, so that a wrong file costs no time.
    std::vector<File> files;
    if (results_.empty()) {
      files = all_results();
    } else {
      files.push_back(read_file(results_.front()));
    }
    Counting counting(vm_, problem_.inputs());
    const Counted left = count(counting, first);
    const Counted right = count(counting, second);
    const std::string problem = describe_both(left, right);
    const bool csv = printer_.format() == TableFormat::csv;
    printer_.say(problem + "\n");
    for (const auto& [side, counted] : {std::pair(&first, &left), std::pair(&second, &right)}) {
      printer_.say(to_string(bound_of(*counted), counted->item.plan, side->label));
    }
    print_comparison(printer_, compare_counts(left.total, right.total), first.label, second.label,
                     csv ? problem : "Counted in the PTX virtual machine:");
    for (const File& file : files) {
      const auto of = [&](const Side& side) {
        return rows_of(file, [&](const Row& row) { return is_of(row, side); });
      };
      print_pairs(pair_problems(of(first), of(second)), first.label, second.label,
                  " measured on " + describe(file));
    }
    return Exit::ok;
  }

  /// Rungs of two types have the same shape, and each its problem.
  std::string describe_both(const Counted& first, const Counted& second) const {
    const std::string problem = describe(first.item.problem(), problem_.inputs());
    const std::string other = describe(second.item.problem(), problem_.inputs());
    return problem == other ? problem : problem + ", beside " + other;
  }

  Exit compare_files() {
    allow_beside(*app_, "--results with two files", {"rungs", "--results", "--format"});
    const File first = read_file(results_[0]), second = read_file(results_[1]);
    std::vector<Side> sides;
    for (const std::string& word : words_) sides.push_back(parse_side(word));
    const auto wanted = [&](const Row& row) {
      return sides.empty() || std::any_of(sides.begin(), sides.end(),
                                          [&](const Side& side) { return is_of(row, side); });
    };
    const std::vector<RatePair> pairs =
        pair_kernels(rows_of(first, wanted), rows_of(second, wanted));
    if (pairs.empty()) {
      throw UsageError(fmt::format("'{}' and '{}' have no kernel with a time on the same problem{}",
                                   results_[0], results_[1],
                                   sides.empty() ? "" : " among these rungs"));
    }
    printer_.say(fmt::format("first:  {}\nsecond: {}\n", describe(first), describe(second)));
    print_pairs(pairs, "first", "second", "");
    return Exit::ok;
  }

  /// A table for each unit and dtype: what changed most first, then how many are nearly equal.
  void print_pairs(const std::vector<RatePair>& all, const std::string& first,
                   const std::string& second, const std::string& where) {
    struct Kind {
      const char* unit;
      Dtype dtype;
    };
    for (const Kind& kind :
         {Kind{"TFLOPS", Dtype::f16}, Kind{"TFLOPS", Dtype::bf16}, Kind{"TFLOPS", Dtype::f32},
          Kind{"GB/s", Dtype::f16}, Kind{"GB/s", Dtype::bf16}, Kind{"GB/s", Dtype::f32}}) {
      std::vector<RatePair> pairs;
      std::copy_if(all.begin(), all.end(), std::back_inserter(pairs), [&](const RatePair& pair) {
        return pair.problem.dtype == kind.dtype &&
               kind.unit == std::string_view(rate_unit(pair.problem));
      });
      if (pairs.empty()) continue;
      const std::size_t different = sort_by_change(pairs);
      using enum Table::Align;
      const std::string what = results_.size() == 2 ? "kernel and problem" : "problem";
      Table table({{what, left}, {first}, {second}, {"ratio"}});
      for (const RatePair& pair : std::span(pairs).first(different)) {
        const std::string kernel = results_.size() == 2 ? pair.kernel + " on " : "";
        table.add({kernel + describe(pair.problem, pair.inputs), to_string(pair.first),
                   to_string(pair.second), to_string(pair.change())});
      }
      const std::string title = fmt::format("{}{}, {}", kind.unit, where, to_string(kind.dtype));
      printer_.say("\n");
      if (table.empty()) {
        printer_.say(title + "\n");
      } else {
        printer_.print(table, "results", title);
      }
      if (different < pairs.size()) {
        printer_.say(fmt::format("{} of {} equal within {:.0f} % or their spread\n",
                                 pairs.size() - different, pairs.size(), 100 * kLeastChange));
      }
    }
  }

  Counted count(Counting& counting, const Side& side) const {
    Problem problem = problem_.problem();
    set_types(*side.rung, problem);
    Item item = rung_item(*side.rung, problem, side.tile, counting.device().description(),
                          problem_.inputs());
    if (!item.refused.empty()) throw UsageError(with_example(item.refused, *side.rung, problem));
    Counted counted = counting.count(std::move(item));
    if (!counted.verdict.ok) throw KernelFault(counted.verdict.reason, counted.verdict.findings);
    return counted;
  }

  std::vector<std::string> words_, results_;
  ProblemOptions problem_{
      {.shape = {}, .seqs = {}, .dim_default = {}, .seq_kv = true, .cache = true, .types = true}};
  TablePrinter printer_;
  VmOptions vm_;
  const CLI::App* app_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> make_compare_command() {
  return std::make_unique<CompareCommand>();
}

}  // namespace fa::cli
