// SPDX-License-Identifier: MIT
#include "tools/commands.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>

#include "harness/io/file.h"
#include "ptxvm/module.h"
#include "tools/launch_options.h"

namespace ptxvm::tools {
namespace {

constexpr std::string_view kUsage =
    "ptxvm: runs PTX on the CPU, and counts\n"
    "\n"
    "  ptxvm run FILE.ptx --entry NAME [--grid X[,Y,Z]] --block X[,Y,Z] [--cluster X[,Y,Z]]\n"
    "            [--smem BYTES] [--arg ARGUMENT]... [--by-line] [--threads N] [--reversed]\n"
    "            [--no-checkers] [--overwrite]\n"
    "      One launch; prints counts and findings. Arguments in the kernel's order:\n"
    "        Q.npy                       buffer with the contents of a file\n"
    "        out:O.npy:float16[2,64]     buffer of NaN, written to the file afterwards;\n"
    "                                    over a file that is no .npy only with --overwrite\n"
    "        zero:NAME:float32[64]       buffer of zeros\n"
    "        i32:N u32:N i64:N u64:N f32:X f64:X\n"
    "      Element types: float16, float32, float64, int32.\n"
    "  ptxvm list FILE.ptx\n"
    "      Entries, their parameters and memory, what is not supported.\n"
    "  ptxvm isa [MNEMONIC] [--json]\n"
    "      Instructions that run, or all that begin with MNEMONIC.\n"
    "\n"
    "Exit codes: 0 good; 1 the kernel failed or a checker has a finding; 2 the command line or an\n"
    "input is refused; 3 a file cannot be read or written, or memory is full.\n";

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
  const Module module = load_module(path);
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

int dispatch(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words.front();
  if (command == "--help" || command == "-h") {
    std::cout << kUsage;
    return code(ExitCode::kGood);
  }
  const std::vector<std::string> rest(words.empty() ? words.end() : words.begin() + 1, words.end());
  if (command == "run") return run_kernel(rest);
  if (command == "isa") return list_instructions(rest);
  if (command == "list") {
    if (rest.size() != 1) throw UsageError("list takes one PTX file");
    return list(rest.front());
  }
  throw UsageError((command.empty() ? "no command given" : "command '" + command + "' is unknown") +
                   "; allowed: run, list, isa; see ptxvm --help");
}

}  // namespace

Module load_module(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  // Opening what is not a regular file may wait for ever; the library refuses it unopened.
  const bool openable = !fs::is_regular_file(status) || std::ifstream(path).is_open();
  if (!fs::exists(status) || !openable) throw FileError(path + ": cannot be read");
  return Module::load(path);
}

int run(const std::vector<std::string>& arguments) {
  try {
    const int result = dispatch(arguments);
    std::cout.flush();
    // An earlier failure left its mark.
    if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return fail(ExitCode::kEnvironment, "cannot write to standard output");
    }
    return result;
  } catch (const UsageError& e) {
    return fail(ExitCode::kRefused, e.what());
  } catch (const InputError& e) {
    return fail(ExitCode::kRefused, e.what());
  } catch (const fa::io::RefusedFile& e) {
    return fail(ExitCode::kRefused, e.what());
  } catch (const MemoryError& e) {
    return fail(ExitCode::kEnvironment, e.what());
  } catch (const FileError& e) {
    return fail(ExitCode::kEnvironment, e.what());
  } catch (const Error& e) {
    for (const Diagnostic& d : e.diagnostics()) std::cerr << "ptxvm: " << d.format() << "\n";
    return code(ExitCode::kRefused);
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kEnvironment, "not enough memory");
  }
}

}  // namespace ptxvm::tools
