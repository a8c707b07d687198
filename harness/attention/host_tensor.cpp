// SPDX-License-Identifier: MIT
#include "harness/attention/host_tensor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/attention/parallel.h"

namespace fa {
namespace {

constexpr std::int64_t kGrain = 1 << 18;

// NaN and infinity are the patterns with all of these bits set: the exponent's, of e4m3 all but the
// sign.
template <class Word, Word kExponent>
std::int64_t count_special(const Word* words, std::int64_t begin, std::int64_t end) {
  std::int64_t count = 0;
  for (std::int64_t i = begin; i < end; ++i) count += (words[i] & kExponent) == kExponent;
  return count;
}

std::int64_t count_special(const HostTensor& tensor, std::int64_t begin, std::int64_t end) {
  if (tensor.dtype == Dtype::e4m3) {
    return count_special<std::uint8_t, 0x7f>(
        reinterpret_cast<const std::uint8_t*>(tensor.bytes.data()), begin, end);
  }
  if (tensor.dtype == Dtype::f16) {
    return count_special<std::uint16_t, 0x7c00>(tensor.halfs().data(), begin, end);
  }
  if (tensor.dtype == Dtype::bf16) {
    return count_special<std::uint16_t, 0x7f80>(tensor.halfs().data(), begin, end);
  }
  return count_special<std::uint32_t, 0x7f800000>(
      reinterpret_cast<const std::uint32_t*>(tensor.bytes.data()), begin, end);
}

std::string format_value(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::string describe_index(const Shape& shape, std::int64_t index) {
  const std::int64_t column = index % shape[3];
  const std::int64_t row = index / shape[3] % shape[2];
  const std::int64_t head = index / shape[3] / shape[2] % shape[1];
  const std::int64_t batch = index / shape[3] / shape[2] / shape[1];
  return "batch " + std::to_string(batch) + ", head " + std::to_string(head) + ", row " +
         std::to_string(row) + ", column " + std::to_string(column);
}

HostTensor make_tensor(Dtype dtype, const Shape& shape) {
  HostTensor tensor{dtype, shape, {}};
  tensor.bytes.resize(static_cast<std::size_t>(elements(shape)) * size_of(dtype));
  return tensor;
}

HostTensor make_tensor(Dtype dtype, const Shape& shape, float value) {
  HostTensor tensor = make_tensor(dtype, shape);
  parallel_for(tensor.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (dtype == Dtype::e4m3) {
      std::fill(tensor.bytes.begin() + begin, tensor.bytes.begin() + end,
                static_cast<std::byte>(float_to_e4m3(value)));
    } else if (size_of(dtype) == 2) {
      std::fill(tensor.halfs().begin() + begin, tensor.halfs().begin() + end,
                dtype == Dtype::f16 ? float_to_half(value) : float_to_bf16(value));
    } else {
      std::fill(tensor.floats().begin() + begin, tensor.floats().begin() + end, value);
    }
  });
  return tensor;
}

std::int64_t find_non_finite(const HostTensor& tensor) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> first{kNone};
  parallel_for(tensor.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (begin > first || count_special(tensor, begin, end) == 0) return;
    while (count_special(tensor, begin, begin + 1) == 0) ++begin;
    std::int64_t seen = first;
    while (begin < seen && !first.compare_exchange_weak(seen, begin)) {
    }
  });
  return first == kNone ? -1 : first.load();
}

std::int64_t count_non_finite(const HostTensor& tensor) {
  std::atomic<std::int64_t> count{0};
  parallel_for(tensor.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    count += count_special(tensor, begin, end);
  });
  return count;
}

bool bitwise_equal(const HostTensor& a, const HostTensor& b, std::string* difference) {
  auto differ = [&](std::string text) {
    if (difference != nullptr) *difference = std::move(text);
    return false;
  };
  if (a.dtype != b.dtype) {
    return differ(std::string("dtypes differ: ") + to_string(a.dtype) + " and " +
                  to_string(b.dtype));
  }
  if (a.shape != b.shape) {
    return differ("shapes differ: " + to_string(a.shape) + " and " + to_string(b.shape));
  }
  if (a.bytes.empty() || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0) {
    return true;
  }
  const auto [in_a, in_b] = std::mismatch(a.bytes.begin(), a.bytes.end(), b.bytes.begin());
  const auto index = (in_a - a.bytes.begin()) / static_cast<std::ptrdiff_t>(size_of(a.dtype));
  return differ("first difference at " + describe_index(a.shape, index) + ": " +
                format_value(a.at(index)) + " and " + format_value(b.at(index)));
}

}  // namespace fa
