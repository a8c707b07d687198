// SPDX-License-Identifier: MIT
// Source lines through inlining (.loc with inlined_at, PTX ISA 11.5).
#include "lower/locations.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ptxvm {
namespace {

constexpr size_t kMostInlined = 64;  // callers of a place that are told

}  // namespace

std::vector<std::vector<SourceLocation>> inline_chains(const text::ModuleText& module,
                                                       const text::Entry& entry) {
  auto location = [&](int file, int line, int column) {
    SourceLocation l{{}, line, column};
    if (file >= 0 && static_cast<size_t>(file) < module.files.size()) {
      l.file = module.files[static_cast<size_t>(file)];
    }
    return l;
  };
  std::vector<std::vector<SourceLocation>> chains;
  // inlined_at names the call; its own inlining is told by the last .loc of that place.
  std::map<std::tuple<int, int, int>, size_t> last;
  for (const text::Loc& loc : entry.locs) {
    std::vector<SourceLocation> chain{location(loc.file, loc.line, loc.column)};
    if (loc.inlined) {
      auto parent = last.find({loc.at_file, loc.at_line, loc.at_column});
      if (parent != last.end()) {
        const auto& rest = chains[parent->second];
        const size_t more = std::min(rest.size(), kMostInlined);
        chain.insert(chain.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(more));
      } else {
        chain.push_back(location(loc.at_file, loc.at_line, loc.at_column));
      }
    }
    last[{loc.file, loc.line, loc.column}] = chains.size();
    chains.push_back(std::move(chain));
  }
  return chains;
}

}  // namespace ptxvm
