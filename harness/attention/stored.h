// SPDX-License-Identifier: MIT
// Q, K, V, O and their gradients in the memory of a device, where a problem's strides may leave
// gaps between rows. Functions name a tensor by its number in the enumeration Tensor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "harness/attention/host_tensor.h"
#include "kernels/problem.h"

namespace fa {

/// All bits set is a NaN of every element type.
inline constexpr std::byte kUnwritten{0xFF};

/// Copies the rows of a tensor to where the problem's strides place them.
void scatter_rows(const Problem& problem, int tensor, const HostTensor& from, std::byte* stored);

/// Copies them back to a tensor without gaps.
void gather_rows(const Problem& problem, int tensor, const std::byte* stored, HostTensor& to);

/// The memory of a tensor, kUnwritten in its gaps.
std::vector<std::byte> stored_with_gaps(const Problem& problem, int tensor, const HostTensor& from);

/// Whether all gaps of this memory still are kUnwritten.
bool gaps_unwritten(const Problem& problem, int tensor, std::span<const std::byte> stored);

}  // namespace fa
