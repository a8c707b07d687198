// SPDX-License-Identifier: MIT
// Structs with fields (kernels/fields.h) as JSON: one writer, one reader that takes nothing but
// what the writer writes, and the JSON schema of it.
#pragma once

#include <fmt/format.h>

#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/results/json.h"
#include "kernels/fields.h"

namespace fa {

[[noreturn]] inline void refuse_value(const Json& json, const FieldFacts& facts) {
  throw std::invalid_argument(fmt::format("{} {}", facts.in_files(), json.dump()));
}

/// How a type stands in files. What is not one of those below is a number, a bool or a text.
template <class Value>
struct JsonForm {
  static Json write(const Value& value, const FieldFacts& facts) {
    if constexpr (std::is_floating_point_v<Value>) {
      if (!facts.exact) return rounded(value);
    }
    return facts.yes ? Json(facts.yes) : Json(value);
  }
  /// Throws std::exception for another type or a value that there is not.
  static void read(const Json& json, Value& value, const FieldFacts& facts) {
    if constexpr (std::is_same_v<Value, bool>) {
      if (facts.yes) {
        if (json != facts.yes) refuse_value(json, facts);
        value = true;
        return;
      }
    } else if constexpr (std::is_integral_v<Value>) {
      if (!json.is_number_integer() || json < facts.least || json != Json(json.get<Value>())) {
        refuse_value(json, facts);
      }
    }
    json.get_to(value);
  }
  static Json schema(const FieldFacts& facts) {
    if (facts.yes) return {{"const", facts.yes}};
    if constexpr (std::is_same_v<Value, bool>) return {{"type", "boolean"}};
    if constexpr (!std::is_arithmetic_v<Value>) return {{"type", "string"}};
    return {{"type", std::is_integral_v<Value> ? "integer" : "number"}, {"minimum", facts.least}};
  }
};

template <class Enum>
requires std::is_enum_v<Enum>
struct JsonForm<Enum> {
  static Json write(Enum value, const FieldFacts& /*facts*/) { return name_of(value); }
  static void read(const Json& json, Enum& value, const FieldFacts& facts) {
    const auto text = json.get<std::string>();
    const std::optional<Enum> found = named<Enum>(text);
    if (!found) throw std::invalid_argument(fmt::format("{} '{}'", facts.in_files(), text));
    value = *found;
  }
  static Json schema(const FieldFacts& /*facts*/) {
    Json names = Json::array();
    for (const Named<Enum>& each : kNamesOf<Enum>) names.push_back(each.name);
    return {{"type", "string"}, {"enum", std::move(names)}};
  }
};

/// What was not measured is null.
template <class Value>
struct JsonForm<std::optional<Value>> {
  static Json write(const std::optional<Value>& value, const FieldFacts& facts) {
    return value ? JsonForm<Value>::write(*value, facts) : Json();
  }
  static void read(const Json& json, std::optional<Value>& value, const FieldFacts& facts) {
    JsonForm<Value>::read(json, value.emplace(), facts);
  }
  static Json schema(const FieldFacts& facts) { return JsonForm<Value>::schema(facts); }
};

/// So is a list of nothing.
template <class Value>
struct JsonForm<std::vector<Value>> {
  static Json write(const std::vector<Value>& values, const FieldFacts& facts) {
    Json json;
    for (const Value& each : values) json.push_back(JsonForm<Value>::write(each, facts));
    return json;
  }
  static void read(const Json& json, std::vector<Value>& values, const FieldFacts& facts) {
    if (!json.is_array()) refuse_value(json, facts);
    // How small an element may be, the struct says, in a message with the range.
    FieldFacts any = facts;
    any.least = std::numeric_limits<std::int64_t>::min();
    for (const Json& each : json) JsonForm<Value>::read(each, values.emplace_back(), any);
  }
  static Json schema(const FieldFacts& facts) {
    return {{"type", "array"}, {"minItems", 1}, {"items", JsonForm<Value>::schema(facts)}};
  }
};

template <class Value, std::size_t size>
struct JsonForm<std::array<Value, size>> {
  static Json write(const std::array<Value, size>& values, const FieldFacts& facts) {
    return JsonForm<std::vector<Value>>::write({values.begin(), values.end()}, facts);
  }
  static void read(const Json& json, std::array<Value, size>& values, const FieldFacts& facts) {
    if (!json.is_array() || json.size() != size) refuse_value(json, facts);
    for (std::size_t i = 0; i < size; ++i) JsonForm<Value>::read(json[i], values.at(i), facts);
  }
  static Json schema(const FieldFacts& facts) {
    Json json = JsonForm<std::vector<Value>>::schema(facts);
    json["minItems"] = json["maxItems"] = size;
    return json;
  }
};

/// What has no value is null in a file, and need not be there.
template <class Value>
inline constexpr bool kNullable = false;
template <class Value>
inline constexpr bool kNullable<std::optional<Value>> = true;
template <class Value>
inline constexpr bool kNullable<std::vector<Value>> = true;

/// Fields of one key share an object.
template <HasFields Struct>
struct JsonForm<Struct> {
  static Json write(const Struct& from, const FieldFacts& /*facts*/) {
    static const Struct initial;
    Json json = Json::object();
    each_field<Struct>([&](const auto& field) {
      const auto& value = from.*field.member;
      using Value = std::remove_cvref_t<decltype(value)>;
      if (field.if_set && value == initial.*field.member) return;
      Json part = JsonForm<Value>::write(value, field);
      const std::string key = field.in_files();
      if (key.empty()) {
        json.update(part);
      } else if (json.contains(key)) {
        json[key].update(part);
      } else {
        json[key] = std::move(part);
      }
    });
    return json;
  }

