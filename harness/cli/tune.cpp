// fa tune: one rung at many tiles. On a GPU with times; --static shows what the compiler's report
// alone says, for any card.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "harness/bench/bench.h"
#include "harness/bench/occupancy.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/measure.h"
#include "harness/cli/terminal.h"
#include "harness/device/vm.h"

namespace fa::cli {
namespace {

constexpr std::int64_t kDefaultSeq = 8192;

/// A launch of an instance as one card would run it.
struct StaticRow {
  const BenchItem* item = nullptr;
  const Launch* launch = nullptr;
  PtxasEntry compiled;
  BlockNeeds needs;
  Occupancy result;
};

std::tuple<int, int, int, std::string_view> tile_order_key(const Tile& tile) {
  return {tile.Br, tile.Bc, tile.warps, tile.variant};
}

std::string kib(std::size_t bytes) {
  return fmt::format("{:.0f}", static_cast<double>(bytes) / 1024);
}

std::string joined(const Json& names) {
  if (!names.is_array()) return "-";
  return fmt::format("{}", fmt::join(names.get<std::vector<std::string>>(), ", "));
}

/// Index of the fastest row; the number of rows where none has a time.
std::size_t fastest(const std::vector<Json>& rows) {
  std::size_t best = rows.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i]["time_ms"].is_object()) continue;
    if (best == rows.size() || rows[i]["time_ms"]["median"] < rows[best]["time_ms"]["median"]) {
      best = i;
    }
  }
  return best;
}

void print_sweep(const Rung& rung, const Problem& problem, std::vector<Json> rows) {
  const auto tile_of = [&](const Json& row) {
    const std::string tile = row["variant"];
    return rung.find_instance(problem.head_dim, tile)->tile;
  };
  std::sort(rows.begin(), rows.end(), [&](const Json& a, const Json& b) {
    return tile_order_key(tile_of(a)) < tile_order_key(tile_of(b));
  });
  fmt::print("\n{}\n", to_string(problem));
  fmt::print("{:12} {:>9} {:>9} {:>9} {:>9} {:>8} {:>10} {:>9}  {:24} {}\n", "tile", "ms", "TFLOPS",
             "registers", "spilled B", "KiB", "blocks/SM", "warps/SM", "limited by", "status");
  const std::size_t best = fastest(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    const Json used = row["resources"].is_object() ? row["resources"] : Json::object();
    const Json ms = row["time_ms"].is_object() ? row["time_ms"] : Json::object();
    const auto integer = [&](const char* name) {
      return number_cell(used.value(name, Json()), "{:.0f}");
    };
    Json warps;
    if (used.contains("blocks_per_sm")) {
      warps = used["blocks_per_sm"].get<int>() * tile_of(row).warps;
    }
    fmt::print("{:12} {:>9} {:>9} {:>9} {:>9} {:>8} {:>10} {:>9}  {:24} {}{}{}\n",
               row["variant"].get<std::string>(), number_cell(ms.value("median", Json()), "{:.4f}"),
               number_cell(row["tflops"], "{:.1f}"), integer("registers"), integer("spill_bytes"),
               used.contains("shared_bytes") ? kib(used["shared_bytes"].get<std::size_t>()) : "-",
               integer("blocks_per_sm"), number_cell(warps, "{:.0f}"),
               joined(used.value("limited_by", Json())), status_cell(row),
               row["ablation"] == false ? ", the rung's own" : "",
               i == best ? coloured(", best", Colour::green) : "");
  }
}

class TuneCommand final : public Command {
 public:
  explicit TuneCommand(std::vector<std::string> words) { options_.argv = std::move(words); }

  void declare(CLI::App& app) override {
    app.add_option("rung", rung_word_, "Rung: id (06 or 6) or name (06_batched, batched)")
        ->required();
    add_integer(app, "--seq", problem_.seq_q, 1, kMaxSequence, "Queries and keys (default 8192)");
    add_integer(app, "--batch", problem_.batch, 1, kMaxBatchOrHeads, "Batch (default 16)");
    add_integer(app, "--heads", problem_.heads, 1, kMaxBatchOrHeads, "Heads (default 16)");
    dim_ = add_integer(app, "--dim", problem_.head_dim, 1, kMaxHeadDim,
                       "head_dim (default 128; with --static all of the rung)");
    app.add_flag("--causal", problem_.causal, "Query i sees keys j <= i only");
    app.add_option_function<std::string>(
           "--tiles",
           [this](const std::string& text) { options_.tiles = split_list("--tiles", text); },
           "Only these tiles (default: all that the build has)")
        ->type_name("TILE,...");
    add_inputs(app, options_.inputs);
    add_seed(app, options_.seed);
    add_timing_options(app, options_.policy);
    app.add_flag("--static", static_,
                 "No GPU: registers and spills by ptxas, shared memory, computed occupancy");
    app.add_option_function<std::string>(
           "--sm", [this](const std::string& text) { sms_ = parse_sms(text); },
           "With --static: compute capabilities x 10 (default: all that the build has code for)")
        ->type_name("N,...");
    add_file(app, "--json", options_.json, "Result file; with --static, an occupancy file");
    app.add_flag("--overwrite", options_.overwrite, "Start the --json file afresh");
  }

