// What several commands read from the command line, with errors that name the value and what is
// allowed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/attention/inputs.h"
#include "harness/attention/problem.h"
#include "harness/bench/rounds.h"
#include "harness/device/vm.h"
#include "kernels/catalogue.h"

namespace fa::cli {

/// The whole text as a number in [min, max]; "12abc", "1.5" and "" are errors. `name` is for them.
std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t min,
                           std::int64_t max);
std::uint64_t parse_seed(std::string_view name, std::string_view text);
double parse_spread(std::string_view name, std::string_view text);
/// "a,b": at least one word, none empty, no repeats.
std::vector<std::string> split_list(std::string_view name, std::string_view text);
/// "512,1024": at least one number, no repeats.
std::vector<std::int64_t> parse_integers(std::string_view name, std::string_view text,
                                         std::int64_t min, std::int64_t max);

/// Largest extents that are taken from the command line; a rung may take less.
inline constexpr std::int64_t kMaxBatchOrHeads = 65535;
inline constexpr std::int64_t kMaxSequence = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxHeadDim = 1024;

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

CLI::Option* add_seed(CLI::App& app, std::uint64_t& seed);
/// --inputs and --spread.
std::vector<CLI::Option*> add_inputs(CLI::App& app, InputKind& inputs);
CLI::Option* add_device(CLI::App& app, std::string& device);
/// --threads, --reversed, --no-checkers: how the virtual machine runs.
void add_vm_options(CLI::App& app, VmOptions& options);

/// Entry of `words` that `word` was probably meant to be; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& words);

/// The rungs that the words mean, in ladder order, each once. No words mean "all". Throws
/// UsageError for a word that means none.
std::vector<const Rung*> select_rungs(const std::vector<std::string>& words);

/// The one rung that the word means.
const Rung& select_rung(const std::string& word);

/// Throws UsageError unless the file can be created, or replaced, there.
void require_writable_path(const char* option, const std::filesystem::path& path);

/// The same of a file that is written whole, never continued: only `overwrite` replaces one. An
/// empty path is no file.
void require_new_file(const char* option, const std::filesystem::path& path, bool overwrite);

}  // namespace fa::cli
