// SPDX-License-Identifier: MIT
// A contiguous [B, H, N, D] tensor in host memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/attention/half.h"
#include "kernels/problem.h"

namespace fa {

/// Allocator that leaves new elements uninitialised: tensors reach a gigabyte, and zeroing one on a
/// single thread takes longer than filling it on all of them.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class First, class... Rest>
  void construct(U* place, First&& first, Rest&&... rest) {
    ::new (static_cast<void*>(place)) U(std::forward<First>(first), std::forward<Rest>(rest)...);
  }
};

/// Batch, heads, sequence length, head_dim.
using Shape = std::array<std::int64_t, 4>;

/// Product of the extents.
constexpr std::int64_t elements(const Shape& shape) {
  return shape[0] * shape[1] * shape[2] * shape[3];
}

/// "[2, 3, 256, 64]".
std::string to_string(const Shape& shape);

/// Position of an element, for messages: "batch 1, head 2, row 17, column 5".
std::string describe_index(const Shape& shape, std::int64_t index);

struct HostTensor {
  Dtype dtype = Dtype::f16;
  Shape shape{};  ///< B, H, N, D; row-major
  std::vector<std::byte, UninitializedAllocator<std::byte>> bytes;

  std::int64_t size() const { return elements(shape); }

  /// Raw patterns; only for f16 and bf16 tensors.
  std::span<const std::uint16_t> halfs() const {
    return {reinterpret_cast<const std::uint16_t*>(bytes.data()), bytes.size() / 2};
  }
  std::span<std::uint16_t> halfs() {
    return {reinterpret_cast<std::uint16_t*>(bytes.data()), bytes.size() / 2};
  }
  /// Values; only for f32 tensors.
  std::span<const float> floats() const {
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4};
  }
  std::span<float> floats() { return {reinterpret_cast<float*>(bytes.data()), bytes.size() / 4}; }

  /// Element at a linear index, whatever the dtype.
  float at(std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    if (dtype == Dtype::e4m3) return e4m3_to_float(static_cast<std::uint8_t>(bytes[i]));
    if (dtype == Dtype::bf16) return bf16_to_float(halfs()[i]);
    return dtype == Dtype::f16 ? half_to_float(halfs()[i]) : floats()[i];
  }
  /// Stores a value, rounded to the dtype.
  void set(std::int64_t index, float value) {
    const auto i = static_cast<std::size_t>(index);
    if (dtype == Dtype::e4m3) {
      bytes[i] = static_cast<std::byte>(float_to_e4m3(value));
    } else if (dtype == Dtype::f16) {
      halfs()[i] = float_to_half(value);
    } else if (dtype == Dtype::bf16) {
      halfs()[i] = float_to_bf16(value);
    } else {
      floats()[i] = value;
    }
  }
};

/// A tensor with uninitialised elements.
HostTensor make_tensor(Dtype dtype, const Shape& shape);

/// A tensor with every element set to value (rounded to the dtype).
HostTensor make_tensor(Dtype dtype, const Shape& shape, float value);

/// Shape of Q and O.
inline Shape q_shape(const Problem& p) {
  return {p.stored_batch(), p.heads, p.stored_queries(), p.head_dim};
}

/// Shape of K and V as they are stored.
inline Shape kv_shape(const Problem& p) {
  if (p.page > 0) return {p.pages(), p.kv_heads(), p.page, p.head_dim};
  return {p.stored_batch(), p.kv_heads(), p.stored_keys(), p.head_dim};
}

/// Shape of the LSE, which is float32 for every dtype.
inline Shape lse_shape(const Problem& p) {
  return {p.stored_batch(), p.heads, p.stored_queries(), 1};
}

/// Linear index of the first NaN or infinity, -1 when all elements are finite. Multi-threaded.
std::int64_t find_non_finite(const HostTensor& tensor);

/// Number of NaN and infinite elements. Multi-threaded.
std::int64_t count_non_finite(const HostTensor& tensor);

/// True when dtype, shape and every bit agree. Otherwise, and when `difference` is given, it
/// receives one sentence naming the first element that differs and both values.
bool bitwise_equal(const HostTensor& a, const HostTensor& b, std::string* difference = nullptr);

}  // namespace fa