  Exit execute() override {
    const Rung& rung = select_rung(rung_word_);
    if (!static_ && !sms_.empty()) throw UsageError("--sm goes with --static");
    problem_.seq_kv = problem_.seq_q;
    problem_.dtype = rung.dtype;
    require_tiles(rung);
    options_.rungs = {&rung};
    options_.problems = {problem_};
    options_.tuned = true;
    if (static_) return show_static(rung);
    require_some_support(options_);
    require_results_file("--json", options_.json, options_.overwrite);
    if (rung.kernels->tuned.empty()) note_missing_tiles(rung);
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
    if (static_ && dim_->count() == 0) return rung.head_dims();
    return {problem_.head_dim};
  }

  /// Throws UsageError for a tile that the build does not have.
  void require_tiles(const Rung& rung) const {
    const std::vector<int> dims = head_dims(rung);
    for (const std::string& tile : options_.tiles) {
      if (std::any_of(dims.begin(), dims.end(),
                      [&](int dim) { return rung.find_instance(dim, tile) != nullptr; })) {
        continue;
      }
      const PlanResult plan = make_plan(rung, problem_, vm_description(), tile);
      const bool only_the_tile = rung.find_instance(problem_.head_dim) != nullptr;
      throw UsageError(
          std::get<Unsupported>(plan).reason +
          (has_tuned_tiles() || !only_the_tile ? "" : "; a build with FA_TUNE=ON has more"));
    }
  }

  void note_missing_tiles(const Rung& rung) const {
    const std::string few = fmt::format("only the {} instances that the ladder has of {}",
                                        rung.kernels->instances.size(), rung.name);
    print_note(has_tuned_tiles() ? few + ": its file does not name the list of tune_tiles.h"
                                 : few +
                                       "; the whole sweep needs another build: cmake --preset "
                                       "tune && cmake --build --preset tune");
  }

  Exit measure(const Rung& rung) const {
    if (gpu_count() == 0) {
      print_note(fmt::format(
          "fa tune {} --static shows registers, shared memory and occupancy without a GPU",
          rung_word_));
    }
    return measure_on_gpu(options_, [&](const Problem& problem, const std::vector<Json>& rows) {
      print_sweep(rung, problem, rows);
    });
  }

  // --- without a GPU ---

  Exit show_static(const Rung& rung) const {
    require_new_file("--json", options_.json, options_.overwrite);
    const std::vector<BenchItem> items = static_items(rung);
    if (rung.kernels->tuned.empty()) note_missing_tiles(rung);
    Json rows = Json::array();
    for (const SmLimits& limits : known_sm_limits()) {
      if (!sms_.empty() && std::count(sms_.begin(), sms_.end(), limits.sm) == 0) continue;
      const std::vector<StaticRow> compiled = compile_report(items, limits);
      if (compiled.empty() && sms_.empty()) continue;
      if (compiled.empty()) {
        throw UsageError(
            fmt::format("--sm '{}': this build has no code of {} for it", limits.sm, rung.name));
      }
      print_static(rung, limits, compiled);
      for (const StaticRow& row : compiled) rows.push_back(static_json(limits, row));
    }
    if (rows.empty()) {
      throw DeviceError("the report of ptxas has none of these kernels; build the target fa");
    }
    const Json document{{"schema", kResultsSchema},
                        {"kind", "occupancy"},
                        {"generator", generator_json(source_state(), options_.argv)},
                        {"rows", std::move(rows)}};
    std::fflush(stdout);
    write_new_json(options_.json, document, options_.overwrite);
    return Exit::ok;
  }

