// SPDX-License-Identifier: MIT
#include "lower/wgmma.h"

#include <unordered_map>

namespace ptxvm {
namespace {

bool is_mma(const Program& program, uint32_t instruction) {
  return program.spellings[instruction]->count == CountClass::kWgmma;
}

}  // namespace

void append_touch(Ref ref, bool written, std::vector<uint32_t>& out) {
  if (ref >= kNoRef || (ref & kRefPool)) return;
  const uint32_t line = ref / kRegisterLine;
  out.push_back(line * 2 + (written ? 1 : 0));
  if (ref & kRefWide) out.push_back((line + 1) * 2 + (written ? 1 : 0));
}

std::vector<bool> find_unfenced(const Program& program, uint32_t first,
                                const std::vector<std::vector<uint32_t>>& touches,
                                const Graph& graph, const std::vector<uint32_t>& begins) {
  const auto count = static_cast<uint32_t>(touches.size());
  // Only registers that some mma_async uses matter; they get numbers of their own.
  std::unordered_map<uint32_t, uint32_t> number;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_mma(program, first + i)) continue;
    for (uint32_t t : touches[i]) number.try_emplace(t / 2, static_cast<uint32_t>(number.size()));
  }
  using Set = std::vector<bool>;  // used since the last fence
  std::vector<Set> before(begins.size(), Set(number.size(), false));
  std::vector<bool> unfenced(count, false), reached(begins.size(), false);
  before[0].assign(number.size(), true);
  reached[0] = true;

  std::vector<uint32_t> work{0};
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    Set used = before[b];
    const uint32_t end = b + 1 < begins.size() ? begins[b + 1] : count;
    for (uint32_t i = begins[b]; i < end; ++i) {
      if (program.spellings[first + i]->traits().orders_registers) {
        used.assign(number.size(), false);
      }
      const bool mma = is_mma(program, first + i);
      for (uint32_t t : touches[i]) {
        auto it = number.find(t / 2);
        if (it == number.end()) continue;
        if (!mma) used[it->second] = true;
        // The descriptors are not asynchronous.
        if (mma && used[it->second]) unfenced[i] = true;
      }
    }
    for (uint32_t next : graph[b]) {
      Set& in = before[next];
      bool grew = !reached[next];
      for (size_t k = 0; k < in.size(); ++k) {
        grew |= used[k] && !in[k];
        in[k] = in[k] || used[k];
      }
      reached[next] = true;
      if (grew) work.push_back(next);
    }
  }
  return unfenced;
}

}  // namespace ptxvm
