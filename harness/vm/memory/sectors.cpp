// SPDX-License-Identifier: MIT
#include "memory/sectors.h"

#include <algorithm>
#include <array>

namespace ptxvm {

uint32_t global_sectors(uint32_t mask, const uint64_t* addresses, uint32_t bytes) {
  constexpr uint64_t kSector = 32;
  std::array<uint64_t, 64> sectors;  // an aligned access of up to 32 bytes touches one, at most two
  size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const uint64_t address = addresses[__builtin_ctz(mask)];
    sectors[count++] = address / kSector;
    const uint64_t last = (address + bytes - 1) / kSector;
    if (last != address / kSector) sectors[count++] = last;
  }
  const auto end = sectors.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(sectors.begin(), end);
  return static_cast<uint32_t>(std::unique(sectors.begin(), end) - sectors.begin());
}

}  // namespace ptxvm
