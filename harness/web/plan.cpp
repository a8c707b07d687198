// SPDX-License-Identifier: MIT
#include "harness/web/plan.h"

#include <array>
#include <cstddef>
#include <stdexcept>

namespace fa::web {
namespace {

Tensor tensor_of(const std::string& name) {
  for (std::size_t i = 0; i < kTensors; ++i) {
    if (name == kTensorNames[i].in_files) return static_cast<Tensor>(i);
  }
  throw std::invalid_argument("'" + name + "' is not a tensor");
}

Dim3 dim3_of(const Json& json) {
  return {json.at(0), json.at(1), json.at(2)};
}

TensorMap map_of(const Json& json) {
  TensorMap map;
  map.tensor = tensor_of(json.at("tensor"));
  map.rank = json.at("rank");
  map.extents = json.at("extents");
  map.strides = json.at("strides");
  map.box = json.at("box");
  map.swizzle = static_cast<Swizzle>(json.at("swizzle").get<int>());
  map.offset = json.value("offset", std::int64_t{0});
  return map;
}

Argument argument_of(const Json& json) {
  const std::string kind = json.begin().key();
  const Json& value = json.begin().value();
  if (kind == "tensor") return tensor_of(value);
  if (kind == "scratch") return ScratchRef{value};
  if (kind == "map") return map_of(value);
  if (kind == "i32") return value.get<std::int32_t>();
  if (kind == "i64") return value.get<std::int64_t>();
  if (kind == "f32") return value.get<float>();
  throw std::invalid_argument("'" + kind + "' is not a kind of argument");
}

}  // namespace

HeldPlan read_plan(const Json& json) {
  HeldPlan held;
  const auto keep = [&](const Json& name) {
    held.names.push_back(std::make_unique<std::string>(name.get<std::string>()));
    return held.names.back()->c_str();
  };
  for (const Json& each : json.at("launches")) {
    Launch launch;
    launch.entry = keep(each.at("entry"));
    launch.grid = dim3_of(each.at("grid"));
    launch.cluster = dim3_of(each.at("cluster"));
    launch.block = each.at("block");
    launch.dynamic_shared = each.at("dynamic_shared");
    for (const Json& argument : each.at("arguments")) {
      launch.arguments.push_back(argument_of(argument));
    }
    held.plan.launches.push_back(std::move(launch));
  }
  held.plan.deterministic = json.at("deterministic");
  for (const Json& each : json.at("scratch")) {
    held.plan.scratch.push_back({keep(each.at("name")), each.at("bytes"), each.at("zeroed")});
  }
  return held;
}

}  // namespace fa::web
