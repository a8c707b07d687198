// SPDX-License-Identifier: MIT
#include "harness/measure/item.h"

#include <fmt/format.h>

#include <utility>

namespace fa {
namespace {

Item planned(Item item, PlanResult result) {
  if (auto* unsupported = std::get_if<Unsupported>(&result)) {
    item.refused = std::move(unsupported->reason);
  } else {
    item.plan = std::move(std::get<LaunchPlan>(result));
  }
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
  item.ablation = &instance != rung.find_instance(problem.head_dim);
  return planned(std::move(item), make_plan(rung, instance, problem, device));
}

Item rung_item(const Rung& rung, const Problem& problem, std::string_view tile,
               const DeviceDescription& device, const RowInputs& inputs) {
  if (const Instance* instance = rung.find_instance(problem.head_dim, tile)) {
    return rung_item(rung, *instance, problem, device, inputs);
  }
  return planned(named(rung, std::string(tile), problem, inputs),
                 make_plan(rung, problem, device, tile));
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
