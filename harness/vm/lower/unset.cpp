// SPDX-License-Identifier: MIT
#include "lower/unset.h"

#include <map>

namespace ptxvm {
namespace {

constexpr uint64_t kMostSteps = uint64_t{1} << 26;

}  // namespace

std::vector<Ref> read_before_set(const Graph& graph, const std::vector<BlockReads>& blocks) {
  std::map<Ref, std::vector<uint32_t>> readers;
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    for (const Ref place : blocks[b].reads) readers[place].push_back(b);
  }
  std::vector<Ref> out;
  std::vector<uint32_t> reads(blocks.size(), 0), seen = reads;  // the last register
  uint32_t number = 0;
  uint64_t steps = 0;
  for (const auto& [place, its] : readers) {
    ++number;
    for (const uint32_t b : its) reads[b] = number;
    std::vector<uint32_t> open{0};
    seen[0] = number;
    while (!open.empty() && ++steps < kMostSteps) {
      const uint32_t b = open.back();
      open.pop_back();
      if (reads[b] == number) {
        out.push_back(place);
        break;
      }
      if (blocks[b].sets.contains(place)) continue;
      for (const uint32_t next : graph[b]) {
        if (seen[next] == number) continue;
        seen[next] = number;
        open.push_back(next);
      }
    }
  }
  return out;
}

}  // namespace ptxvm
