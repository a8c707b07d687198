// SPDX-License-Identifier: MIT
#include "harness/cli/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "harness/cli/arguments.h"
#include "harness/cli/terminal.h"
#include "harness/device/make_device.h"

namespace fa::cli {

void add_measure_options(CLI::App& app, BenchOptions& options) {
  TimingPolicy& policy = options.policy;
  add_integer(app, "--rounds", policy.rounds, 1, 1000,
              fmt::format("Visits of every kernel (default {})", policy.rounds));
  app.add_flag_callback(
      "--brief", [&policy] { policy.warmup_ms = 50, policy.spaced_ms = 90, policy.lead_ms = 80; },
      "Fewer spaced launches in a visit, as for a set of several runs");
  app.add_flag("--backwards", policy.backwards,
               "Visit the last kernel first, as in every second run of a set");
  CLI::Option* json =
      add_file(app, "--json", options.json, "Result file; rows of a problem that it has are kept");
  app.add_flag("--overwrite", options.overwrite, "Start the --json file afresh")->needs(json);
  add_file(app, "--verified", options.verified,
           "Result file of this build on this card; what it verified is not verified again");
}

void require_some_support(const BenchOptions& options) {
  // The GPU, or where none is the virtual machine: a mistake is named before that is.
  const DeviceDescription device = describe_device("auto");
  const auto cannot = [&](const Rung* rung) { return device_refusal(*rung, device); };
  if (std::all_of(options.rungs.begin(), options.rungs.end(), cannot)) {
    throw DeviceError(*cannot(options.rungs.front()));
  }
  std::string reason;
  bool all_by_device = true;
  for (Problem problem : options.problems) {
    for (const Rung* rung : options.rungs) {
      set_types(*rung, problem);
      for (const Item& item : bench_items(options, problem, device)) {
        if (!item.rung) continue;
        if (item.refused.empty()) return;
        all_by_device &= device_refusal(*rung, device, item.instance).has_value();
        if (reason.empty()) reason = item.refused;
      }
    }
  }
  if (reason.empty()) throw UsageError(kAllLeftOut);
  if (all_by_device) throw DeviceError(reason);
  throw UsageError(fmt::format("no rung takes any of these problems; {}", reason));
}

Exit measure_on_gpu(const BenchOptions& options, const RowPrinter& print_rows) {
  const std::unique_ptr<GpuDevice> gpu = make_gpu();
  GpuDevice& device = *gpu;
  print_note(fmt::format("device: {} (gpu)", device.name()));

  Progress progress;
  const BenchReport report{.note =
                               [&](const std::string& text) {
                                 progress.clear();
                                 print_note(text);
                               },
                           .progress = [&](const std::string& text) { progress.show(text); },
                           .finished =
                               [&](const Problem& problem, const std::vector<Row>& rows) {
                                 progress.clear();
                                 print_rows(problem, rows);
                                 std::fflush(stdout);
                               }};
  const BenchOutcome outcome = run_bench(device, options, report);
  progress.clear();
  print_note(
      fmt::format("{}{} ok, {} incorrect, {} failed, {} unsupported; {} of them kept from before",
                  outcome.interrupted ? "interrupted; " : "", outcome.ok, outcome.incorrect,
                  outcome.failed, outcome.unsupported, outcome.kept));
  if (outcome.interrupted) return Exit::interrupted;
  if (outcome.incorrect > 0) return Exit::wrong;
  if (outcome.failed > 0) return Exit::environment;
  return outcome.ok > 0 ? Exit::ok : Exit::usage;
}

std::string status_cell(Status status, const std::string& reason) {
  const Colour colour = status == Status::ok          ? Colour::green
                        : status == Status::incorrect ? Colour::red
                                                      : Colour::yellow;
  return coloured(name_of(status), colour) + (reason.empty() ? "" : ": " + reason);
}

}  // namespace fa::cli
