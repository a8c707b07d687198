// fa list: the catalogue.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "harness/cli/command.h"

namespace fa::cli {
namespace {

Json rung_json(const Rung& rung) {
  Json instances = Json::array();
  for (const Instance& instance : rung.kernels->instances) {
    const Instance* own = rung.find_instance(instance.head_dim);
    instances.push_back({{"entry", instance.entry},
                         {"head_dim", instance.head_dim},
                         {"tile", to_string(instance.tile)},
                         {"ablation", &instance != own}});
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
      {"diff_budget", rung.diff_budget},
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
  return target == Target::sm_80 ? "8.0+" : "9.0a";
}

std::string properties(const Rung& rung) {
  std::string text = to_string(rung.dtype);
  for (const auto& [capability, name] : kCapabilities) {
    if (has(rung.capabilities, capability)) text += fmt::format(" {}", name);
  }
  return text;
}

class ListCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_flag("--json", json_, "Print JSON, for programs");
  }

  Exit execute() override {
    if (json_) {
      Json document{{"schema", 1}, {"rungs", Json::array()}};
      for (const Rung& rung : catalogue()) document["rungs"].push_back(rung_json(rung));
      fmt::print("{}\n", document.dump(1));
      return Exit::ok;
    }
    std::size_t width = 4;
    for (const Rung& rung : catalogue()) width = std::max(width, rung.name.size());
    fmt::print("{:{}}  {:6}  {:6}  {:5}  {:8}  {:24}  {}\n", "rung", width, "parent", "family",
               "sm", "head_dim", "properties", "idea");
    for (const Rung& rung : catalogue()) {
      fmt::print("{:{}}  {:6}  {:6}  {:5}  {:8}  {:24}  {}\n", rung.name, width,
                 rung.parent.empty() ? "-" : rung.parent, to_string(rung.family),
                 runs_where(rung.target), fmt::format("{}", fmt::join(rung.head_dims(), ",")),
                 properties(rung), rung.idea);
    }
    return Exit::ok;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_list_command() {
  return std::make_unique<ListCommand>();
}

}  // namespace fa::cli
