// SPDX-License-Identifier: MIT
// Kernels of others, measured beside the rungs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "harness/device/gpu.h"
#include "kernels/problem.h"

namespace fa {

/// Device pointers; results are null while timing. Of a backward pass O and the LSE are inputs.
struct PeerTensors {
  const void *q, *k, *v;
  void* o;
  const void *lse, *d_o;
  void *d_q, *d_k, *d_v;
};

/// Someone else's kernel, given as callbacks.
struct Peer {
  std::string id;       ///< "fa2"
  std::string variant;  ///< version or backend; may be empty
  std::string unavailable_reason;
  /// Ceilings run no attention: {M, N, K} of a matrix product in the problem's dtype, or how many
  /// bytes are copied from one place of the device's memory to another; zeros for attention.
  std::array<std::int64_t, 3> matmul{};
  std::int64_t copy_bytes = 0;

  /// Why the problem is not supported, empty when it is.
  std::function<std::string(const Problem&)> unsupported;
  /// Enqueues one pass. Throws when it cannot.
  std::function<void(const Problem&, const PeerTensors&, GpuStream stream)> launch;
  /// Device memory that the last launch took besides the inputs; nothing when it is not known.
  std::function<std::optional<std::int64_t>()> device_bytes;

  bool is_matmul() const { return matmul[0] > 0; }
  bool is_copy() const { return copy_bytes > 0; }
  bool is_ceiling() const { return is_matmul() || is_copy(); }
};

/// Thrown by Peer::launch when a problem turns out to be unsupported.
struct PeerUnsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace fa
