// SPDX-License-Identifier: MIT
// JSON as result files have it, and enums by name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace fa {

using Json = nlohmann::ordered_json;

template <typename Enum>
struct Named {
  Enum value;
  const char* name;
};

/// The one table of an enum's names.
template <typename Enum>
inline constexpr int kNamesOf = 0;

template <typename Enum>
const char* name_of(Enum value) {
  for (const Named<Enum>& each : kNamesOf<Enum>) {
    if (each.value == value) return each.name;
  }
  return "";
}

/// Nothing for a name that the table does not have.
template <typename Enum>
std::optional<Enum> named(std::string_view name) {
  for (const Named<Enum>& each : kNamesOf<Enum>) {
    if (name == each.name) return each.value;
  }
  return std::nullopt;
}

/// Six significant digits: more than a measurement has, and a file that people can read. Null for
/// what is not finite.
Json rounded(double value);

/// The keys of `whole`, at any depth, that `known` has not; null where it has all of them.
Json unknown_of(const Json& whole, const Json& known);
/// Adds to `known` what it lacks and `unknown` has, at any depth.
void add_unknown(Json& known, const Json& unknown);

}  // namespace fa
