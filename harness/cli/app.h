// SPDX-License-Identifier: MIT
// The commands of the program fa.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"

namespace fa::cli {

class Command;

// `words` is the command line, for result files.
std::unique_ptr<Command> make_list_command();
std::unique_ptr<Command> make_run_command(std::vector<std::string> words);
std::unique_ptr<Command> make_check_command();
std::unique_ptr<Command> make_explain_command(std::vector<std::string> words);
std::unique_ptr<Command> make_compare_command();
std::unique_ptr<Command> make_plan_command();
std::unique_ptr<Command> make_tune_command(std::vector<std::string> words);
std::unique_ptr<Command> make_limits_command(std::vector<std::string> words);
std::unique_ptr<Command> make_completions_command();

/// Runs one command line, without the program's name.
Exit run_fa(const std::vector<std::string>& words) noexcept;

}  // namespace fa::cli
