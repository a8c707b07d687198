// SPDX-License-Identifier: MIT
#include "harness/cli/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <regex>
#include <utility>

#include "harness/attention/npy.h"
#include "harness/cli/arguments.h"
#include "harness/cli/table.h"
#include "harness/cli/terminal.h"
#include "harness/device/device.h"
#include "harness/environment/build.h"
#include "harness/io/file.h"
#include "harness/io/interrupt.h"
#include "harness/results/results.h"

namespace fa::cli {
namespace {

/// Without the command's own handling an unknown word would be reported by CLI11 in its own words
/// and without a suggestion.
void refuse_unknown(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) return;
  const std::string& word = unknown.front();
  if (!word.starts_with("-")) {
    throw UsageError(
        fmt::format("unexpected argument '{}'; see fa {} --help", word, app.get_name()));
  }
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  const std::string near = nearest(flag, flags);
  throw UsageError(fmt::format("unknown option '{}'{}; see fa {} --help", flag,
                               near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near),
                               app.get_name()));
}

[[noreturn]] void refuse_command(const std::vector<Entry>& entries, const std::string& word) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  if (word.empty()) {
    throw UsageError(fmt::format("no command given; allowed: {}", fmt::join(names, ", ")));
  }
  std::vector<std::string> words = names;
  for (const char* other : {"help", "--help", "--version"}) words.emplace_back(other);
  const std::string near = nearest(word, words);
  const std::string meant = near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
  if (word.starts_with("-")) {
    throw UsageError(fmt::format("unknown option '{}'{}; see fa --help", word, meant));
  }
  throw UsageError(
      fmt::format("command '{}' is unknown{}; allowed: {}", word, meant, fmt::join(names, ", ")));
}

/// CLI11 says "--seq: 1 required N missing" and "rungs is required".
std::string in_our_words(const CLI::ParseError& error, const CLI::App& app) {
  const std::string text = error.what();
  const std::vector<const CLI::App*> chosen = app.get_subcommands(nullptr);
  const auto parsed = std::find_if(chosen.begin(), chosen.end(),
                                   [](const CLI::App* each) { return each->parsed(); });
  const std::string name = parsed == chosen.end() ? "" : (*parsed)->get_name() + " ";
  const std::size_t missing = text.find(": 1 required ");
  if (missing != std::string::npos) {
    return fmt::format("{} needs a value; see fa {}--help", text.substr(0, missing), name);
  }
  static const std::regex too_often("(.*): At Most (\\d+) required but received (\\d+)");
  if (std::smatch words; std::regex_match(text, words, too_often)) {
    return words[2] == "1" ? fmt::format("{} is given {} times", words[1].str(), words[3].str())
                           : fmt::format("{} takes at most {} values, not {}", words[1].str(),
                                         words[2].str(), words[3].str());
  }
  if (const std::size_t flag = text.find(" was given a disallowed"); flag != std::string::npos) {
    return fmt::format("--{} takes no value; see fa {}--help", text.substr(0, flag), name);
  }
  if (error.get_name() == "RequiredError") {
    return fmt::format("no {} given; see fa {}--help", text.substr(0, text.find(' ')), name);
  }
  return text;
}

/// "help run" as "run --help".
std::vector<std::string> as_option(const std::vector<std::string>& words,
                                   const std::vector<Entry>& entries) {
  if (words.empty() || words.front() != "help") return words;
  if (words.size() > 2) {
    throw UsageError(fmt::format("help takes one command, not {}", words.size() - 1));
  }
  if (words.size() == 1 || words[1].starts_with("-") || words[1] == "help") return {"--help"};
  const auto known = [&](const Entry& entry) { return words[1] == entry.name; };
  if (std::none_of(entries.begin(), entries.end(), known)) refuse_command(entries, words[1]);
  return {words[1], "--help"};
}

/// CLI11 sets aside what follows "--", and no command would miss it.
void refuse_separator(const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), "--") == words.end()) return;
  throw UsageError("'--' is not understood: no rung begins with a dash, and a file may be ./-name");
}

