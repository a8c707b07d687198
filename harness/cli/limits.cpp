// fa limits: what the card can do, by bare loops.
#include "harness/limits/limits.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "harness/bench/environment.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/measure.h"
#include "harness/cli/terminal.h"
#include "harness/device/gpu.h"
#include "harness/device/make_device.h"

namespace fa::cli {
namespace {

void print_limits(const Json& document) {
  fmt::print("{:20} {:>10} {:>10} {:7} {:>10} {:>6} {:>6}  {:48} {}\n", "loop", "spaced",
             "sustained", "unit", "clock x SM", "MHz", "W", "what", "status");
  for (const Json& row : document["rows"]) {
    fmt::print("{:20} {:>10} {:>10} {:7} {:>10} {:>6} {:>6}  {:48} {}\n",
               row["id"].get<std::string>(), number_cell(row["rate"], "{:.1f}"),
               number_cell(row["rate_back_to_back"], "{:.1f}"), row["unit"].get<std::string>(),
               number_cell(row["per_clock_sm"], "{:.1f}"), number_cell(row["clock_mhz"], "{:.0f}"),
               number_cell(row["power_w"], "{:.0f}"), row["what"].get<std::string>(),
               status_cell(row));
  }
}

Exit exit_of(const Json& document) {
  Exit result = Exit::ok;
  for (const Json& row : document["rows"]) {
    if (row["status"] == "incorrect") return Exit::wrong;
    if (row["status"] == "error") result = Exit::environment;
  }
  return result;
}

class LimitsCommand final : public Command {
 public:
  explicit LimitsCommand(std::vector<std::string> words) : argv_(std::move(words)) {}

  void declare(CLI::App& app) override {
    add_file(app, "--json", json_, "Write limits.json here");
    app.add_flag("--overwrite", overwrite_, "Replace the --json file");
  }

  Exit execute() override {
    require_new_file("--json", json_, overwrite_);
    if (gpu_count() == 0) make_device("gpu");  // throws, in the words of the other commands
    GpuDevice device;
    print_note(fmt::format("device: {} (gpu)", device.name()));
    Progress progress;
    const Json document = limits::measure_limits(
        device, argv_, {.progress = [&](const std::string& text) { progress.show(text); }});
    progress.clear();
    if (const std::string warning = source_state().warning; !warning.empty()) print_note(warning);
    print_limits(document);
    std::fflush(stdout);
    write_new_json(json_, document, overwrite_);
    return exit_of(document);
  }

 private:
  std::vector<std::string> argv_;
  std::filesystem::path json_;
  bool overwrite_ = false;
};

}  // namespace

std::unique_ptr<Command> make_limits_command(std::vector<std::string> words) {
  return std::make_unique<LimitsCommand>(std::move(words));
}

}  // namespace fa::cli
