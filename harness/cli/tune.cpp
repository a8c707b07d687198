// SPDX-License-Identifier: MIT
// fa tune: one rung at many tiles. On a GPU with times; --static shows what the compiler's report
// alone says, for any card.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/measure.h"
#include "harness/cli/problem_options.h"
#include "harness/cli/table.h"
#include "harness/cli/terminal.h"
#include "harness/device/vm.h"
#include "harness/environment/occupancy.h"
#include "harness/environment/ptxas.h"
#include "harness/measure/bench.h"

namespace fa::cli {
namespace {

constexpr std::int64_t kDefaultSeq = 8192;

/// A launch of an instance, one of several or all of it.
struct StaticRow {
  const Item* item = nullptr;
  const char* entry = "";
  BlockNeeds needs;
  std::int64_t spill_bytes = 0;
  Occupancy occupancy;
  bool several = false;
};

std::tuple<int, int, int> tile_order_key(const Tile& tile) {
  return {tile.Br, tile.Bc, tile.warps};
}

std::string kib(std::size_t bytes) {
  return fmt::format("{:.0f}", static_cast<double>(bytes) / 1024);
}

std::string joined(const std::vector<Limit>& limits) {
  std::vector<const char*> names;
  for (const Limit limit : limits) names.push_back(name_of(limit));
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

/// The row with the least median; nullptr where none has a time.
const Row* fastest(const std::vector<Row>& rows) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (!row.time_ms) continue;
    if (!best || row.time_ms->median < best->time_ms->median) best = &row;
  }
  return best;
}

std::vector<std::string> sweep_cells(const Row& row, const Tile& tile, bool best) {
  std::optional<double> ms, registers, spilled, blocks, warps;
  std::string shared = "-", limited_by = "-";
  if (row.time_ms) ms = row.time_ms->median;
  if (const auto& used = row.resources) {
    registers = used->registers;
    if (used->spill_bytes) spilled = static_cast<double>(*used->spill_bytes);
    shared = kib(static_cast<std::size_t>(used->shared_bytes));
    blocks = used->blocks_per_sm;
    warps = used->blocks_per_sm * tile.warps;
    limited_by = joined(used->limited_by);
  }
  return {row.key.variant,
          number_cell(ms, 4),
          number_cell(row.tflops, 1),
          number_cell(registers, 0),
          number_cell(spilled, 0),
          shared,
          number_cell(blocks, 0),
          number_cell(warps, 0),
          limited_by,
          status_cell(row.status, row.reason) + (row.ablation ? "" : ", the rung's own") +
              (best ? coloured(", best", Colour::green) : "")};
}

Table sweep_table(const Rung& rung, const Problem& problem, std::vector<Row> rows) {
  const auto tile_of = [&](const Row& row) {
    return rung.find_instance(problem.head_dim, problem.dtype, row.key.variant)->tile;
  };
  std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return tile_order_key(tile_of(a)) < tile_order_key(tile_of(b));
  });
  using enum Table::Align;
  Table table({{"tile", left},
               {"ms"},
               {"TFLOPS"},
               {"registers"},
               {"spilled B"},
               {"KiB"},
               {"blocks/SM"},
               {"warps/SM"},
               {"limited by", left},
               {"status", left}});
  const Row* const best = fastest(rows);
  for (const Row& row : rows) table.add(sweep_cells(row, tile_of(row), &row == best));
  return table;
}

class TuneCommand final : public Command {
 public:
  explicit TuneCommand(std::vector<std::string> words) { options_.argv = std::move(words); }

  void declare(CLI::App& app) override {
    add_rung(app, rung_word_);
    problem_options_.declare(app);
    app.add_option_function<std::string>(
           "--tiles",
           [this](const std::string& text) { options_.tiles = split_list("--tiles", text); },
           "Only these tiles (default: all that the build has)")
        ->type_name("TILE,...");
    app.add_flag("--static", static_,
                 "No GPU: registers and spills by ptxas, shared memory, computed occupancy");
    app.add_option_function<std::string>(
           "--sm", [this](const std::string& text) { sms_ = parse_sms(text); },
           "With --static: compute capabilities x 10 (default: all that the build has code for)")
        ->type_name("N,...");
    add_measure_options(app, options_);
    printer_.declare(app);
    app_ = &app;
  }

