// SPDX-License-Identifier: MIT
#include "memory/tensor_copy.h"

#include <algorithm>

namespace ptxvm {

uint64_t BoxCopy::bytes() const {
  uint64_t n = shared_row_bytes();
  if (four_rows) return n * kGathered;
  for (size_t d = 1; d < map.rank; ++d) n *= map.box[d];
  return n;
}

std::vector<BoxRow> BoxCopy::rows() const {
  uint32_t count = four_rows ? kGathered : 1;
  for (size_t d = 1; d < map.rank; ++d) count *= map.box[d];
  const int64_t columns = std::max<int64_t>(0, static_cast<int64_t>(map.dims[0]) - at[0]);
  const int64_t begin = std::clamp<int64_t>(-int64_t{at[0]}, 0, map.box[0]);
  const int64_t end = std::clamp<int64_t>(columns, begin, map.box[0]);
  std::vector<BoxRow> out(count);
  uint32_t index[5] = {0, 0, 0, 0, 0};
  for (uint32_t r = 0; r < count; ++r) {
    BoxRow& row = out[r];
    row.box_offset = r * shared_row_bytes();
    bool inside = end > begin;
    uint64_t offset = static_cast<uint64_t>(int64_t{at[0]} + begin) * map.element_bytes;
    for (size_t d = 1; d < map.rank; ++d) {
      const int64_t c = four_rows ? int64_t{at[1 + r]} : int64_t{at[d]} + index[d];
      inside &= c >= 0 && c < static_cast<int64_t>(map.dims[d]);
      offset += static_cast<uint64_t>(c) * map.strides[d];
    }
    if (inside) {
      row.first = static_cast<uint32_t>(begin) * map.element_bytes;
      row.inside = static_cast<uint32_t>(end - begin) * map.element_bytes;
      row.global_offset = offset;
    }
    for (size_t d = 1; d < map.rank && ++index[d] == map.box[d]; ++d) index[d] = 0;
  }
  return out;
}

uint64_t sectors_of(const BoxCopy& copy, const std::vector<BoxRow>& rows) {
  uint64_t count = 0, last = UINT64_MAX;
  for (const BoxRow& row : rows) {
    if (row.inside == 0) continue;
    const uint64_t begin = (copy.map.base + row.global_offset) / 32;
    const uint64_t end = (copy.map.base + row.global_offset + row.inside - 1) / 32;
    count += end - begin + (begin == last ? 0 : 1);
    last = end;
  }
  return count;
}

}  // namespace ptxvm
