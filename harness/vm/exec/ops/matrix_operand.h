// SPDX-License-Identifier: MIT
// Operands of asynchronous products in shared memory, as 64-bit descriptors name them.
#pragma once

#include <cstdint>
#include <string>

#include "exec/fault.h"
#include "exec/warp.h"

namespace ptxvm {

/// Where an operand stands, kept for the next use of the same descriptor.
inline const MatrixFootprint& find_footprint(Cta& cta, uint64_t descriptor, Major major,
                                             uint32_t extent) {
  auto [it, fresh] = cta.async.footprints.try_emplace(footprint_key(descriptor, major, extent));
  if (fresh) it->second = footprint(MatrixDescriptor(descriptor), major, extent);
  return it->second;
}

/// The shared address from which a footprint counts.
inline uint32_t origin(uint64_t descriptor) {
  return MatrixDescriptor(descriptor).start / kFootprintPeriod * kFootprintPeriod;
}

/// Raises a fault where what an operand covers, from `first` to `last` of its footprint, does not
/// lie in the shared memory of a block.
inline void check_covered(const Warp& w, const Op& op, const Cta& cta, uint64_t bits,
                          uint32_t first, uint32_t last) {
  const uint64_t begin = uint64_t{origin(bits)} + first, end = uint64_t{origin(bits)} + last;
  if (begin < cta.shared_base || end > cta.shared_base + cta.shared_bytes) {
    raise(w, op, FaultKind::kOutOfBounds, -1,
          "the descriptor " + hex(bits, 16) + " covers shared addresses " + std::to_string(begin) +
              " to " + std::to_string(end) + "; the block has " + std::to_string(cta.shared_base) +
              " to " + std::to_string(cta.shared_base + cta.shared_bytes));
  }
}

/// The same of a whole operand.
inline void check_operand(const Warp& w, const Op& op, Cta& cta, uint64_t bits, Major major,
                          uint32_t extent) {
  const MatrixFootprint& f = find_footprint(cta, bits, major, extent);
  check_covered(w, op, cta, bits, f.ranges.front().address, f.end);
}

}  // namespace ptxvm