  Exit execute() override {
    const Rung& rung = select_rung(rung_word_);
    if (!static_ && !sms_.empty()) throw UsageError("--sm goes with --static");
    if (static_) allow_beside(*app_, "--static", {"rung", "--tiles", "--sm", "--dim", "--format"});
    problem_ = problem_options_.problem();
    set_types(rung, problem_);
    options_.inputs = problem_options_.inputs();
    options_.seed = problem_options_.seed();
    require_tiles(rung);
    options_.rungs = {&rung};
    options_.problems = {problem_};
    options_.tuned = true;
    if (static_) return show_static(rung);
    require_some_support(options_);
    require_results_file("--json", options_.json, options_.overwrite);
    if (rung.tuned.empty()) note_missing_tiles(rung);
    return measure(rung);
  }

 private:
  static std::vector<int> parse_sms(const std::string& text) {
    std::vector<int> sms;
    for (const std::int64_t value : parse_integers("--sm", text, 1, 1000)) {
      sms.push_back(static_cast<int>(value));
      if (sm_limits(sms.back())) continue;
      std::vector<int> known;
      for (const SmLimits& limits : known_sm_limits()) known.push_back(limits.sm);
      throw UsageError(
          fmt::format("--sm '{}' is unknown; allowed: {}", value, fmt::join(known, ", ")));
    }
    return sms;
  }

  /// What is swept: without times all, where none was asked for.
  std::vector<int> head_dims(const Rung& rung) const {
    if (static_ && !problem_options_.dim_given()) return rung.head_dims();
    return {problem_.head_dim};
  }

  /// Throws UsageError for a tile that the build does not have.
  void require_tiles(const Rung& rung) const {
    const std::vector<int> dims = head_dims(rung);
    for (const std::string& tile : options_.tiles) {
      if (std::any_of(dims.begin(), dims.end(), [&](int dim) {
            return rung.find_instance(dim, problem_.dtype, tile) != nullptr;
          })) {
        continue;
      }
      const PlanResult plan = make_plan(rung, problem_, vm_description(), tile);
      const bool only_the_tile = rung.find_instance(problem_.head_dim, problem_.dtype) != nullptr;
      throw UsageError(
          std::get<Unsupported>(plan).reason +
          (has_tuned_tiles() || !only_the_tile ? "" : "; a build with FA_TUNE=ON has more"));
    }
  }

  void note_missing_tiles(const Rung& rung) const {
    const std::string few = fmt::format("only the {} instances that the ladder has of {}",
                                        rung.instances.size(), rung.name);
    print_note(has_tuned_tiles() ? few + ": its file does not name the list of tune_tiles.h"
                                 : few +
                                       "; the whole sweep needs another build: cmake --preset "
                                       "tune && cmake --build --preset tune");
  }

  Exit measure(const Rung& rung) {
    if (gpu_count() == 0) {
      print_note(fmt::format(
          "fa tune {} --static shows registers, shared memory and occupancy without a GPU",
          rung_word_));
    }
    return measure_on_gpu(options_, [&](const Problem& problem, const std::vector<Row>& rows) {
      printer_.say("\n");
      printer_.print(sweep_table(rung, problem, rows), "problem",
                     describe(problem, options_.inputs));
    });
  }

  // --- without a GPU ---

  Exit show_static(const Rung& rung) {
    const std::vector<Item> items = static_items(rung);
    if (rung.tuned.empty()) note_missing_tiles(rung);
    bool any = false;
    for (const SmLimits& limits : known_sm_limits()) {
      if (!sms_.empty() && std::count(sms_.begin(), sms_.end(), limits.sm) == 0) continue;
      const std::vector<StaticRow> compiled = compile_report(items, limits);
      if (compiled.empty() && sms_.empty()) continue;
      if (compiled.empty()) {
        throw UsageError(
            fmt::format("--sm '{}': this build has no code of {} for it", limits.sm, rung.name));
      }
      print_static(rung, limits, compiled);
      any = true;
    }
    if (!any) {
      throw DeviceError("the report of ptxas has none of these kernels; build the target fa");
    }
    return Exit::ok;
  }