  std::vector<BenchItem> static_items(const Rung& rung) const {
    std::vector<BenchItem> items;
    Problem problem = problem_;
    std::string reason;
    for (const int dim : head_dims(rung)) {
      problem.head_dim = dim;
      for (BenchItem& item : bench_items(options_, problem, vm_description())) {
        if (reason.empty()) reason = item.refused;
        if (item.refused.empty()) items.push_back(std::move(item));
      }
    }
    if (items.empty()) throw UsageError(reason);
    std::sort(items.begin(), items.end(), [](const BenchItem& a, const BenchItem& b) {
      return std::pair(a.problem.head_dim, tile_order_key(a.instance->tile)) <
             std::pair(b.problem.head_dim, tile_order_key(b.instance->tile));
    });
    return items;
  }

  static std::vector<StaticRow> compile_report(const std::vector<BenchItem>& items,
                                               const SmLimits& limits) {
    std::vector<StaticRow> rows;
    for (const BenchItem& item : items) {
      if (!runs_on(item.rung->target, limits.sm)) continue;
      for (const Launch& launch : item.plan.launches) {
        const auto compiled = ptxas_entry(launch.entry, limits.sm);
        if (!compiled) continue;
        const BlockNeeds needs{
            .threads = launch.block,
            .registers = compiled->registers,
            .shared = launch.dynamic_shared + static_cast<std::size_t>(compiled->static_shared)};
        rows.push_back({&item, &launch, *compiled, needs, occupancy(limits, needs)});
      }
    }
    return rows;
  }

  static void print_static(const Rung& rung, const SmLimits& limits,
                           const std::vector<StaticRow>& rows) {
    fmt::print(
        "\n{}, compute capability {}.{}: an SM has {} registers, {} KiB of shared "
        "memory, {} warps, {} blocks\n",
        rung.name, limits.sm / 10, limits.sm % 10, limits.registers, kib(limits.shared),
        limits.warps, limits.blocks);
    fmt::print("{:<8} {:12} {:>9} {:>9} {:>5}   {:>17}\n", "", "", "", "", "", "blocks allowed by");
    fmt::print("{:<8} {:12} {:>9} {:>9} {:>5}   {:>5} {:>5} {:>5}   {:>9} {:>9}  {}\n", "head_dim",
               "tile", "registers", "spilled B", "KiB", "regs", "KiB", "warps", "blocks/SM",
               "warps/SM", "limited by");
    for (const StaticRow& row : rows) {
      const Occupancy& found = row.result;
      const bool several = row.item->plan.launches.size() > 1;
      fmt::print("{:<8} {:12} {:>9} {:>9} {:>5}   {:>5} {:>5} {:>5}   {:>9} {:>9}  {}{}{}\n",
                 row.item->problem.head_dim, row.item->variant, row.compiled.registers,
                 spilled(row), kib(row.needs.shared), found.by_registers, found.by_shared_memory,
                 found.by_warps, found.blocks, found.blocks * row.needs.threads / 32,
                 joined(limits_json(limits.sm, row.needs)),
                 row.item->ablation ? "" : "; the rung's own",
                 several ? fmt::format("; {}", row.launch->entry) : "");
    }
  }

  static int spilled(const StaticRow& row) {
    return row.compiled.spill_stores + row.compiled.spill_loads;
  }

  static Json static_json(const SmLimits& limits, const StaticRow& row) {
    return {{"id", row.item->id},
            {"variant", row.item->variant},
            {"entry", row.launch->entry},
            {"ablation", row.item->ablation},
            {"head_dim", row.item->problem.head_dim},
            {"sm", limits.sm},
            {"threads", row.needs.threads},
            {"registers", row.needs.registers},
            {"spill_bytes", spilled(row)},
            {"shared_bytes", row.needs.shared},
            {"blocks_allowed",
             {{"registers", row.result.by_registers},
              {"shared memory", row.result.by_shared_memory},
              {"warps", row.result.by_warps},
              {"blocks", row.result.by_blocks}}},
            {"blocks_per_sm", row.result.blocks},
            {"limited_by", limits_json(limits.sm, row.needs)}};
  }

  BenchOptions options_;
  Problem problem_{.batch = 16, .heads = 16, .seq_q = kDefaultSeq};
  std::string rung_word_;
  std::vector<int> sms_;
  CLI::Option* dim_ = nullptr;
  bool static_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tune_command(std::vector<std::string> words) {
  return std::make_unique<TuneCommand>(std::move(words));
}

}  // namespace fa::cli
