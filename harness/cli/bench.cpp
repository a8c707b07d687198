// fa bench: the command line of harness/bench.
#include "harness/bench/bench.h"

#include <fmt/format.h>

#include <cstdio>

#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/terminal.h"
#include "harness/device/make_device.h"

namespace fa::cli {
namespace {

constexpr const char* kDefaultSeqs = "512,1024,2048,4096,8192,16384";

std::string number(const Json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

void print_rows(const Problem& problem, const std::vector<Json>& rows) {
  fmt::print("\n{}\n", to_string(problem));
  fmt::print("{:8} {:20} {:>10} {:>10} {:>10} {:>9} {:>9} {:>6} {:>6}  {}\n", "id", "variant", "ms",
             "p10", "p90", "TFLOPS", "sustained", "MHz", "W", "status");
  for (const Json& row : rows) {
    const Json ms = row["time_ms"].is_object() ? row["time_ms"] : Json::object();
    const std::string status = row["status"];
    const std::string reason = row["reason"];
    fmt::print("{:8} {:20} {:>10} {:>10} {:>10} {:>9} {:>9} {:>6} {:>6}  {}{}{}\n",
               row["id"].get<std::string>(), row["variant"].get<std::string>(),
               number(ms.value("median", Json()), "{:.4f}"),
               number(ms.value("p10", Json()), "{:.4f}"), number(ms.value("p90", Json()), "{:.4f}"),
               number(row["tflops"], "{:.1f}"), number(row["tflops_back_to_back"], "{:.1f}"),
               number(row["clock_mhz"], "{:.0f}"), number(row["power_w"], "{:.0f}"),
               coloured(status, status == "ok"          ? Colour::green
                                : status == "incorrect" ? Colour::red
                                                        : Colour::yellow),
               reason.empty() ? "" : ": ", reason);
  }
  std::fflush(stdout);
}

class BenchCommand final : public Command {
 public:
  BenchCommand(std::vector<Peer> peers, std::vector<std::string> words) {
    options_.peers = std::move(peers);
    options_.argv = std::move(words);
  }

  void declare(CLI::App& app) override {
    app.add_option("rungs", words_,
                   "Rungs: ids, names, a family, all (default), or none (peers alone)");
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
    add_inputs(app, options_.inputs);
    add_seed(app, options_.seed);
    add_integer(app, "--rounds", options_.policy.rounds, 1, 1000,
                "Visits of every kernel (default 5)");
    app.add_option_function<std::string>(
           "--l2",
           [this](const std::string& text) {
             if (text != "flush" && text != "warm") {
               throw UsageError(fmt::format("--l2 '{}' is unknown; allowed: flush, warm", text));
             }
             options_.policy.l2 = text == "flush" ? L2Policy::flush : L2Policy::warm;
           },
           "L2 before spaced launches: flush (default) or warm")
        ->type_name("NAME");
    app.add_flag("--no-ablations", no_ablations_, "Only each rung's own tile");
    app.add_option("--json", json_, "Result file; rows of a problem that it has are kept")
        ->type_name("FILE");
    app.add_flag("--overwrite", options_.overwrite, "Start the --json file afresh");
  }

  Exit execute() override {
    const bool none = words_.size() == 1 && words_.front() == "none";
    if (none && options_.peers.empty()) {
      throw UsageError("'none' leaves nothing to measure: there are no peers here");
    }
    if (!none) options_.rungs = select_rungs(words_);
    options_.ablations = !no_ablations_;
    options_.json = json_;
    if (seqs_.empty()) seqs_ = parse_integers("--seqs", kDefaultSeqs, 1, kMaxSequence);
    for (const std::int64_t seq : seqs_) {
      shape_.seq_q = shape_.seq_kv = seq;
      options_.problems.push_back(shape_);
    }
    if (!none) require_some_support();
    if (!json_.empty()) {
      require_writable_path("--json", json_);
      if (!options_.overwrite) read_results(json_);
    }

    std::string why;
    if (gpu_count(&why) == 0) make_device("gpu");  // throws, in the words of the other commands
    GpuDevice device;
    print_note(fmt::format("device: {} (gpu)", device.name()));
    return measure(device);
  }

 private:
  /// Problems that no rung takes are a mistake on the command line, not rows of a result.
  void require_some_support() const {
    std::string reason;
    for (const Problem& problem : options_.problems) {
      for (const Rung* rung : options_.rungs) {
        Problem typed = problem;
        typed.dtype = rung->dtype;
        const PlanResult plan = make_plan(*rung, typed);
        const auto* unsupported = std::get_if<Unsupported>(&plan);
        if (!unsupported) return;
        if (reason.empty()) reason = unsupported->reason;
      }
    }
    throw UsageError(fmt::format("no rung takes any of these problems; {}", reason));
  }

  Exit measure(GpuDevice& device) {
    Progress progress;
    const BenchReport report{.note =
                                 [&](const std::string& text) {
                                   progress.clear();
                                   print_note(text);
                                 },
                             .progress = [&](const std::string& text) { progress.show(text); },
                             .finished =
                                 [&](const Problem& problem, const std::vector<Json>& rows) {
                                   progress.clear();
                                   print_rows(problem, rows);
                                 }};
    const BenchOutcome outcome = run_bench(device, options_, report);
    progress.clear();
    print_note(fmt::format(
        "{} ok, {} incorrect, {} failed, {} unsupported; {} of them kept from before", outcome.ok,
        outcome.incorrect, outcome.failed, outcome.unsupported, outcome.kept));
    if (outcome.incorrect > 0) return Exit::wrong;
    if (outcome.failed > 0) return Exit::environment;
    return outcome.ok > 0 ? Exit::ok : Exit::usage;
  }

  BenchOptions options_;
  Problem shape_{.batch = 16, .heads = 16};
  std::vector<std::int64_t> seqs_;
  std::vector<std::string> words_;
  std::string json_;
  bool no_ablations_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_command(std::vector<Peer> peers,
                                            std::vector<std::string> words) {
  return std::make_unique<BenchCommand>(std::move(peers), std::move(words));
}

}  // namespace fa::cli
