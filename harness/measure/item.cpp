// SPDX-License-Identifier: MIT
#include "harness/measure/item.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <utility>

#include "harness/device/device.h"

namespace fa {
namespace {

/// What is wrong with the rung's planner is wrong with the rung.
KernelFault mistake(const Item& item, const std::string& what) {
  return KernelFault{fmt::format("the planner of {} {}", item.rung->name, what)};
}

/// `plan()` makes the item's plan.
template <typename Plan>
Item planned(Item item, Plan plan) {
  PlanResult result = [&] {
    try {
      return plan();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      throw mistake(item, fmt::format("threw an exception: {}", error.what()));
    } catch (...) {
      throw mistake(item, "threw what is no std::exception");
    }
  }();
  if (auto* unsupported = std::get_if<Unsupported>(&result)) {
    item.refused = std::move(unsupported->reason);
    return item;
  }
  item.plan = std::move(std::get<LaunchPlan>(result));
  if (item.plan.launches.empty()) throw mistake(item, "gave a plan without launches");
  for (const Launch& launch : item.plan.launches)
    if (!launch.entry) throw mistake(item, "gave a launch without an entry");
  return item;
}

Item named(const Rung& rung, const std::string& tile, const Problem& problem,
           const RowInputs& inputs) {
  Item item;
  item.key = {.kind = RowKind::rung,
              .id = std::string(rung.id),
              .variant = tile,
              .problem = problem,
              .inputs = inputs};
  item.name = fmt::format("{}{}{}", rung.name, tile.empty() ? "" : " ", tile);
  item.rung = &rung;
  return item;
}

}  // namespace

Item rung_item(const Rung& rung, const Instance& instance, const Problem& problem,
               const DeviceDescription& device, const RowInputs& inputs) {
  Item item = named(rung, to_string(instance.tile), problem, inputs);
  item.instance = &instance;
  item.ablation = &instance != rung.find_instance(problem.head_dim, problem.dtype);
  return planned(std::move(item), [&] { return make_plan(rung, instance, problem, device); });
}

Item rung_item(const Rung& rung, const Problem& problem, std::string_view tile,
               const DeviceDescription& device, const RowInputs& inputs) {
  if (const Instance* instance = rung.find_instance(problem.head_dim, problem.dtype, tile)) {
    return rung_item(rung, *instance, problem, device, inputs);
  }
  return planned(named(rung, std::string(tile), problem, inputs),
                 [&] { return make_plan(rung, problem, device, tile); });
}

Item peer_item(const Peer& peer, const Problem& problem, const RowInputs& inputs) {
  Item item;
  item.key = {.kind = RowKind::peer,
              .id = peer.id,
              .variant = peer.variant,
              .problem = problem,
              .inputs = inputs};
  item.name = peer.id;
  item.peer = &peer;
  item.refused = peer.unavailable_reason;
  if (item.refused.empty() && peer.unsupported) item.refused = peer.unsupported(problem);
  return item;
}

}  // namespace fa