  static void read(const Json& json, Struct& to, const FieldFacts& facts) {
    if (!json.is_object()) refuse_value(json, facts);
    each_field<Struct>([&](const auto& field) {
      using Value = std::remove_cvref_t<decltype(to.*field.member)>;
      const std::string key = field.in_files();
      if (key.empty()) return JsonForm<Value>::read(json, to.*field.member, field);
      const bool there = json.contains(key) && !json[key].is_null();
      if (!there && (field.if_set || field.some_rows || kNullable<Value>)) return;
      JsonForm<Value>::read(json.at(key), to.*field.member, field);
    });
  }

  static Json schema(const FieldFacts& /*facts*/) {
    Json json{{"type", "object"},
              {"additionalProperties", false},
              {"required", Json::array()},
              {"properties", Json::object()}};
    each_field<Struct>([&](const auto& field) {
      using Value = std::remove_cvref_t<decltype(std::declval<Struct>().*field.member)>;
      Json part = JsonForm<Value>::schema(field);
      const std::string key = field.in_files();
      Json& properties = json["properties"];
      if (key.empty() || properties.contains(key)) {
        Json& shared = key.empty() ? json : properties[key];
        for (const Json& each : part["required"]) shared["required"].push_back(each);
        shared["properties"].update(part["properties"]);
        return;
      }
      if (*field.doc) part["description"] = field.doc;
      if (kNullable<Value> && !field.if_set) {
        if (part.contains("enum")) part["enum"].push_back(nullptr);
        part["type"] = {part["type"], "null"};
      }
      if (field.if_set && !field.yes && !kNullable<Value>) {
        part["not"] = {{"const", JsonForm<Value>::write(Struct().*field.member, field)}};
      }
      part.update(Json::parse(field.rules));
      if (!field.if_set && !field.some_rows) json["required"].push_back(key);
      properties[key] = std::move(part);
    });
    return json;
  }
};

template <HasFields Struct>
Json to_json(const Struct& value) {
  return JsonForm<Struct>::write(value, {});
}

/// Throws std::exception when a field is missing, of another type or of a value that there is not.
template <HasFields Struct>
Struct from_json(const Json& json) {
  Struct value;
  JsonForm<Struct>::read(json, value, {.name = "it"});
  return value;
}

/// The JSON schema of what to_json() writes.
template <HasFields Struct>
Json schema_of() {
  return JsonForm<Struct>::schema({});
}

}  // namespace fa
