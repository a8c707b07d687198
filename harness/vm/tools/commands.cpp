// SPDX-License-Identifier: MIT
#include "tools/commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>

#include "io/file.h"
#include "ptxvm/findings.h"
#include "ptxvm/module.h"
#include "tools/arguments.h"
#include "tools/help.h"

namespace ptxvm::tools {
namespace {

struct Command {
  std::string_view name;
  int (*run)(const std::vector<std::string>&);
  std::string_view help;
};
constexpr Command kCommands[] = {{"run", run_kernel, kRunHelp},
                                 {"exec", exec_program, kExecHelp},
                                 {"check", check, kCheckHelp},
                                 {"list", list, kListHelp},
                                 {"isa", list_instructions, kIsaHelp}};

bool contains(const std::vector<std::string>& words, std::string_view wanted) {
  return std::ranges::find(words, wanted) != words.end();
}

int code(ExitCode c) {
  return static_cast<int>(c);
}

int fail(ExitCode c, std::string_view message) {
  std::cerr << "ptxvm: error: " << message << "\n";
  return code(c);
}

int refuse(const Error& error, bool all) {
  std::string text;
  for (const Diagnostic& d : error.diagnostics()) text += "ptxvm: " + d.format() + "\n";
  std::cerr << capped(std::move(text), all ? 0 : kLongestMessage, "--all shows them");
  return code(ExitCode::kRefused);
}

int dispatch(const std::vector<std::string>& words) {
  const std::string name = words.empty() ? "" : words.front();
  if (name == "--help" || name == "-h" || name == "--version") {
    std::cout << (name == "--version" ? kVersion : kHelp);
    return code(ExitCode::kGood);
  }
  std::string allowed;
  for (const Command& command : kCommands) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(command.name);
    if (command.name != name) continue;
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    // Behind its program the words of exec are the program's.
    const std::vector<std::string> own(
        rest.begin(), command.run == exec_program && !rest.empty() ? rest.begin() + 1 : rest.end());
    if (!contains(own, "--help") && !contains(own, "-h")) return command.run(rest);
    std::cout << command.help;
    return code(ExitCode::kGood);
  }
  throw UsageError((name.empty() ? "no command given" : "command '" + name + "' is unknown") +
                   "; allowed: " + allowed + "; see ptxvm --help");
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
  } catch (const io::RefusedFile& e) {
    return fail(ExitCode::kRefused, e.what());
  } catch (const MemoryError& e) {
    return fail(ExitCode::kEnvironment, e.what());
  } catch (const FileError& e) {
    return fail(ExitCode::kEnvironment, e.what());
  } catch (const Error& e) {
    return refuse(e, contains(arguments, "--all"));
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kEnvironment, "not enough memory");
  }
}

}  // namespace ptxvm::tools
