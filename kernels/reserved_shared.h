// What the runtime takes of every thread block.
#pragma once

#include <cstddef>

namespace fa {

/// Bytes of shared memory that the system takes of every thread block, since compute capability
/// 8.0.
inline constexpr std::size_t kReservedShared = 1024;

}  // namespace fa
