// SPDX-License-Identifier: MIT
// fa limits: what the card can do, by bare loops.
#include "harness/measure/limits/limits.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/measure.h"
#include "harness/cli/table.h"
#include "harness/cli/terminal.h"
#include "harness/device/gpu.h"
#include "harness/device/make_device.h"
#include "harness/environment/build.h"

namespace fa::cli {
namespace {

Table limits_table(const std::vector<limits::LimitRow>& rows) {
  using enum Table::Align;
  Table table({{"loop", left},
               {"spaced"},
               {"sustained"},
               {"unit", left},
               {"clock x SM"},
               {"MHz"},
               {"W"},
               {"what", left},
               {"status", left}});
  for (const limits::LimitRow& row : rows) {
    table.add({row.id, number_cell(row.rate, 1), number_cell(row.rate_back_to_back, 1), row.unit,
               number_cell(row.per_clock_sm, 1), number_cell(row.clock_mhz, 0),
               number_cell(row.power_w, 0), row.what, status_cell(row.status, row.reason)});
  }
  return table;
}

Exit exit_of(const limits::Limits& measured) {
  if (measured.interrupted) return Exit::interrupted;
  Exit result = Exit::ok;
  for (const limits::LimitRow& row : measured.rows) {
    if (row.status == Status::incorrect) return Exit::wrong;
    if (row.status == Status::error) result = Exit::environment;
  }
  return result;
}

class LimitsCommand final : public Command {
 public:
  explicit LimitsCommand(std::vector<std::string> words) : argv_(std::move(words)) {}

  void declare(CLI::App& app) override {
    CLI::Option* json = add_file(app, "--json", json_, "Write limits.json here");
    app.add_flag("--overwrite", overwrite_, "Replace the --json file")->needs(json);
    printer_.declare(app);
  }

  Exit execute() override {
    require_new_file("--json", json_, overwrite_);
    const std::unique_ptr<GpuDevice> gpu = make_gpu();
    GpuDevice& device = *gpu;
    print_note(fmt::format("device: {} (gpu)", device.name()));
    Progress progress;
    const limits::Limits measured = limits::measure_limits(
        device, argv_, {.progress = [&](const std::string& text) { progress.show(text); }});
    progress.clear();
    if (const std::string warning = source_state().warning; !warning.empty()) print_note(warning);
    if (!measured.rows.empty()) printer_.print(limits_table(measured.rows), "card", device.name());
    std::fflush(stdout);
    if (measured.interrupted) {
      print_note(fmt::format("interrupted: {} of {} rounds were complete", measured.rounds,
                             limits::limits_policy().rounds));
    }
    if (measured.rounds > 0) write_new_json(json_, limits::limits_document(measured), overwrite_);
    return exit_of(measured);
  }

 private:
  std::vector<std::string> argv_;
  std::filesystem::path json_;
  TablePrinter printer_;
  bool overwrite_ = false;
};

}  // namespace

std::unique_ptr<Command> make_limits_command(std::vector<std::string> words) {
  return std::make_unique<LimitsCommand>(std::move(words));
}

}  // namespace fa::cli
