// SPDX-License-Identifier: MIT
// fa completions: a script that lets a shell complete the command line.
#include <fmt/format.h>

#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/completion_scripts.h"

namespace fa::cli {
namespace {

enum class Shell { bash, zsh };

/// What stands for a rung.
std::vector<std::string> rung_words() {
  std::vector<std::string> words{"all"};
  for (const Rung& rung : catalogue()) {
    words.emplace_back(rung.id);
    words.emplace_back(rung.name);
  }
  return words;
}

class CompletionsCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app_ = &app;
    add_choice<Shell>(app, "shell", shell_, {{"bash", Shell::bash}, {"zsh", Shell::zsh}},
                      "bash: eval \"$(fa completions bash)\"; zsh: a file _fa in a folder of fpath")
        ->required();
  }

  Exit execute() override {
    const CLI::App& fa = *app_->get_parent();
    fmt::print("{}", shell_ == Shell::bash ? bash_completions(fa, rung_words())
                                           : zsh_completions(fa, rung_words()));
    return Exit::ok;
  }

 private:
  CLI::App* app_ = nullptr;
  Shell shell_ = Shell::bash;
};

}  // namespace

std::unique_ptr<Command> make_completions_command() {
  return std::make_unique<CompletionsCommand>();
}

}  // namespace fa::cli
