// SPDX-License-Identifier: MIT
#include "harness/attention/stored.h"

#include <algorithm>
#include <cstring>

#include "harness/attention/parallel.h"

namespace fa {
namespace {

// Calls body(first byte of the row in a tensor without gaps, the same in memory) for every row.
template <class Body>
void for_each_row(const Problem& problem, int tensor, const HostTensor& host, const Body& body) {
  const Strides strides = strides_of(problem, tensor);
  const std::int64_t batch = host.shape[0], heads = host.shape[1], rows = host.shape[2];
  const std::int64_t bytes = host.shape[3] * static_cast<std::int64_t>(size_of(host.dtype));
  const auto element = static_cast<std::int64_t>(size_of(host.dtype));
  parallel_for(batch * heads * rows, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = i / rows / heads * strides.batch + i / rows % heads * strides.head +
                              i % rows * strides.row;
      body(i * bytes, at * element);
    }
  });
}

std::size_t row_bytes(const HostTensor& host) {
  return static_cast<std::size_t>(host.shape[3]) * size_of(host.dtype);
}

}  // namespace

void scatter_rows(const Problem& problem, int tensor, const HostTensor& from, std::byte* stored) {
  for_each_row(problem, tensor, from, [&](std::int64_t host, std::int64_t device) {
    std::memcpy(stored + device, from.bytes.data() + host, row_bytes(from));
  });
}

void gather_rows(const Problem& problem, int tensor, const std::byte* stored, HostTensor& to) {
  for_each_row(problem, tensor, to, [&](std::int64_t host, std::int64_t device) {
    std::memcpy(to.bytes.data() + host, stored + device, row_bytes(to));
  });
}

std::vector<std::byte> stored_with_gaps(const Problem& problem, int tensor,
                                        const HostTensor& from) {
  std::vector<std::byte> stored(
      static_cast<std::size_t>(stored_elements(problem, tensor)) * size_of(from.dtype), kUnwritten);
  scatter_rows(problem, tensor, from, stored.data());
  return stored;
}

bool gaps_unwritten(const Problem& problem, int tensor, std::span<const std::byte> stored) {
  std::vector<std::byte> gaps(stored.begin(), stored.end());
  const HostTensor shape{problem.dtype, stored_shape(problem, tensor), {}};
  for_each_row(problem, tensor, shape, [&](std::int64_t, std::int64_t device) {
    std::fill_n(gaps.begin() + device, row_bytes(shape), kUnwritten);
  });
  return std::all_of(gaps.begin(), gaps.end(), [](std::byte each) { return each == kUnwritten; });
}

}  // namespace fa
