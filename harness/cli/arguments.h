// SPDX-License-Identifier: MIT
// What several commands read from the command line, with errors that name the value and what is
// allowed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/device/vm.h"
#include "harness/results/json.h"
#include "kernels/catalogue.h"

namespace fa::cli {

/// The whole text as a number in [min, max]; "12abc", "1.5" and "" are errors. `name` is for them.
std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t min,
                           std::int64_t max);
std::uint64_t parse_seed(std::string_view name, std::string_view text);
double parse_spread(std::string_view name, std::string_view text);
/// "a,b": at least one word, none empty, no repeats.
std::vector<std::string> split_list(std::string_view name, std::string_view text);
/// Where `text` stands among `words`.
std::size_t choice_index(std::string_view name, const std::string& text,
                         const std::vector<std::string>& words);
/// "flush|warm": how help names the value, and what completions offer.
std::string choice_type(const std::vector<std::string>& words);
/// "512,1024": at least one number, no repeats.
std::vector<std::int64_t> parse_integers(std::string_view name, std::string_view text,
                                         std::int64_t min, std::int64_t max);

/// Adds an option whose value is checked by parse_integer.
template <typename Integer>
CLI::Option* add_integer(CLI::App& app, const std::string& name, Integer& value, std::int64_t min,
                         std::int64_t max, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, min, max](const std::string& text) {
            value = static_cast<Integer>(parse_integer(name, text, min, max));
          },
          help)
      ->type_name("N");
}

/// The same for a list of them.
CLI::Option* add_integers(CLI::App& app, const std::string& name, std::vector<std::int64_t>& values,
                          std::int64_t min, std::int64_t max, const std::string& help);

/// An option that takes one of a few words; each stands for a value.
template <typename Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        std::vector<std::pair<std::string, Value>> choices,
                        const std::string& help) {
  std::vector<std::string> words;
  for (const auto& [word, meant] : choices) words.push_back(word);
  const auto read = [&value, name, words, choices = std::move(choices)](const std::string& text) {
    value = choices.at(choice_index(name, text, words)).second;
  };
  return app.add_option_function<std::string>(name, read, help)->type_name(choice_type(words));
}

/// The positional arguments RUNG, and RUNGS with what none of them means.
CLI::Option* add_rung(CLI::App& app, std::string& word);
CLI::Option* add_rungs(CLI::App& app, std::vector<std::string>& words,
                       const std::string& otherwise);
/// Throws UsageError for an empty word; whether a rung has the tile, the rung says.
std::string parse_tile(std::string_view name, std::string_view text);
CLI::Option* add_tile(CLI::App& app, std::string& tile);
CLI::Option* add_seed(CLI::App& app, std::uint64_t& seed);
/// --no-ablations.
void add_no_ablations(CLI::App& app, bool& no_ablations);
CLI::Option* add_device(CLI::App& app, std::string& device);
/// --exact-buffers.
void add_exact_buffers(CLI::App& app, bool& exact);
/// --threads, --reversed, --max-steps, --no-checkers: how the virtual machine runs.
void add_vm_options(CLI::App& app, VmOptions& options);

/// Throws UsageError for a given option that has no effect beside the option `mode`: one that is
/// not among `allowed`. The message names both.
void allow_beside(const CLI::App& app, const std::string& mode,
                  const std::vector<std::string>& allowed);

/// Entry of `words` that `word` was probably meant to be; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& words);

/// The rungs that the words mean, in ladder order, each once. No words mean "all". Throws
/// UsageError for a word that means none.
std::vector<const Rung*> select_rungs(const std::vector<std::string>& words);

/// The one rung that the word means.
const Rung& select_rung(const std::string& word);

/// Adds an option that names a file; an empty name is a UsageError.
CLI::Option* add_file(CLI::App& app, const std::string& name, std::filesystem::path& path,
                      const std::string& help);

// Of a file that is going to be written, before any work is done. An empty path is no file. They
// throw io::FileError where it cannot be written, and io::RefusedFile or ForeignResults where
// something is there that only `overwrite` replaces; both name the option.

/// Anything may be there.
void require_writable_path(const char* option, const std::filesystem::path& path);
/// A result file that can be continued may be there.
void require_results_file(const char* option, const std::filesystem::path& path, bool overwrite);
/// A file with the same beginning may be there, as a former run wrote it.
void require_own_file(const char* option, const std::filesystem::path& path,
                      std::string_view beginning, bool overwrite);
/// Nothing may be there.
void require_new_file(const char* option, const std::filesystem::path& path, bool overwrite);

/// Writes the document where require_new_file() allowed it, if there is still nothing there.
void write_new_json(const std::filesystem::path& path, const Json& document, bool overwrite);

}  // namespace fa::cli
