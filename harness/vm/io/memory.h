// SPDX-License-Identifier: MIT
// How much memory the host can still give.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ptxvm::io {

/// Bytes that the kernel can still give to this process without ending one: what is available, and
/// what the process's own limits (`ulimit -v` and `-d`) and the memory limits of its control groups
/// (version 1 and 2) and of those above leave. Page cache that can be dropped counts as free.
/// Nothing where the system does not say. `root` is the folder that /proc and /sys are in.
std::optional<std::uint64_t> available_memory(const std::filesystem::path& root = "/");

}  // namespace ptxvm::io
