#include "harness/cli/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "harness/cli/arguments.h"
#include "harness/cli/terminal.h"
#include "harness/device/make_device.h"

namespace fa::cli {

void add_timing_options(CLI::App& app, TimingPolicy& policy) {
  add_integer(app, "--rounds", policy.rounds, 1, 1000,
              fmt::format("Visits of every kernel (default {})", policy.rounds));
  app.add_option_function<std::string>(
         "--l2",
         [&policy](const std::string& text) {
           if (text != "flush" && text != "warm") {
             throw UsageError(fmt::format("--l2 '{}' is unknown; allowed: flush, warm", text));
           }
           policy.l2 = text == "flush" ? L2Policy::flush : L2Policy::warm;
         },
         "L2 before spaced launches: flush (default) or warm")
      ->type_name("NAME");
}

void require_some_support(const BenchOptions& options) {
  // The GPU, or where none is the virtual machine: a mistake is named before that is.
  const DeviceDescription device = describe_device("auto");
  const auto cannot = [&](const Rung* rung) { return device_refusal(*rung, device); };
  if (std::all_of(options.rungs.begin(), options.rungs.end(), cannot)) {
    throw DeviceError(*cannot(options.rungs.front()));
  }
  std::string reason;
  for (Problem problem : options.problems) {
    for (const Rung* rung : options.rungs) {
      problem.dtype = rung->dtype;
      for (const BenchItem& item : bench_items(options, problem, device)) {
        if (!item.rung) continue;
        if (item.refused.empty()) return;
        if (reason.empty()) reason = item.refused;
      }
    }
  }
  throw UsageError(fmt::format("no rung takes any of these problems; {}", reason));
}

Exit measure_on_gpu(const BenchOptions& options, const RowPrinter& print_rows) {
  if (gpu_count() == 0) make_device("gpu");  // throws, in the words of the other commands
  GpuDevice device;
  print_note(fmt::format("device: {} (gpu)", device.name()));

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

std::string number_cell(const Json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

std::string status_cell(const Json& row) {
  const std::string status = row["status"];
  const std::string reason = row["reason"];
  const Colour colour = status == "ok"          ? Colour::green
                        : status == "incorrect" ? Colour::red
                                                : Colour::yellow;
  return coloured(status, colour) + (reason.empty() ? "" : ": " + reason);
}

}  // namespace fa::cli
