// SPDX-License-Identifier: MIT
// Catch2 would print a JSON value as a range of JSON values.
#pragma once

#include "harness/results/results.h"
#include "harness/tests/catch.h"

template <>
struct Catch::StringMaker<fa::Json> {
  static std::string convert(const fa::Json& json) { return json.dump(); }
};
