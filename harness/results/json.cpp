// SPDX-License-Identifier: MIT
#include "harness/results/json.h"

#include <cmath>

namespace fa {

Json rounded(double value) {
  if (!std::isfinite(value)) return {};
  if (value == 0) return 0.0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

Json unknown_of(const Json& whole, const Json& known) {
  Json unknown;
  if (whole.is_object() && known.is_object()) {
    for (const auto& [key, value] : whole.items()) {
      Json part = known.contains(key) ? unknown_of(value, known[key]) : value;
      if (!known.contains(key) || !part.is_null()) unknown[key] = std::move(part);
    }
  } else if (whole.is_array() && known.is_array() && whole.size() == known.size()) {
    bool any = false;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      unknown.push_back(unknown_of(whole[i], known[i]));
      any |= !unknown.back().is_null();
    }
    if (!any) return {};
  }
  return unknown;
}

void add_unknown(Json& known, const Json& unknown) {
  if (known.is_array() && unknown.is_array() && known.size() == unknown.size()) {
    for (std::size_t i = 0; i < known.size(); ++i) add_unknown(known[i], unknown[i]);
  }
  if (!known.is_object() || !unknown.is_object()) return;
  for (const auto& [key, value] : unknown.items()) {
    if (known.contains(key)) {
      add_unknown(known[key], value);
    } else {
      known[key] = value;
    }
  }
}

}  // namespace fa
