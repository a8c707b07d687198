// SPDX-License-Identifier: MIT
#include "harness/cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>

#include "harness/attention/inputs.h"
#include "harness/io/file.h"
#include "harness/results/json_file.h"
#include "harness/results/results.h"

namespace fa::cli {
namespace {

template <typename Number>
bool parse_whole(std::string_view text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one to the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& here = cost[i * width + j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      const std::size_t replaced = cost[(i - 1) * width + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      here = std::min({cost[(i - 1) * width + j] + 1, cost[i * width + j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        here = std::min(here, cost[(i - 2) * width + j - 2] + 1);
      }
    }
  }
  return cost.back();
}

[[noreturn]] void unknown_rung(const std::string& word) {
  if (word == to_string(Family::own)) {
    throw UsageError(
        "no rung is of the family 'own': kernels/own had no .cu file with an FA_RUNG row");
  }
  std::vector<std::string> words{"all"}, families;
  for (const Rung& rung : catalogue()) {
    words.emplace_back(rung.id);
    words.emplace_back(rung.name);
    words.emplace_back(rung.name.substr(rung.name.find('_') + 1));
    const std::string family(to_string(rung.family));
    if (families.empty() || families.back() != family) families.push_back(family);
  }
  words.insert(words.end(), families.begin(), families.end());
  std::string small = word;
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  const std::string near = nearest(small, words);
  throw UsageError(fmt::format(
      "rung '{}' is unknown{}; allowed: an id or name of fa list, a family ({}), all", word,
      near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), fmt::join(families, ", ")));
}

}  // namespace

std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t min,
                           std::int64_t max) {
  std::int64_t value = 0;
  if (!parse_whole(text, value) || value < min || value > max) {
    throw UsageError(
        fmt::format("{} '{}' is not a whole number from {} to {}", name, text, min, max));
  }
  return value;
}

std::uint64_t parse_seed(std::string_view name, std::string_view text) {
  std::uint64_t value = 0;
  if (!parse_whole(text, value)) {
    throw UsageError(
        fmt::format("{} '{}' is not a whole number from 0 to {}", name, text, UINT64_MAX));
  }
  return value;
}

double parse_spread(std::string_view name, std::string_view text) {
  double value = 0;
  const bool in_range = parse_whole(text, value) && value >= InputKind::kLeastSpread &&
                        value <= InputKind::kGreatestSpread;
  if (!in_range) {
    throw UsageError(fmt::format("{} '{}' is not a number from {} to {}", name, text,
                                 InputKind::kLeastSpread, InputKind::kGreatestSpread));
  }
  return value;
}

std::vector<std::string> split_list(std::string_view name, std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    if (words.back().empty()) {
      throw UsageError(fmt::format("{} '{}' has an empty entry", name, text));
    }
    if (std::count(words.begin(), words.end(), words.back()) > 1) {
      throw UsageError(fmt::format("{} '{}' names {} twice", name, text, words.back()));
    }
    begin = end + 1;
  }
  return words;
}

std::size_t choice_index(std::string_view name, const std::string& text,
                         const std::vector<std::string>& words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) {
    throw UsageError(
        fmt::format("{} '{}' is unknown; allowed: {}", name, text, fmt::join(words, ", ")));
  }
  return static_cast<std::size_t>(found - words.begin());
}

std::string choice_type(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, "|"));
}

std::vector<std::int64_t> parse_integers(std::string_view name, std::string_view text,
                                         std::int64_t min, std::int64_t max) {
  std::vector<std::int64_t> values;
  for (const std::string& word : split_list(name, text)) {
    values.push_back(parse_integer(name, word, min, max));
  }
  return values;
}

CLI::Option* add_integers(CLI::App& app, const std::string& name, std::vector<std::int64_t>& values,
                          std::int64_t min, std::int64_t max, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&values, name, min, max](const std::string& text) {
            values = parse_integers(name, text, min, max);
          },
          help)
      ->type_name("N,N,...");
}

CLI::Option* add_rung(CLI::App& app, std::string& word) {
  return app.add_option("rung", word, "Rung: id (06 or 6) or name (06_batched, batched)")
      ->required();
}

CLI::Option* add_rungs(CLI::App& app, std::vector<std::string>& words,
                       const std::string& otherwise) {
  return app.add_option("rungs", words, "Rungs: ids, names, a family, " + otherwise);
}

std::string parse_tile(std::string_view name, std::string_view text) {
  if (!text.empty()) return std::string(text);
  throw UsageError(fmt::format(
      "{} '' is not a tile, such as 64x32w2; fa list --json has those of a rung", name));
}

CLI::Option* add_tile(CLI::App& app, std::string& tile) {
  return app
      .add_option_function<std::string>(
          "--tile", [&tile](const std::string& text) { tile = parse_tile("--tile", text); },
          "Another instance of the rung, such as 64x32w2 (fa list --json has them)")
      ->type_name("TILE");
}

void add_no_ablations(CLI::App& app, bool& no_ablations) {
  app.add_flag("--no-ablations", no_ablations, "Only each rung's own tile");
}