  std::vector<Item> static_items(const Rung& rung) const {
    std::vector<Item> items;
    Problem problem = problem_;
    std::string reason;
    // None of these numbers depends on the lengths, and some rungs take few queries.
    problem.seq_q = std::min<std::int64_t>(problem.seq_q, rung.most_queries());
    for (const int dim : head_dims(rung)) {
      problem.head_dim = dim;
      for (Item& item : bench_items(options_, problem, vm_description())) {
        if (reason.empty()) reason = item.refused;
        if (item.refused.empty()) items.push_back(std::move(item));
      }
    }
    if (items.empty()) throw UsageError(reason);
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      return std::pair(a.problem().head_dim, tile_order_key(a.instance->tile)) <
             std::pair(b.problem().head_dim, tile_order_key(b.instance->tile));
    });
    return items;
  }

  static std::vector<StaticRow> compile_report(const std::vector<Item>& items,
                                               const SmLimits& limits) {
    std::vector<StaticRow> rows;
    for (const Item& item : items) {
      if (!runs_on(item.rung->target, limits.sm)) continue;
      for (const Launch& launch : item.plan.launches) {
        const auto compiled = ptxas_entry(launch.entry, limits.sm);
        if (!compiled) continue;
        const BlockNeeds needs{
            .threads = launch.block,
            .registers = compiled->registers,
            .shared = launch.dynamic_shared + static_cast<std::size_t>(compiled->static_shared)};
        rows.push_back({&item, launch.entry, needs, compiled->spill_bytes(),
                        occupancy(limits, needs), item.plan.launches.size() > 1});
      }
    }
    return rows;
  }

  void print_static(const Rung& rung, const SmLimits& limits, const std::vector<StaticRow>& rows) {
    using enum Table::Align;
    Table table({{"head_dim", left},
                 {"tile", left},
                 {"registers"},
                 {"spilled B"},
                 {"KiB"},
                 {"blocks by regs"},
                 {"by KiB"},
                 {"by warps"},
                 {"blocks/SM"},
                 {"warps/SM"},
                 {"limited by", left}});
    for (const StaticRow& row : rows) {
      const Occupancy& found = row.occupancy;
      table.add({fmt::format("{}", row.item->problem().head_dim), row.item->key.variant,
                 fmt::format("{}", row.needs.registers), fmt::format("{}", row.spill_bytes),
                 kib(row.needs.shared), fmt::format("{}", found.by_registers),
                 fmt::format("{}", found.by_shared_memory), fmt::format("{}", found.by_warps),
                 fmt::format("{}", found.blocks),
                 fmt::format("{}", found.blocks * row.needs.threads / 32),
                 joined(found.limits) + (row.item->ablation ? "" : "; the rung's own") +
                     (row.several ? fmt::format("; {}", row.entry) : "")});
    }
    printer_.say("\n");
    printer_.print(
        table, "card",
        fmt::format("{}, compute capability {}.{}: an SM has {} registers, {} KiB of shared "
                    "memory, {} warps, {} blocks",
                    rung.name, limits.sm / 10, limits.sm % 10, limits.registers, kib(limits.shared),
                    limits.warps, limits.blocks));
  }

  BenchOptions options_;
  ProblemOptions problem_options_{{.shape = {.batch = 16, .heads = 16, .seq_q = kDefaultSeq},
                                   .seqs = {},
                                   .dim_default = "128; with --static all of the rung",
                                   .seq_kv = true,
                                   .seed = true}};
  Problem problem_;
  std::string rung_word_;
  TablePrinter printer_;
  std::vector<int> sms_;
  const CLI::App* app_ = nullptr;
  bool static_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tune_command(std::vector<std::string> words) {
  return std::make_unique<TuneCommand>(std::move(words));
}

}  // namespace fa::cli
