// SPDX-License-Identifier: MIT
// Global memory moves in sectors of 32 bytes.
#pragma once

#include <cstdint>

namespace ptxvm {

/// Distinct sectors that one request touches.
uint32_t global_sectors(uint32_t mask, const uint64_t* addresses, uint32_t bytes);

}  // namespace ptxvm