void add_exact_buffers(CLI::App& app, bool& exact) {
  app.add_flag("--exact-buffers", exact,
               "No red zones around the tensors: compute-sanitizer then sees every access outside");
}

CLI::Option* add_seed(CLI::App& app, std::uint64_t& seed) {
  return app
      .add_option_function<std::string>(
          "--seed", [&seed](const std::string& text) { seed = parse_seed("--seed", text); },
          "Seed of the inputs (default 1)")
      ->type_name("S");
}

CLI::Option* add_device(CLI::App& app, std::string& device) {
  return add_choice<std::string>(
      app, "--device", device, {{"auto", "auto"}, {"gpu", "gpu"}, {"vm", "vm"}},
      "Where it runs (default auto: the GPU where there is one, else the virtual machine)");
}

void add_vm_options(CLI::App& app, VmOptions& options) {
  constexpr int kMaxThreads = 1024;
  add_integer(app, "--threads", options.threads, 1, kMaxThreads,
              "Virtual machine: host threads (default: all cores)");
  app.add_flag("--reversed", options.reversed,
               "Virtual machine: warps and blocks take their turns last to first");
  add_integer(app, "--max-steps", options.max_steps, 1, std::numeric_limits<std::int64_t>::max(),
              "Virtual machine: instructions of all warps before a launch is stopped (default: far "
              "more than the problem needs)");
  app.add_flag_callback(
      "--no-checkers", [&options] { options.checkers = false; },
      "Virtual machine: do not look for races and copies that nobody waits for (faster)");
}

std::string nearest(std::string_view word, const std::vector<std::string>& words) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : words) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::vector<const Rung*> select_rungs(const std::vector<std::string>& words) {
  const std::vector<std::string> all{"all"};
  std::vector<const Rung*> meant;
  for (const std::string& word : words.empty() ? all : words) {
    const std::vector<const Rung*> matches = match_rungs(word);
    if (matches.empty()) unknown_rung(word);
    meant.insert(meant.end(), matches.begin(), matches.end());
  }
  std::vector<const Rung*> selected;
  for (const Rung& rung : catalogue()) {
    if (std::find(meant.begin(), meant.end(), &rung) != meant.end()) selected.push_back(&rung);
  }
  return selected;
}

const Rung& select_rung(const std::string& word) {
  const std::vector<const Rung*> matches = select_rungs({word});
  if (matches.size() != 1) {
    std::vector<std::string> ids;
    ids.reserve(matches.size());
    for (const Rung* rung : matches) ids.emplace_back(rung->id);
    constexpr std::size_t kMostIds = 20;
    const std::string some =
        ids.size() <= kMostIds ? fmt::format(": {}", fmt::join(ids, ", ")) : "; fa list shows them";
    throw UsageError(fmt::format("'{}' means {} rungs, one is needed{}", word, ids.size(), some));
  }
  return *matches.front();
}

namespace {

/// Runs a check of a file and names the option in what it throws.
template <typename Check>
void for_option(const char* option, Check check) {
  try {
    check();
  } catch (const io::RefusedFile& error) {
    throw io::RefusedFile(fmt::format("{}: {}", option, error.what()));
  } catch (const io::FileError& error) {
    throw io::FileError(fmt::format("{}: {}", option, error.what()));
  }
}

}  // namespace

CLI::Option* add_file(CLI::App& app, const std::string& name, std::filesystem::path& path,
                      const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&path, name](const std::string& text) {
            if (text.empty()) throw UsageError(name + " '' is not the name of a file");
            if (text == "-") {
              throw UsageError(name + " takes no standard stream; ./- is a file of that name");
            }
            path = text;
          },
          help)
      ->type_name("FILE");
}

void allow_beside(const CLI::App& app, const std::string& mode,
                  const std::vector<std::string>& allowed) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == mode) continue;
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    std::vector<std::string> options;
    std::copy_if(allowed.begin(), allowed.end(), std::back_inserter(options),
                 [](const std::string& each) { return each.starts_with("--"); });
    throw UsageError(fmt::format("{} has no effect beside {}; allowed: {}", name, mode,
                                 fmt::join(options, ", ")));
  }
}

void require_writable_path(const char* option, const std::filesystem::path& path) {
  if (path.empty()) return;
  for_option(option, [&] { io::require_writable(path); });
}

void require_results_file(const char* option, const std::filesystem::path& path, bool overwrite) {
  if (path.empty()) return;
  require_writable_path(option, path);
  if (!overwrite) read_results(path);
}

void require_own_file(const char* option, const std::filesystem::path& path,
                      std::string_view beginning, bool overwrite) {
  if (path.empty()) return;
  require_writable_path(option, path);
  if (!overwrite) for_option(option, [&] { io::require_replaceable(path, beginning); });
}

void require_new_file(const char* option, const std::filesystem::path& path, bool overwrite) {
  require_own_file(option, path, "", overwrite);
}

void write_new_json(const std::filesystem::path& path, const Json& document, bool overwrite) {
  if (path.empty()) return;
  const std::string text = document_text(document);
  io::write_replaceable(path, std::array<std::string_view, 1>{text}, "", overwrite);
}

}  // namespace fa::cli
