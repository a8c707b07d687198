// SPDX-License-Identifier: MIT
// fa_schema KIND: prints the JSON schema of a file of results, limits or clock stamps.
// The columns are the fields of its rows; what else holds is in a *.schema.json beside them.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <exception>
#include <string_view>

#include "harness/environment/build.h"
#include "harness/measure/limits/row.h"
#include "harness/measure/timeline/row.h"
#include "harness/results/json_file.h"

namespace {

struct Kind {
  std::string_view name;
  const char* rules;
  fa::Json (*row)();
};
constexpr std::array kKinds{
    Kind{"results", "harness/results/results.schema.json", fa::schema_of<fa::Row>},
    Kind{"limits", "harness/measure/limits/limits.schema.json",
         fa::schema_of<fa::limits::LimitRow>},
    Kind{"timeline", "harness/measure/timeline/timeline.schema.json",
         fa::schema_of<fa::timeline::TimelineRow>},
};

}  // namespace

int main(int argc, char** argv) try {
  for (const Kind& kind : kKinds) {
    if (argc != 2 || argv[1] != kind.name) continue;
    fa::Json document = fa::read_json(fa::source_path(kind.rules)).value();
    fa::add_unknown(document["$defs"]["row"], kind.row());
    // What is the same in files of every kind stands with the results.
    fa::Json shared = fa::read_json(fa::source_path(kKinds.front().rules)).value()["$defs"];
    shared.erase("row");
    fa::add_unknown(document["$defs"], shared);
    fmt::print("{}", fa::document_text(document));
    return 0;
  }
  fmt::print(stderr, "fa_schema results, limits or timeline\n");
  return 2;
} catch (const std::exception& error) {
  fmt::print(stderr, "fa_schema: error: {}\n", error.what());
  return 3;
}
