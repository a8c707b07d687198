// SPDX-License-Identifier: MIT
// fa plan: the launches that rungs make of a problem.
#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <type_traits>
#include <variant>

#include "harness/cli/app.h"
#include "harness/cli/arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/problem_options.h"
#include "harness/cli/table.h"
#include "harness/device/vm.h"
#include "harness/measure/item.h"
#include "harness/measure/sync_problem.h"
#include "harness/results/json.h"
#include "harness/results/row.h"
#include "kernels/catalogue.h"

namespace fa::cli {
namespace {

constexpr std::int64_t kMostSms = 1024;

Json json_of(const Dim3& dim) {
  return Json::array({dim.x, dim.y, dim.z});
}

Json json_of(const Argument& argument) {
  return std::visit(
      [](const auto& value) -> Json {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, Tensor>) {
          return {{"tensor", name_of(value).in_files}};
        } else if constexpr (std::is_same_v<Value, ScratchRef>) {
          return {{"scratch", value.index}};
        } else if constexpr (std::is_same_v<Value, TensorMap>) {
          return {{"map",
                   {{"tensor", name_of(value.tensor).in_files},
                    {"rank", value.rank},
                    {"extents", value.extents},
                    {"strides", value.strides},
                    {"box", value.box},
                    {"swizzle", static_cast<int>(value.swizzle)},
                    {"offset", value.offset}}}};
        } else if constexpr (std::is_same_v<Value, std::int32_t>) {
          return {{"i32", value}};
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
          return {{"i64", value}};
        } else {
          return {{"f32", value}};
        }
      },
      argument);
}

Json json_of(const Launch& launch) {
  Json arguments = Json::array();
  for (const Argument& each : launch.arguments) arguments.push_back(json_of(each));
  return {{"entry", launch.entry},
          {"grid", json_of(launch.grid)},
          {"cluster", json_of(launch.cluster)},
          {"block", launch.block},
          {"dynamic_shared", launch.dynamic_shared},
          {"early", launch.early},
          {"arguments", std::move(arguments)}};
}

Json json_of(const Item& item) {
  Json row{{"rung", item.rung->name}, {"problem", to_json(item.problem())}};
  if (!item.refused.empty()) {
    row["refused"] = item.refused;
    return row;
  }
  const LaunchPlan& plan = item.plan;
  row["launches"] = Json::array();
  for (const Launch& each : plan.launches) row["launches"].push_back(json_of(each));
  row["deterministic"] = plan.deterministic;
  row["scratch"] = Json::array();
  for (const Scratch& each : plan.scratch) {
    row["scratch"].push_back({{"name", each.name}, {"bytes", each.bytes}, {"zeroed", each.zeroed}});
  }
  return row;
}

std::string text_of(const Item& item) {
  std::string text = fmt::format("{} on {}\n", item.rung->name, to_string(item.problem()));
  if (!item.refused.empty()) return text + fmt::format("  unsupported: {}\n", item.refused);
  for (const Launch& each : item.plan.launches) {
    text += fmt::format("  {}: grid {} x {} x {}, {} threads, {} bytes of dynamic shared memory\n",
                        each.entry, each.grid.x, each.grid.y, each.grid.z, each.block,
                        each.dynamic_shared);
  }
  for (const Scratch& each : item.plan.scratch) {
    text += fmt::format("  scratch: {}, {} bytes\n", each.name, each.bytes);
  }
  return text;
}

class PlanCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    add_rungs(app, words_, "or all")->required();
    problem_.declare(app);
    app_ = &app;
    add_integer(app, "--sms", machine_.sms, 1, kMostSms,
                fmt::format("SMs of the card that is planned for (default {})", machine_.sms));
    app.add_flag(
        "--sync", sync_,
        "A problem just large enough for all waits of the rung's loops, as the pages and the "
        "tests take them out, and its inputs");
    app.add_flag("--json", json_, "Print JSON, for programs");
  }

  Exit execute() override {
    if (sync_) {
      allow_beside(*app_, "--sync", {"rungs", "--json"});
      return plan_sync();
    }
    Json document{{"schema", 1}, {"plans", Json::array()}};
    std::string text, refused;
    bool any = false;
    for (const Rung* rung : select_rungs(words_)) {
      for (Problem problem : problem_.problems()) {
        set_types(*rung, problem);
        const Item item = rung_item(*rung, problem, {}, machine_);
        any |= item.refused.empty();
        if (refused.empty()) refused = with_example(item.refused, *rung, problem);
        document["plans"].push_back(json_of(item));
        text += text_of(item);
      }
    }
    if (!any) throw UsageError(refused);
    fmt::print("{}", json_ ? document.dump() + "\n" : text);
    return Exit::ok;
  }

 private:
  static SyncProblem for_rung(const Rung& rung) {
    try {
      return sync_problem(rung);
    } catch (const std::invalid_argument& refused) {  // of a rung outside the ladder
      throw UsageError(fmt::format("{}: {}", rung.name, refused.what()));
    }
  }

  Exit plan_sync() const {
    Json document{{"schema", 1}, {"plans", Json::array()}};
    std::string text;
    for (const Rung* rung : select_rungs(words_)) {
      const SyncProblem sync = for_rung(*rung);
      Item item;
      item.key.problem = sync.problem;
      item.rung = rung;
      item.plan = sync.plan;
      Json row = json_of(item);
      for (const Distribution each : sync.inputs) row["inputs"].push_back(to_string(each));
      document["plans"].push_back(std::move(row));
      text += text_of(item);
    }
    fmt::print("{}", json_ ? document.dump() + "\n" : text);
    return Exit::ok;
  }

  const CLI::App* app_ = nullptr;
  std::vector<std::string> words_;
  ProblemOptions problem_{{.shape = {},
                           .seqs = {},
                           .dim_default = {},
                           .seq_kv = true,
                           .dims = true,
                           .lse = true,
                           .cache = true,
                           .types = true,
                           .inputs = false}};
  DeviceDescription machine_ = vm_description();
  bool json_ = false, sync_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_command() {
  return std::make_unique<PlanCommand>();
}

}  // namespace fa::cli
