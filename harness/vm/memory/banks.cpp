// SPDX-License-Identifier: MIT
#include "memory/banks.h"

#include <algorithm>
#include <array>

namespace ptxvm {
namespace {

constexpr uint32_t kRow = 128;  // bytes of all banks together

// Accesses of a group are aligned to their width, so that width takes the place of the 4-byte word:
// two units of the same place in different rows conflict, in all the banks that they cover.
Wavefronts group_wavefronts(uint32_t lanes, const uint32_t* addresses, uint32_t unit) {
  std::array<uint32_t, 32> seen;  // units by place, chained through `next`
  std::array<int8_t, 32> first, next;
  std::array<uint8_t, 32> depth{};
  const uint32_t places = kRow / unit;
  std::fill_n(first.begin(), places, int8_t{-1});
  int8_t count = 0;
  uint32_t most = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t value = addresses[__builtin_ctz(lanes)] / unit;
    const uint32_t place = value % places;
    int8_t i = first[place];
    while (i >= 0 && seen[static_cast<size_t>(i)] != value) i = next[static_cast<size_t>(i)];
    if (i >= 0) continue;
    seen[static_cast<size_t>(count)] = value;
    next[static_cast<size_t>(count)] = first[place];
    first[place] = count++;
    most = std::max<uint32_t>(most, ++depth[place]);
  }
  return {most, (static_cast<uint32_t>(count) + places - 1) / places};
}

// Every lane reads what lane ^ step reads; a lane that takes no part agrees with any.
bool are_twins(uint32_t mask, const uint32_t* addresses, uint32_t step) {
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(left)), other = lane ^ step;
    if ((mask >> other & 1) != 0 && addresses[lane] != addresses[other]) return false;
  }
  return true;
}

}  // namespace

Wavefronts shared_wavefronts(uint32_t mask, const uint32_t* addresses, uint32_t bytes,
                             bool is_load) {
  const uint32_t unit = std::max(bytes, 4u);
  uint32_t group = kRow / unit;
  if (is_load && group < 32 && (are_twins(mask, addresses, 1) || are_twins(mask, addresses, 2))) {
    group *= 2;
  }
  Wavefronts sum;
  for (uint32_t begin = 0; begin < 32; begin += group) {
    const uint32_t lanes = mask & (group == 32 ? 0xffffffffu : ((1u << group) - 1) << begin);
    if (lanes == 0) continue;
    const Wavefronts g = group_wavefronts(lanes, addresses, unit);
    sum.actual += g.actual;
    sum.ideal += g.ideal;
  }
  return sum;
}

}  // namespace ptxvm
