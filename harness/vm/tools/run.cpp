// SPDX-License-Identifier: MIT
// ptxvm run: one launch of any kernel, with arguments from the command line and from files.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>

#include "harness/io/file.h"
#include "harness/io/memory.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"
#include "tools/commands.h"
#include "tools/launch_options.h"

namespace ptxvm::tools {
namespace {

/// Makes the buffers and fills in the arguments; remembers what is to be written.
class Arguments {
 public:
  explicit Arguments(Memory& memory) : memory_(memory) {}

  Argument operator()(const InputFile& input) {
    const Array array = read_npy(input.path);
    return Argument::pointer(memory_.upload(free_name(stem(input.path)), array.bytes));
  }
  Argument operator()(const OutputFile& output) {
    const Address address = memory_.allocate(free_name(stem(output.path)), output.type.bytes());
    outputs_.emplace_back(output, address);
    return Argument::pointer(address);
  }
  Argument operator()(const ZeroBuffer& zero) {
    return Argument::pointer(
        memory_.allocate(free_name(zero.name), zero.type.bytes(), Fill::kZero));
  }
  Argument operator()(const Scalar& scalar) { return scalar.value; }

  void write(bool overwrite) const {
    for (const auto& [output, address] : outputs_) {
      write_npy(output.path, output.type, memory_.bytes(address), overwrite);
    }
  }

 private:
  static std::string stem(const std::string& path) {
    return std::filesystem::path(path).stem().string();
  }
  std::string free_name(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 2; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
    return name;
  }

  Memory& memory_;
  std::set<std::string> names_;
  std::vector<std::pair<OutputFile, Address>> outputs_;
};

/// Before anything is run: outputs can be written and are none of the other files.
void require_outputs(const LaunchOptions& wanted) {
  std::vector<fa::io::NamedFile> read{{"the PTX", wanted.file}}, written;
  for (const KernelArgument& argument : wanted.arguments) {
    if (const auto* input = std::get_if<InputFile>(&argument))
      read.push_back({"--arg", input->path});
    if (const auto* output = std::get_if<OutputFile>(&argument)) {
      written.push_back({"--arg out:", output->path});
    }
  }
  fa::io::require_distinct(written, read);
  for (const fa::io::NamedFile& file : written) {
    fa::io::require_writable(file.path);
    if (!wanted.overwrite) fa::io::require_replaceable(file.path, kNpyMagic);
  }
}

/// Asked of the host before it is taken: all buffers, and the largest file while it is copied.
void require_memory(const LaunchOptions& wanted) {
  double buffers = 0, largest_file = 0;
  for (const KernelArgument& argument : wanted.arguments) {
    if (const auto* input = std::get_if<InputFile>(&argument)) {
      const auto bytes = static_cast<double>(read_npy_type(input->path).bytes());
      buffers += bytes;
      largest_file = std::max(largest_file, bytes);
    }
    if (const auto* output = std::get_if<OutputFile>(&argument)) {
      buffers += static_cast<double>(output->type.bytes());
    }
    if (const auto* zero = std::get_if<ZeroBuffer>(&argument)) {
      buffers += static_cast<double>(zero->type.bytes());
    }
  }
  const double needed = buffers + largest_file;
  const std::optional<uint64_t> available = fa::io::available_memory();
  if (!available || needed <= static_cast<double>(*available)) return;
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(),
                "the arguments need %.0f bytes of memory, %llu are available", needed,
                static_cast<unsigned long long>(*available));
  throw MemoryError(text.data());
}

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

void print_finding(const Finding& finding) {
  // "error: file:line: ..." with the checker's name in place of the first word.
  std::string text = finding.where.format();
  if (finding.where.message.empty()) text = finding.message;
  if (text.starts_with("error: ")) text.erase(0, 7);
  std::cout << finding.checker << ": " << text << "\n";
  if (finding.count > 1) std::cout << "  seen " << finding.count << " times\n";
}

}  // namespace

int run_kernel(const std::vector<std::string>& words) {
  const LaunchOptions wanted = parse_launch(words);
  const Module module = load_module(wanted.file);
  module.kernel(wanted.entry);
  require_outputs(wanted);
  require_memory(wanted);

  Memory memory;
  Arguments arguments(memory);
  LaunchConfig config;
  config.grid = wanted.grid;
  config.block = wanted.block;
  config.cluster = wanted.cluster;
  config.dynamic_shared_bytes = wanted.shared_bytes;
  for (const KernelArgument& argument : wanted.arguments) {
    config.arguments.push_back(std::visit(arguments, argument));
  }

  Counters counters;
  Options options;
  options.threads = wanted.threads;
  if (wanted.reversed) options.warp_order = options.cta_order = Order::kReversed;
  options.observers = {&counters};
  Races races;
  if (wanted.checkers) options.observers.push_back(&races);
  const LaunchResult result = launch(module, wanted.entry, config, memory, options);
  if (result.fault) {
    std::cout << result.fault->format() << "\n";
    return static_cast<int>(ExitCode::kFinding);
  }
  std::cout << format(counters.report().total) << std::flush;
  if (wanted.by_line) print_lines(counters.report());
  std::fflush(stdout);
  for (const Finding& finding : result.findings) print_finding(finding);
  // The findings are with the reader before anything is written, which may fail.
  std::cout.flush();
  arguments.write(wanted.overwrite);
  return static_cast<int>(result.findings.empty() ? ExitCode::kGood : ExitCode::kFinding);
}

}  // namespace ptxvm::tools
