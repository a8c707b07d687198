// SPDX-License-Identifier: MIT
// ptxvm run: launches of any kernels of a module, with arguments from the command line and files.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "observe/json_text.h"
#include "ptxvm/findings.h"
#include "ptxvm/hints.h"
#include "ptxvm/json.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"
#include "tools/buffers.h"
#include "tools/commands.h"

namespace ptxvm::tools {
namespace {

/// A line of a source file; empty where it cannot be read.
std::string source_line(const SourceLocation& where) {
  std::ifstream in(where.file);
  std::string line;
  for (int i = 0; i < where.line && std::getline(in, line); ++i) {
  }
  if (!in) return {};
  const size_t start = line.find_first_not_of(" \t");
  return start == std::string::npos ? std::string() : line.substr(start);
}

void print_lines(const CountReport& report) {
  std::printf("\n%12s %10s %12s %6s %10s  line\n", "instructions", "tensor", "wavefronts", "ways",
              "sectors");
  for (const SourceCounts& each : report.by_source(LineView::kInnermost)) {
    const Counts& c = each.counts;
    if (c.total_instructions() == 0) continue;
    const SharedTraffic shared = c.shared_requests();
    const uint64_t tensor = c.of(CountClass::kTensor) + c.of(CountClass::kWgmma);
    const auto number = [](uint64_t n) { return n == 0 ? std::string() : std::to_string(n); };
    std::string ways;
    if (shared.conflicts() != 0) {
      char text[32];
      std::snprintf(text, sizeof text, "x%.3g",
                    static_cast<double>(shared.wavefronts) / static_cast<double>(shared.ideal));
      ways = text;
    }
    std::printf("%12s %10s %12s %6s %10s  %s:%d  %s\n", number(c.total_instructions()).c_str(),
                number(tensor).c_str(), number(shared.wavefronts + c.wgmma_wavefronts()).c_str(),
                ways.c_str(), number(c.global_sectors()).c_str(),
                std::filesystem::path(each.where.file).filename().string().c_str(), each.where.line,
                source_line(each.where).c_str());
  }
}

std::string show(Dim3 d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

std::string json_extents(Dim3 d) {
  return "[" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + "]";
}

/// What the kernel says about its launch stands for what the command line does not say.
LaunchConfig config_of(const LaunchWords& words, const Kernel& kernel) {
  LaunchConfig config;
  config.grid = words.grid;
  config.cluster = words.cluster;
  if (kernel.required_cluster() && words.cluster == Dim3{}) {
    config.cluster = *kernel.required_cluster();
  }
  if (!words.block && !kernel.required_threads()) throw UsageError("run needs --block X[,Y,Z]");
  config.block = words.block ? *words.block : *kernel.required_threads();
  config.dynamic_shared_bytes = words.shared_bytes;
  config.cooperative = words.cooperative;
  return config;
}

/// One command line: its launches one after the other, on the same memory.
class Run {
 public:
  explicit Run(const LaunchOptions& wanted)
      : wanted_(wanted), module_(load_module(wanted.file)), buffers_(memory_) {}

  int run() {
    std::vector<const Kernel*> kernels;
    for (const LaunchWords& words : wanted_.launches) {
      kernels.push_back(&module_.find(words.entry));
      require_arguments(words, *kernels.back());
      config_of(words, *kernels.back());
    }
    filter({}, *kernels.front(), filter_);  // refuses the names of no checkers
    require_files_and_memory(wanted_);
    for (const VariableWords& variable : wanted_.variables) buffers_.fill(module_, variable);
    for (size_t i = 0; i < kernels.size() && !failed_; ++i) {
      launch_one(wanted_.launches[i], *kernels[i]);
    }
    if (wanted_.json) {
      std::cout << "{\"schema\":1,\"file\":" << observe::json_string(wanted_.file)
                << ",\"launches\":[" << documents_ << "]}\n";
    }
    // The findings are with the reader before anything is written, which may fail.
    std::fflush(stdout);
    std::cout.flush();
    if (!failed_) buffers_.write(wanted_.overwrite);
    return static_cast<int>(failed_ || errors_ ? ExitCode::kFinding : ExitCode::kGood);
  }

 private:
  static void require_arguments(const LaunchWords& words, const Kernel& kernel) {
    const auto parameters = kernel.parameters();
    // Their number is the launch's to refuse.
    if (words.arguments.size() != parameters.size()) return;
    for (size_t i = 0; i < parameters.size(); ++i) require_fit(words.arguments[i], kernel, i);
  }

  void launch_one(const LaunchWords& words, const Kernel& kernel) {
    LaunchConfig config = config_of(words, kernel);
    if (!words.arguments.empty() || kernel.parameters().empty()) arguments_.clear();
    for (size_t i = 0; i < words.arguments.size(); ++i) {
      const bool has = i < kernel.parameters().size();
      const uint32_t align = has ? kernel.parameters()[i].align : 1;
      arguments_.push_back(buffers_.make(words.arguments[i], align));
    }
    config.arguments = arguments_;

    Counters counters;
    Races races;
    Options options = wanted_.launch_options();
    options.observers = {&counters};
    if (wanted_.checkers) options.observers.push_back(&races);
    GlobalRaces global_races;
    if (wanted_.global_races) options.observers.push_back(&global_races);
    const LaunchResult result = launch(module_, kernel.name(), config, memory_, options);
    const Filtered findings = filter(result.findings, kernel, filter_);
    failed_ = result.fault.has_value();
    errors_ = errors_ || findings.errors();
    if (wanted_.json) {
      add_document(kernel, config, result, findings, counters.report());
    } else {
      print(kernel, config, result, findings, counters.report());
    }
  }

  void add_document(const Kernel& kernel, const LaunchConfig& config, const LaunchResult& result,
                    const Filtered& findings, const CountReport& report) {
    using observe::json_string;
    documents_ += documents_.empty() ? "" : ",";
    documents_ += observe::json_object(
        {{"kernel", json_string(kernel.name())},
         {"readable", json_string(kernel.readable_name())},
         {"grid", json_extents(config.grid)},
         {"block", json_extents(config.block)},
         {"cluster", json_extents(config.cluster)},
         {"dynamic_shared_bytes", std::to_string(config.dynamic_shared_bytes)},
         {"result", json(result, findings, report, hints(report, module_.file_name()))}});
  }

  void print(const Kernel& kernel, const LaunchConfig& config, const LaunchResult& result,
             const Filtered& findings, const CountReport& report) {
    const size_t most = wanted_.all ? SIZE_MAX : kLongestMessage;
    std::cout << kernel.readable_name() << ": grid " << show(config.grid) << ", block "
              << show(config.block) << ", cluster " << show(config.cluster) << ", "
              << config.dynamic_shared_bytes << " bytes of dynamic shared memory\n";
    std::cout << capped(result.printed, most, "--all shows them");
    if (result.fault) {
      std::cout << capped(result.fault->format() + "\n", most, "--all shows them");
      return;
    }
    std::cout << format(report.total) << std::flush;
    if (wanted_.by_line) print_lines(report);
    std::fflush(stdout);
    if (wanted_.hints) std::cout << format(hints(report, module_.file_name()));
    std::cout << format(findings.findings, kernel, most);
    if (findings.left_out != 0) std::cout << findings.left_out << " findings are ignored\n";
  }

  const LaunchOptions& wanted_;
  const FindingFilter filter_{wanted_.ignored, wanted_.comments};
  const Module module_;
  Memory memory_;
  Buffers buffers_;
  std::vector<Argument> arguments_;
  std::string documents_;
  bool failed_ = false, errors_ = false;
};

}  // namespace

int run_kernel(const std::vector<std::string>& words) {
  const LaunchOptions wanted = parse_launch(words);
  return Run(wanted).run();
}

}  // namespace ptxvm::tools