/// What CLI11 writes, in lines of 100 columns: descriptions stay in theirs.
std::string folded_help(const std::string& help) {
  constexpr std::size_t kNames = 30;
  std::string text;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find('\n', at), help.size());
    const std::string_view line = std::string_view(help).substr(at, end - at);
    at = end + 1;
    if (line.size() <= kColumns) {
      text.append(line).append("\n");
      continue;
    }
    const std::size_t names = line.starts_with(' ') ? kNames : 0;
    std::string lines = folded(line.substr(names), kColumns, std::string(names, ' '));
    text += lines.replace(0, names, line.substr(0, names));
  }
  return text;
}

Exit dispatch(const std::vector<std::string>& words, const std::vector<Entry>& entries) {
  CLI::App app{"Flash Ladder: attention kernels, one idea a rung", "fa"};
  app.set_version_flag("--version", version_text);
  app.require_subcommand(0, 1);
  app.set_help_flag("-h,--help", "Print this help; fa help COMMAND for that of a command");
  app.allow_extras();
  app.footer(
      "Exit codes: 0 fine; 1 a result is wrong; 2 usage or an unsupported problem; 3 no GPU, "
      "no memory, no PTX, cannot write; 130 interrupted.");

  std::vector<CLI::App*> apps;
  for (const Entry& entry : entries) {
    apps.push_back(app.add_subcommand(entry.name, entry.about));
    apps.back()->allow_extras();
    entry.command->declare(*apps.back());
    for (CLI::Option* option : apps.back()->get_options()) {
      const bool is_flag = option->get_items_expected_max() == 0;
      if (is_flag && option != apps.back()->get_help_ptr()) option->disable_flag_override();
    }
  }

  // CLI11 takes the words last to first.
  const std::vector<std::string> line = as_option(words, entries);
  refuse_separator(line);
  std::vector<std::string> reversed(line.rbegin(), line.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) {
      throw UsageError(in_our_words(error, app));
    }
    // On stdout.
    if (error.get_name() == "CallForHelp") {
      fmt::print("{}", folded_help(app.help()));
    } else {
      app.exit(error);  // --version
    }
    return Exit::ok;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!apps[i]->parsed()) continue;
    refuse_unknown(*apps[i]);
    return entries[i].command->execute();
  }
  const std::vector<std::string> rest = app.remaining();
  refuse_command(entries, rest.empty() ? "" : rest.front());
}

/// The exit code of the exception in flight, after its message.
Exit report_exception() {
  try {
    throw;
  } catch (const UsageError& error) {
    print_error(error.what());
    return Exit::usage;
  } catch (const InputError& error) {
    print_error(error.what());
    return Exit::usage;
  } catch (const ForeignResults& error) {
    print_error(error.what());
    return Exit::usage;
  } catch (const io::RefusedFile& error) {
    print_error(error.what());
    return Exit::usage;
  } catch (const io::Interrupted& interrupted) {
    print_note(interrupted.note());
    return Exit::interrupted;
  } catch (const KernelFault& fault) {
    fmt::print("{}: {}\n", coloured("wrong", Colour::red), fault.what());
    if (!fault.findings.empty()) fmt::print("{}\n", text_of(fault.findings));
    return Exit::wrong;
  } catch (const std::bad_alloc&) {
    print_error("out of host memory");
    return Exit::environment;
  } catch (const std::exception& error) {
    // fmt says "cannot write to file" of a stream that has no name.
    print_error(std::ferror(stdout) != 0 ? "cannot write to standard output" : error.what());
    return Exit::environment;
  } catch (...) {
    print_error("something was thrown that is no std::exception");
    return Exit::environment;
  }
}

}  // namespace

Exit run_command_line(const std::vector<std::string>& words,
                      const std::function<std::vector<Entry>()>& make_entries) noexcept {
  try {
    Exit result = Exit::environment;
    const io::InterruptScope signals;
    try {
      result = dispatch(words, make_entries());
    } catch (...) {
      result = report_exception();
    }
    // Results that never arrived are not a success. An earlier failure left its mark.
    const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (!arrived && (result == Exit::ok || result == Exit::wrong)) {
      print_error("cannot write to standard output");
      result = Exit::environment;
    }
    return result;
  } catch (...) {
    return Exit::environment;
  }
}

}  // namespace fa::cli
