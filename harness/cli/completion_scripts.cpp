// SPDX-License-Identifier: MIT
#include "harness/cli/completion_scripts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fa::cli {
namespace {

/// What follows an option: a file, one of some words, or something that cannot be completed.
struct Value {
  bool file = false;
  std::vector<std::string> choices;
};

struct Named {
  std::string name;  ///< "--json"
  std::string help;
  bool takes_value = false;
  Value value;
};

Value value_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  Value value{.file = type == "FILE", .choices = {}};
  if (type.find('|') == std::string::npos) return value;
  for (std::size_t at = 0; at <= type.size();) {
    const std::size_t end = std::min(type.find('|', at), type.size());
    const std::string choice = type.substr(at, end - at);
    if (choice.find(',') == std::string::npos) value.choices.push_back(choice);  // not "N,N,..."
    at = end + 1;
  }
  return value;
}

std::vector<Named> options_of(const CLI::App& app) {
  std::vector<Named> options;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      options.push_back({.name = "--" + name,
                         .help = option->get_description(),
                         .takes_value = option->get_expected_min() > 0,
                         .value = value_of(*option)});
    }
  }
  return options;
}

/// What may stand for the positional arguments: `words`, unless the option names its own.
std::vector<std::string> positional_words(const CLI::App& app,
                                          const std::vector<std::string>& words) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty() || !option->get_snames().empty()) continue;
    const std::vector<std::string> choices = value_of(*option).choices;
    return choices.empty() ? words : choices;
  }
  return {};
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string bash_value(const std::string& command, const Named& option) {
  const std::string reply = option.value.file
                                ? R"(COMPREPLY=($(compgen -f -- "$word")))"
                                : fmt::format(R"(COMPREPLY=($(compgen -W "{}" -- "$word")))",
                                              fmt::join(option.value.choices, " "));
  return fmt::format("    \"{} {}\") {}; return ;;\n", command, option.name, reply);
}

/// Within a quoted specification of _arguments.
std::string zsh_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh_option(const Named& option) {
  std::string action;
  if (option.takes_value) {
    action = option.value.file ? ":file:_files"
                               : fmt::format(":value:({})", fmt::join(option.value.choices, " "));
  }
  return fmt::format("'{}[{}]{}'", option.name, zsh_escaped(option.help), action);
}

}  // namespace

std::string bash_completions(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  std::string offers, cases;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    std::vector<std::string> offered;
    for (const Named& option : options_of(*command)) {
      offered.push_back(option.name);
      if (option.takes_value) cases += bash_value(command->get_name(), option);
    }
    for (const std::string& word : positional_words(*command, words)) offered.push_back(word);
    offers +=
        fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), fmt::join(offered, " "));
  }
  // clang-format off
  return fmt::format(R"sh(# Completions of {0} for bash: eval "$({0} completions bash)"
_{0}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{1} help --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{2}  esac
  case "${{COMP_WORDS[1]}}" in
    help) words="{1}" ;;
{3}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -F _{0} {0}
)sh",
                     app.get_name(), fmt::join(names, " "), cases, offers);
  // clang-format on
}

std::string zsh_completions(const CLI::App& app, const std::vector<std::string>& words) {
  std::string commands, cases;
  for (const CLI::App* command : commands_of(app)) {
    commands +=
        fmt::format("    '{}:{}'\n", command->get_name(), zsh_escaped(command->get_description()));
    std::vector<std::string> specifications;
    for (const Named& option : options_of(*command)) specifications.push_back(zsh_option(option));
    if (const auto offered = positional_words(*command, words); !offered.empty()) {
      specifications.push_back(fmt::format("'*:word:({})'", fmt::join(offered, " ")));
    }
    cases += fmt::format("    {}) _arguments {} ;;\n", command->get_name(),
                         fmt::join(specifications, " "));
  }
  // clang-format off
  return fmt::format(R"sh(#compdef {0}
# Completions of {0} for zsh: a file _{0} in a folder of $fpath.
_{0}() {{
  local -a commands
  commands=(
{1}    'help:Help on a command'
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local name=$words[2]
  shift words
  (( CURRENT-- ))
  case $name in
    help) _describe command commands ;;
{2}  esac
}}
compdef _{0} {0}
)sh",
                     app.get_name(), commands, cases);
  // clang-format on
}

}  // namespace fa::cli
