// SPDX-License-Identifier: MIT
// fa list: the catalogue.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/table.h"
#include "harness/device/make_device.h"
#include "harness/results/json.h"
#include "harness/results/json_file.h"
#include "kernels/catalogue.h"

namespace fa::cli {
namespace {

/// `refused` of an instance: why the GPU of this machine cannot run it, else null.
Json rung_json(const Rung& rung, const DeviceDescription& device) {
  Json instances = Json::array();
  for (const Instance& instance : rung.instances) {
    const Instance* own = rung.find_instance(instance.head_dim, rung.dtype_of(instance));
    const std::optional<std::string> refused = device_refusal(rung, device, &instance);
    instances.push_back({{"entry", instance.entry},
                         {"head_dim", instance.head_dim},
                         {"dtype", to_string(rung.dtype_of(instance))},
                         {"tile", to_string(instance.tile)},
                         {"ablation", &instance != own},
                         {"refused", refused ? Json(*refused) : Json()}});
  }
  Json row{
      {"id", rung.id},
      {"name", rung.name},
      {"parent", rung.parent.empty() ? Json() : Json(rung.parent)},
      {"family", to_string(rung.family)},
      {"target", to_string(rung.target)},
      {"dtype", to_string(rung.dtype)},
      {"head_dims", rung.head_dims()},
      {"idea", rung.idea},
      {"why_large", rung.why_large.empty() ? Json() : Json(rung.why_large)},
      {"file", fmt::format("kernels/{}/{}.cu", to_string(rung.family), rung.name)},
      {"chapter", rung.family == Family::own ? Json() : Json(fmt::format("docs/{}.md", rung.name))},
      {"instances", std::move(instances)}};
  for (const auto& [capability, name] : kCapabilities) {
    row[name] = has(rung.capabilities, capability);
  }
  return row;
}

/// Compute capabilities that run it: this one and newer, or this one alone.
const char* runs_where(Target target) {
  return target == Target::sm_80 ? "8.0+" : target == Target::sm_90a ? "9.0a" : "10.0a";
}

std::string properties(const Rung& rung) {
  std::string text = to_string(rung.dtype);
  if (rung.takes(Dtype::bf16)) text += fmt::format(" {}", to_string(Dtype::bf16));
  for (const auto& [capability, name] : kCapabilities) {
    if (has(rung.capabilities, capability)) text += fmt::format(" {}", name);
  }
  return text;
}

bool contains(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

/// "batched" of 06_batched.
std::string_view short_name(const Rung& rung) {
  return rung.name.substr(rung.name.find('_') + 1);
}

/// "6" is a rung, not a digit, and "hopper" a family. "causal" is the short name of two, but also a
/// word that others have.
bool means_rungs(const std::string& word) {
  const std::vector<const Rung*> meant = match_rungs(word);
  return std::any_of(meant.begin(), meant.end(),
                     [&](const Rung* rung) { return short_name(*rung) != word; });
}

bool has_word(const Rung& rung, const std::string& word) {
  return contains(rung.name, word) || contains(rung.idea, word) || contains(properties(rung), word);
}

/// Rungs that one of the words means, if any does, and that have all others; none means all.
std::vector<const Rung*> listed(const std::vector<std::string>& words) {
  std::vector<std::string> rungs, others;
  for (const std::string& word : words) {
    if (word.empty()) throw UsageError("pattern '' means no rung; fa list shows all");
    (means_rungs(word) ? rungs : others).push_back(word);
  }
  std::vector<const Rung*> found;
  for (const Rung& rung : catalogue()) found.push_back(&rung);
  if (!rungs.empty()) found = select_rungs(rungs);
  std::erase_if(found, [&](const Rung* rung) {
    return !std::all_of(others.begin(), others.end(),
                        [&](const std::string& word) { return has_word(*rung, word); });
  });
  if (found.empty()) {
    throw UsageError(
        fmt::format("no rung has '{}' in its name, idea or properties; fa list shows all",
                    fmt::join(others, " ")));
  }
  return found;
}

std::vector<std::string> cells(const Rung& rung) {
  return {std::string(rung.name),
          rung.parent.empty() ? "-" : std::string(rung.parent),
          to_string(rung.family),
          runs_where(rung.target),
          fmt::format("{}", fmt::join(rung.head_dims(), ",")),
          properties(rung),
          std::string(rung.idea)};
}

Table catalogue_table(bool with_idea) {
  using enum Table::Align;
  std::vector<Table::Column> columns{{"rung", left}, {"parent", left},   {"family", left},
                                     {"sm", left},   {"head_dim", left}, {"properties", left},
                                     {"idea", left}};
  if (!with_idea) columns.pop_back();
  return Table(std::move(columns));
}

/// The idea below each rung, so that lines stay short.
void print_text(const std::vector<const Rung*>& rungs) {
  Table table = catalogue_table(false);
  for (const Rung* rung : rungs) table.add(cells(*rung));
  std::istringstream lines(text_table(table));
  std::string line;
  std::getline(lines, line);
  fmt::print("{}\n", line);
  const std::size_t last = line.find("properties");
  for (const Rung* rung : rungs) {
    std::getline(lines, line);
    const std::string words = folded(properties(*rung), kColumns, std::string(last, ' '));
    fmt::print("{}{}{}", line.substr(0, last), words.substr(last),
               folded(rung->idea, kColumns, "    "));
  }
}

class ListCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("pattern", words_,
                   "Rungs that these words mean (06, 06_batched, hopper), of them those with all "
                   "other words in their name, idea or properties (causal, swizzle)");
    CLI::Option* json = app.add_flag("--json", json_, "Print JSON, for programs");
    printer_.declare(app)->excludes(json);
  }

  Exit execute() override {
    const std::vector<const Rung*> rungs = listed(words_);
    if (json_) {
      Json document{{"schema", 1}, {"rungs", Json::array()}};
      const DeviceDescription device = describe_device("auto");
      for (const Rung* rung : rungs) document["rungs"].push_back(rung_json(*rung, device));
      fmt::print("{}", document_text(document));
      return Exit::ok;
    }
    if (printer_.format() == TableFormat::text) {
      print_text(rungs);
    } else {
      Table table = catalogue_table(true);
      for (const Rung* rung : rungs) table.add(cells(*rung));
      printer_.print(table, "list", "rungs");
    }
    return Exit::ok;
  }

 private:
  std::vector<std::string> words_;
  TablePrinter printer_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_list_command() {
  return std::make_unique<ListCommand>();
}

}  // namespace fa::cli
