// One class a command; app.cpp lists them.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/bench/bench.h"
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

std::unique_ptr<Command> make_list_command();
std::unique_ptr<Command> make_check_command();
/// `words` is the command line, for the result file.
std::unique_ptr<Command> make_run_command(std::vector<std::string> words);
std::unique_ptr<Command> make_explain_command(std::vector<std::string> words);
std::unique_ptr<Command> make_compare_command();
std::unique_ptr<Command> make_tune_command(std::vector<std::string> words);

std::unique_ptr<Command> make_limits_command(std::vector<std::string> words);

std::unique_ptr<Command> make_bench_command(std::vector<Peer> peers,
                                            std::vector<std::string> words);

/// Runs one command line, without a program name: {"list", "--json"}. Peers take part in `bench`.
/// Every error becomes one line on stderr and an exit code; nothing is thrown.
Exit run_command_line(const std::vector<std::string>& words, std::vector<Peer> peers = {}) noexcept;

}  // namespace fa::cli
