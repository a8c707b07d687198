// SPDX-License-Identifier: MIT
// 8x8 matrices of 16-bit elements, as fragments hold them.
#pragma once

#include <cstdint>

namespace ptxvm::num {

/// A row of an 8x8 matrix. Lane l of a fragment holds row l/4, columns 2(l%4) and the next: a
/// register of a fragment, read as memory, is the matrix in rows.
using Row = uint16_t __attribute__((vector_size(16)));

/// Rows become columns, in three rounds of interleaving halves.
inline void transpose(Row (&m)[8]) {
  for (int round = 0; round < 3; ++round) {
    Row next[8];
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = __builtin_shufflevector(m[i], m[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(m[i], m[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; ++i) m[i] = next[i];
  }
}

}  // namespace ptxvm::num
