#include "tools/commands.h"

#include <fstream>
#include <iostream>
#include <new>

#include "isa/table.h"
#include "ptxvm/module.h"

namespace ptxvm::tools {
namespace {

constexpr std::string_view kUsage =
    "usage: ptxvm list FILE.ptx      entries, their parameters and memory, what is not supported\n"
    "       ptxvm isa [MNEMONIC]     instructions that run, or all that begin with MNEMONIC\n";

int code(ExitCode c) {
  return static_cast<int>(c);
}

int fail(ExitCode c, std::string_view message) {
  std::cerr << "ptxvm: error: " << message << "\n";
  return code(c);
}

std::string show(Dim3 d) {
  return std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z);
}

int list(const std::string& path) {
  if (!std::ifstream(path)) return fail(ExitCode::kEnvironment, path + ": cannot be read");
  const Module module = Module::load(path);
  std::cout << path << ": target " << module.target() << ", PTX " << module.isa_version() / 10
            << "." << module.isa_version() % 10 << "\n";
  for (const Kernel& k : module.kernels()) {
    std::cout << "\n" << k.name() << "\n";
    for (const Parameter& p : k.parameters()) {
      std::cout << "  param   ." << p.type << " " << p.name << " (" << p.size << " bytes at "
                << p.offset << ")\n";
    }
    std::cout << "  shared  " << k.static_shared_bytes() << " bytes"
              << (k.uses_dynamic_shared() ? " and dynamic" : "") << "\n";
    if (k.local_bytes() != 0) std::cout << "  local   " << k.local_bytes() << " bytes a thread\n";
    if (k.max_threads()) std::cout << "  maxntid " << show(*k.max_threads()) << "\n";
    if (k.required_threads()) std::cout << "  reqntid " << show(*k.required_threads()) << "\n";
    std::cout << "  " << k.instructions().size() << " instructions in " << k.block_count()
              << " blocks\n";
    for (const Diagnostic& d : k.unsupported()) std::cout << d.format() << "\n";
  }
  return code(ExitCode::kGood);
}

int isa(const std::string& prefix) {
  size_t count = 0;
  for (const isa::Row& row : isa::rows()) {
    if (!row.pattern.starts_with(prefix)) continue;
    ++count;
    if (row.reason.empty()) {
      std::cout << row.pattern << "  " << row.operands << "  (sm_" << row.sm << ")\n";
    } else {
      std::cout << row.pattern << "  not run here: " << row.reason << "\n";
    }
  }
  if (count == 0) return fail(ExitCode::kUsage, "no instruction begins with '" + prefix + "'");
  return code(ExitCode::kGood);
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  try {
    if (arguments.size() == 2 && arguments[0] == "list") return list(arguments[1]);
    if (arguments.size() == 1 && arguments[0] == "isa") return isa("");
    if (arguments.size() == 2 && arguments[0] == "isa") return isa(arguments[1]);
    std::cerr << kUsage;
    return code(ExitCode::kUsage);
  } catch (const Error& e) {
    for (const Diagnostic& d : e.diagnostics()) std::cerr << "ptxvm: " << d.format() << "\n";
    return code(ExitCode::kRefused);
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kEnvironment, "not enough memory");
  }
}

}  // namespace ptxvm::tools
