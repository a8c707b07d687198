#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <new>
#include <utility>

#include "harness/attention/npy.h"
#include "harness/bench/environment.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/terminal.h"
#include "harness/io/file.h"
#include "harness/io/interrupt.h"

namespace fa::cli {
namespace {

struct Entry {
  const char* name;
  const char* about;
  std::unique_ptr<Command> command;
  CLI::App* app = nullptr;
};

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
  const std::string near = nearest(word, names);
  throw UsageError(fmt::format("command '{}' is unknown{}; allowed: {}", word,
                               near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near),
                               fmt::join(names, ", ")));
}

Exit dispatch(const std::vector<std::string>& words, std::vector<Peer> peers) {
  CLI::App app{"Flash Ladder: attention kernels, one idea a rung", "fa"};
  app.set_version_flag("--version", project_version());
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.footer(
      "Exit codes: 0 fine; 1 a result is wrong; 2 usage or an unsupported problem; 3 no GPU, "
      "no memory, no PTX, cannot write; 130 interrupted.");

  std::vector<Entry> entries;
  entries.push_back({"list", "List the rungs", make_list_command()});
  entries.push_back(
      {"run", "Run one rung on one problem and check its output", make_run_command(words)});
  entries.push_back({"check", "Check rungs over a set of shapes and inputs", make_check_command()});
  entries.push_back(
      {"explain", "Count what rungs do, in the virtual machine", make_explain_command(words)});
  entries.push_back(
      {"compare", "Two rungs' counts and times side by side", make_compare_command()});
  entries.push_back(
      {"bench", "Verify and time rungs on the GPU", make_bench_command(std::move(peers), words)});
  entries.push_back(
      {"tune", "Sweep a rung's tiles: time, registers, occupancy", make_tune_command(words)});
  entries.push_back(
      {"limits", "Time bare loops: what the card can do at best", make_limits_command(words)});
  for (Entry& entry : entries) {
    entry.app = app.add_subcommand(entry.name, entry.about);
    entry.app->allow_extras();
    entry.command->declare(*entry.app);
  }

  // CLI11 takes the words last to first.
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) {
      throw UsageError(error.what());
    }
    app.exit(error);  // --help and --version, on stdout
    return Exit::ok;
  }
  for (Entry& entry : entries) {
    if (!entry.app->parsed()) continue;
    refuse_unknown(*entry.app);
    return entry.command->execute();
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
  } catch (const io::Interrupted&) {
    print_note("interrupted");
    return Exit::interrupted;
  } catch (const KernelFault& fault) {
    fmt::print("{}: {}\n{}\n", coloured("wrong", Colour::red), fault.what(), fault.details);
    return Exit::wrong;
  } catch (const std::bad_alloc&) {
    print_error("out of host memory");
    return Exit::environment;
  } catch (const std::exception& error) {
    print_error(error.what());
    return Exit::environment;
  }
}

}  // namespace

Exit run_command_line(const std::vector<std::string>& words, std::vector<Peer> peers) noexcept {
  try {
    Exit result = Exit::environment;
    const io::InterruptScope signals;
    try {
      result = dispatch(words, std::move(peers));
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
