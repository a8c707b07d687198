// SPDX-License-Identifier: MIT
// What a command is, and how a command line runs one.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"

namespace fa::cli {

class Command {
 public:
  virtual ~Command() = default;
  /// Adds positional arguments and options.
  virtual void declare(CLI::App& app) = 0;
  /// Runs with what was parsed.
  virtual Exit execute() = 0;
};

struct Entry {
  const char* name;
  const char* about;
  std::unique_ptr<Command> command;
};

/// Runs one command line, without a program name: {"list", "--json"}. Every error becomes one line
/// on stderr and an exit code; nothing is thrown. `make_entries` gives the commands that there are.
Exit run_command_line(const std::vector<std::string>& words,
                      const std::function<std::vector<Entry>()>& make_entries) noexcept;

}  // namespace fa::cli
