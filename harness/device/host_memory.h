// SPDX-License-Identifier: MIT
// Host memory is asked for before it is taken: the kernel ends a process that takes too much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/io/memory.h"
#include "kernels/problem.h"

namespace fa {

/// Bytes that a check of the problem takes on the host, whatever the device: Q, K and V, then the
/// two outputs that are compared, and the rows of the reference. From the shapes alone. Whoever
/// checks lets go of the inputs when the Verifier is made and the device is loaded.
///
/// Inputs stay on the host, although a GPU could draw them: their needle, rising and spike kinds
/// depend on rows of K elsewhere, the reference reads whole heads, and the outputs, two thirds of
/// the inputs, come to the host in any case. It would save a third and be a second generator.
double check_host_bytes(const Problem& problem);

/// Bytes of the page table, which no tensor counts; 0 where the cache is not paged.
double table_bytes(const Problem& problem);

/// Throws OutOfMemory, in the name of `who`, when that many bytes are more than are available;
/// `what` says what they are for.
void require_host_bytes(double needed, const std::string& who, const std::string& what,
                        const std::optional<std::uint64_t>& available = io::available_memory());

}  // namespace fa
