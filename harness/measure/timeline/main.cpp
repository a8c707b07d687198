// SPDX-License-Identifier: MIT
// fa_timeline record: clock stamps of a few rungs, taken on a GPU.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/measure.h"
#include "harness/cli/terminal.h"
#include "harness/device/make_device.h"
#include "harness/environment/build.h"
#include "harness/io/file.h"
#include "harness/measure/timeline/timeline.h"

namespace fa::cli {
namespace {

class RecordCommand final : public Command {
 public:
  explicit RecordCommand(std::vector<std::string> words) : argv_(std::move(words)) {}

  void declare(CLI::App& app) override {
    add_file(app, "--json", json_, "Write timeline.json here")->required();
    add_integer(app, "--seq", seq_, 256, 8192, "Queries and keys (2048)");
    add_file(app, "--kernels", kernels_, "Folder of the stamped kernels (that of the build)");
    app.add_flag("--overwrite", overwrite_, "Replace the --json file");
  }

  Exit execute() override {
    require_new_file("--json", json_, overwrite_);
    if (seq_ % 128 != 0)
      throw UsageError(fmt::format("--seq {}: allowed are multiples of 128", seq_));
    const std::unique_ptr<GpuDevice> gpu = make_gpu();
    GpuDevice& device = *gpu;
    print_note(fmt::format("device: {} (gpu)", device.name()));
    Progress progress;
    const timeline::Timeline recorded = timeline::record(
        device, kernels_, seq_, argv_, [&](const std::string& text) { progress.show(text); });
    progress.clear();
    if (const std::string warning = source_state().warning; !warning.empty()) print_note(warning);
    for (const timeline::TimelineRow& row : recorded.rows) {
      const double plain = row.plain_ms.median, stamped = row.stamped_ms.median;
      fmt::print("{}  {:.4f} ms, with stamps {:.4f} ms (+{:.1f} %)\n", row.id, plain, stamped,
                 100 * (stamped / plain - 1));
    }
    std::fflush(stdout);
    write_new_json(json_, timeline::timeline_document(recorded), overwrite_);
    return Exit::ok;
  }

 private:
  std::vector<std::string> argv_;
  std::filesystem::path json_, kernels_ = FA_TIMELINE_DIR;
  std::int64_t seq_ = 2048;
  bool overwrite_ = false;
};

std::vector<Entry> entries(const std::vector<std::string>& words) {
  std::vector<Entry> all;
  all.push_back({"record", "Record when the warps of a thread block reach what",
                 std::make_unique<RecordCommand>(words)});
  return all;
}

}  // namespace
}  // namespace fa::cli

int main(int argc, char** argv) {
  fa::io::prepare_process();
  const std::vector<std::string> words{argv + 1, argv + argc};
  return static_cast<int>(
      fa::cli::run_command_line(words, [&words] { return fa::cli::entries(words); }));
}
