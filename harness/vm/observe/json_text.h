// SPDX-License-Identifier: MIT
// Text in JSON.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace ptxvm::observe {

/// Text inside a JSON string. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view s);

/// A JSON string.
std::string json_string(std::string_view s);

/// An object of values that are JSON already.
std::string json_object(std::initializer_list<std::pair<std::string_view, std::string>> members);

/// An array of what `convert` makes of the elements.
template <class Range, class Convert>
std::string json_array(const Range& range, const Convert& convert) {
  std::string out = "[";
  for (const auto& each : range) {
    if (out.size() > 1) out += ",";
    out += convert(each);
  }
  return out + "]";
}

}  // namespace ptxvm::observe
