// SPDX-License-Identifier: MIT
// ptxvm list and ptxvm check: what is in a module, and whether it would run.
#include <algorithm>
#include <iostream>
#include <sstream>

#include "ptxvm/findings.h"
#include "tools/arguments.h"
#include "tools/commands.h"

namespace ptxvm::tools {
namespace {

constexpr size_t kLongestName = 100;

std::string show(Dim3 d) {
  return std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z);
}

/// Names of template instances may have thousands of characters.
std::string shortened(std::string name, bool all) {
  if (!all && name.size() > kLongestName) name.replace(kLongestName - 3, std::string::npos, "...");
  return name;
}

/// nvcc begins the names of parameters with that of the kernel.
std::string parameter_name(const Kernel& kernel, const Parameter& parameter) {
  const std::string prefix = kernel.name() + "_";
  const bool repeats = kernel.readable_name() != kernel.name();
  return repeats && parameter.name.starts_with(prefix) ? parameter.name.substr(prefix.size())
                                                       : parameter.name;
}

void describe(const Kernel& k, std::ostream& out) {
  out << "\n" << k.readable_name() << "\n";
  if (k.readable_name() != k.name()) out << "  entry   " << k.name() << "\n";
  for (const Parameter& p : k.parameters()) {
    out << "  param   ." << p.type << " " << parameter_name(k, p) << " (" << p.size << " bytes at "
        << p.offset << ")\n";
  }
  out << "  shared  " << k.static_shared_bytes() << " bytes"
      << (k.uses_dynamic_shared() ? " and dynamic" : "") << "\n";
  if (k.local_bytes() != 0) out << "  local   " << k.local_bytes() << " bytes a thread\n";
  if (k.max_threads()) out << "  maxntid " << show(*k.max_threads()) << "\n";
  if (k.required_threads()) out << "  reqntid " << show(*k.required_threads()) << "\n";
  if (k.required_cluster()) out << "  cluster " << show(*k.required_cluster()) << "\n";
  out << "  " << k.instructions().size() << " instructions in " << k.block_count() << " blocks\n";
  for (const Diagnostic& d : k.errors()) out << d.format() << "\n";
  for (const Diagnostic& d : k.unsupported()) out << d.format() << "\n";
}

/// The one file of a command line, and whether --all is in it.
std::pair<std::string, bool> file_and_all(const std::string& command,
                                          const std::vector<std::string>& words) {
  std::pair<std::string, bool> out;
  for (const std::string& word : words) {
    if (word == "--all") {
      out.second = true;
    } else if (word.starts_with("-")) {
      throw UsageError("'" + word + "' is not understood; see ptxvm " + command + " --help");
    } else if (!out.first.empty()) {
      throw UsageError(command + " takes one PTX file");
    } else {
      out.first = word;
    }
  }
  if (out.first.empty()) throw UsageError(command + " takes one PTX file");
  return out;
}

}  // namespace

int list(const std::vector<std::string>& words) {
  const auto [path, all] = file_and_all("list", words);
  const Module module = load_module(path);
  std::ostringstream out;
  out << path << ": target " << module.target() << ", PTX " << module.isa_version() / 10 << "."
      << module.isa_version() % 10 << "\n";
  for (const Kernel& k : module.kernels()) describe(k, out);
  const std::vector<ModuleVariable> variables = module.variables();
  if (!variables.empty()) out << "\nvariables\n";
  for (const ModuleVariable& v : variables) {
    out << "  ." << v.space << " " << demangle(v.name) << " (" << v.bytes << " bytes)\n";
  }
  std::cout << capped(out.str(), all ? 0 : kLongestMessage,
                      "--all shows them, ptxvm check has a line a kernel");
  return static_cast<int>(ExitCode::kGood);
}

int check(const std::vector<std::string>& words) {
  const auto [path, all] = file_and_all("check", words);
  const Module module = load_module(path);
  bool good = true;
  for (const Kernel& k : module.kernels()) {
    const std::string name = shortened(k.readable_name(), all);
    const auto reasons = k.errors().empty() ? k.unsupported() : k.errors();
    if (reasons.empty()) {
      std::cout << "runs     " << name << "\n";
      continue;
    }
    good = false;
    const Diagnostic& first = reasons.front();
    std::cout << "refused  " << name << ": " << to_string(first.where) << ": " << first.message;
    if (!first.notes.empty()) std::cout << " (" << first.notes.front() << ")";
    const size_t more = reasons.size() - 1;
    if (more != 0) std::cout << ", and " << more << " more";
    std::cout << "\n";
  }
  if (module.kernels().empty()) throw UsageError(path + ": the file has no entry");
  return static_cast<int>(good ? ExitCode::kGood : ExitCode::kFinding);
}

}  // namespace ptxvm::tools
