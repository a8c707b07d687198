// SPDX-License-Identifier: MIT
#include "harness/results/row.h"

#include <fmt/format.h>

#include <string>

namespace fa {

Json JsonForm<RowCounts>::write(const RowCounts& counts, const FieldFacts& /*facts*/) {
  Json json = Json::object();
  for (const auto& [name, value] : counts) json[name] = value;
  return json;
}

void JsonForm<RowCounts>::read(const Json& json, RowCounts& counts, const FieldFacts& facts) {
  if (!json.is_object()) refuse_value(json, facts);
  for (const auto& [name, value] : json.items()) {
    JsonForm<std::uint64_t>::read(value, counts.emplace_back(name, 0).second, facts);
  }
}

Json JsonForm<RowCounts>::schema(const FieldFacts& facts) {
  return {{"type", "object"}, {"additionalProperties", JsonForm<std::uint64_t>::schema(facts)}};
}

Json JsonForm<ResourceClocks>::write(const ResourceClocks& clocks, const FieldFacts& /*facts*/) {
  Json json;
  for (std::size_t i = 0; i < kResources; ++i) {
    json[kNamesOf<Resource>.at(i).name] = rounded(clocks.at(i));
  }
  return json;
}

void JsonForm<ResourceClocks>::read(const Json& json, ResourceClocks& clocks,
                                    const FieldFacts& /*facts*/) {
  for (std::size_t i = 0; i < kResources; ++i) {
    json.at(kNamesOf<Resource>.at(i).name).get_to(clocks.at(i));
  }
}

Json JsonForm<ResourceClocks>::schema(const FieldFacts& facts) {
  return {{"type", "object"},
          {"propertyNames", JsonForm<Resource>::schema(facts)},
          {"minProperties", kResources},
          {"additionalProperties", JsonForm<double>::schema(facts)}};
}

std::string describe(const Problem& problem, const RowInputs& inputs) {
  std::string text = to_string(problem);
  if (inputs.name != RowInputs().name) text += ", " + inputs.name;
  if (inputs.spread != RowInputs().spread) text += fmt::format(", spread {}", inputs.spread);
  return text;
}

Json to_json(const Row& row) {
  Json json = JsonForm<Row>::write(row, {});
  if (row.key.kind == RowKind::peer) {
    for (const char* of_rungs : {"entry", "ablation"}) json.erase(of_rungs);
  }
  add_unknown(json, row.other);
  return json;
}

Row row_from_json(const Json& json) {
  Row row = from_json<Row>(json);
  settle(row.key.problem);
  row.other = unknown_of(json, to_json(row));
  return row;
}

}  // namespace fa
