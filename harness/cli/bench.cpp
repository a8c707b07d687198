// fa bench: the command line of harness/bench.
#include "harness/bench/bench.h"

#include <fmt/format.h>

#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/measure.h"

namespace fa::cli {
namespace {

constexpr const char* kDefaultSeqs = "512,1024,2048,4096,8192,16384";

void print_rows(const std::string& problem, const std::vector<Json>& rows) {
  fmt::print("\n{}\n", problem);
  fmt::print("{:8} {:20} {:>10} {:>10} {:>10} {:>9} {:>9} {:>6} {:>6}  {}\n", "id", "variant", "ms",
             "p10", "p90", "TFLOPS", "sustained", "MHz", "W", "status");
  for (const Json& row : rows) {
    const Json ms = row["time_ms"].is_object() ? row["time_ms"] : Json::object();
    fmt::print("{:8} {:20} {:>10} {:>10} {:>10} {:>9} {:>9} {:>6} {:>6}  {}\n",
               row["id"].get<std::string>(), row["variant"].get<std::string>(),
               number_cell(ms.value("median", Json()), "{:.4f}"),
               number_cell(ms.value("p10", Json()), "{:.4f}"),
               number_cell(ms.value("p90", Json()), "{:.4f}"), number_cell(row["tflops"], "{:.1f}"),
               number_cell(row["tflops_back_to_back"], "{:.1f}"),
               number_cell(row["clock_mhz"], "{:.0f}"), number_cell(row["power_w"], "{:.0f}"),
               status_cell(row));
  }
}

class BenchCommand final : public Command {
 public:
  BenchCommand(std::vector<Peer> peers, std::vector<std::string> words) {
    options_.peers = std::move(peers);
    options_.argv = std::move(words);
  }

  void declare(CLI::App& app) override {
    app.add_option("rungs", words_,
                   "Rungs: ids, names, a family, all, or none (peers alone); default: all of "
                   "--dtype");
    app.add_option_function<std::string>(
           "--seqs",
           [this](const std::string& text) {
             seqs_ = parse_integers("--seqs", text, 1, kMaxSequence);
           },
           fmt::format("Sequence lengths (default {})", kDefaultSeqs))
        ->type_name("N,N,...");
    add_integer(app, "--batch", shape_.batch, 1, kMaxBatchOrHeads, "Batch (default 16)");
    add_integer(app, "--heads", shape_.heads, 1, kMaxBatchOrHeads, "Heads (default 16)");
    add_integer(app, "--dim", shape_.head_dim, 1, kMaxHeadDim, "head_dim (default 128)");
    app.add_flag("--causal", shape_.causal, "Query i sees keys j <= i only");
    app.add_option_function<std::string>(
           "--dtype",
           [this](const std::string& text) {
             for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
               if (text == to_string(dtype)) options_.dtype = dtype;
             }
             if (!options_.dtype) {
               throw UsageError(
                   fmt::format("--dtype '{}' is unknown; allowed: float16, float32", text));
             }
           },
           "float16 or float32: only rungs that take it (default: those that are named; float16 "
           "when none is)")
        ->type_name("NAME");
    add_inputs(app, options_.inputs);
    add_seed(app, options_.seed);
    add_timing_options(app, options_.policy);
    app.add_flag("--no-ablations", no_ablations_, "Only each rung's own tile");
    add_file(app, "--json", options_.json, "Result file; rows of a problem that it has are kept");
    app.add_flag("--overwrite", options_.overwrite, "Start the --json file afresh");
  }

  Exit execute() override {
    const bool none = words_.size() == 1 && words_.front() == "none";
    if (none && options_.peers.empty()) {
      throw UsageError("'none' leaves nothing to measure: there are no peers here");
    }
    if (words_.empty() && !options_.dtype) options_.dtype = Dtype::f16;
    if (!none) select();
    options_.ablations = !no_ablations_;
    if (seqs_.empty()) seqs_ = parse_integers("--seqs", kDefaultSeqs, 1, kMaxSequence);
    for (const std::int64_t seq : seqs_) {
      shape_.seq_q = shape_.seq_kv = seq;
      options_.problems.push_back(shape_);
    }
    if (!none) require_some_support(options_);
    require_results_file("--json", options_.json, options_.overwrite);
    return measure_on_gpu(options_, [this](const Problem& problem, const std::vector<Json>& rows) {
      print_rows(describe(problem, options_.inputs), rows);
    });
  }

 private:
  void select() {
    options_.rungs = select_rungs(words_);
    if (!options_.dtype) return;
    std::erase_if(options_.rungs,
                  [this](const Rung* rung) { return rung->dtype != *options_.dtype; });
    if (options_.rungs.empty()) {
      throw UsageError(fmt::format("none of the rungs takes {}", to_string(*options_.dtype)));
    }
  }

  BenchOptions options_;
  Problem shape_{.batch = 16, .heads = 16};
  std::vector<std::int64_t> seqs_;
  std::vector<std::string> words_;
  bool no_ablations_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_command(std::vector<Peer> peers,
                                            std::vector<std::string> words) {
  return std::make_unique<BenchCommand>(std::move(peers), std::move(words));
}

}  // namespace fa::cli
