// What a rung tells a device: which entry points to launch, with which arguments.
// Both devices, GPU and virtual machine, execute the same plan.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/problem.h"
#include "kernels/types.h"

namespace fa {

/// A buffer of the problem, named rather than addressed: each device has its own pointers. What a
/// problem does not have is a null pointer: the LSE, lengths (int32 [batch]), the page table (int32
/// [batch, table_width()]), the scales of an e4m3 cache (float32 [2, batch, kv_heads]), the sinks
/// (float32 [heads]), the first rows of the sequences of a packed batch (int32 [batch + 1]), the
/// gradients of O, Q, K and V, which have the shapes and types of these. Of a backward pass O and
/// the LSE are inputs.
enum class Tensor {
  q,
  k,
  v,
  o,
  lse,
  lengths,
  page_table,
  kv_scales,
  sinks,
  cu_seqlens_q,
  cu_seqlens_k,
  d_o,
  d_q,
  d_k,
  d_v
};
inline constexpr std::size_t kTensors = 15;

/// Their names in files and in messages.
struct TensorName {
  const char *in_files, *in_text;
};
inline constexpr std::array<TensorName, kTensors> kTensorNames{{{"q", "Q"},
                                                                {"k", "K"},
                                                                {"v", "V"},
                                                                {"o", "O"},
                                                                {"lse", "LSE"},
                                                                {"lengths", "lengths"},
                                                                {"page_table", "page table"},
                                                                {"kv_scales", "scales"},
                                                                {"sinks", "sinks"},
                                                                {"cu_seqlens_q", "cu_seqlens_q"},
                                                                {"cu_seqlens_k", "cu_seqlens_k"},
                                                                {"d_o", "dO"},
                                                                {"d_q", "dQ"},
                                                                {"d_k", "dK"},
                                                                {"d_v", "dV"}}};
inline constexpr const TensorName& name_of(Tensor tensor) {
  return kTensorNames.at(static_cast<std::size_t>(tensor));
}

/// A buffer of the plan's own, by its place in LaunchPlan::scratch.
struct ScratchRef {
  int index = 0;
  bool operator==(const ScratchRef&) const = default;
};

/// Shared-memory layout that a tensor copy writes (PTX ISA 5.5.7).
enum class Swizzle { none, b32, b64, b128 };

/// A tensor map: the view of a tensor through which the TMA copies boxes (CUDA driver API,
/// cuTensorMapEncodeTiled; PTX ISA 5.5). Elements have the problem's dtype; what a box covers
/// outside the extents is read as zero and not written.
struct TensorMap {
  Tensor tensor = Tensor::q;
  int rank = 2;
  std::array<std::int64_t, 5> extents{1, 1, 1, 1, 1};  ///< elements, innermost first
  std::array<std::int64_t, 5> strides{};               ///< elements; [0] is 1 and not looked at
  std::array<int, 5> box{1, 1, 1, 1, 1};               ///< elements, innermost first
  Swizzle swizzle = Swizzle::none;
  /// Elements from the tensor to the place of coordinates 0, which may lie outside of it where no
  /// box does.
  std::int64_t offset = 0;
  bool operator==(const TensorMap&) const = default;
};

/// Kernel argument in parameter order.
using Argument = std::variant<Tensor, ScratchRef, TensorMap, std::int32_t, std::int64_t, float>;

struct Dim3 {
  std::int64_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
};

/// One kernel launch.
struct Launch {
  const char* entry = nullptr;   ///< name of the extern "C" entry point, as in the PTX
  const void* kernel = nullptr;  ///< host symbol of the same entry point
  Dim3 grid;
  Dim3 cluster;                    ///< blocks per cluster; the grid is a multiple of it
  int block = 0;                   ///< threads per block
  std::size_t dynamic_shared = 0;  ///< bytes
  std::vector<Argument> arguments;
  /// May begin before the launch ahead of it in the stream has ended: the kernel itself waits
  /// before it reads or writes memory (programmatic dependent launch; PTX ISA: "griddepcontrol").
  /// The virtual machine begins no launch early.
  bool early = false;
  bool operator==(const Launch&) const = default;
};

/// Device memory that a plan needs besides the problem's tensors, such as S and P of the standard
/// attention. It belongs to the plan: two plans in flight at the same time have two of it.
struct Scratch {
  const char* name = nullptr;  ///< for messages
  std::int64_t bytes = 0;
  /// Zero before the first launch, and every launch leaves zeros behind (a counter). Else its
  /// contents are undefined before each launch.
  bool zeroed = false;
};

/// The launches of one pass, in stream order.
struct LaunchPlan {
  std::vector<Launch> launches;
  std::vector<Scratch> scratch = {};
  /// Promises the same bits in each launch: whatever is added to one place has one order.
  bool deterministic = false;
};

/// Why a rung does not take a problem; one sentence that names the value and what is allowed.
struct Unsupported {
  std::string reason;
};

/// What a rung makes of a problem; kernels/types.h declares it for files that hand it on.
struct PlanResult : std::variant<LaunchPlan, Unsupported> {
  using variant::variant;
};

/// "64x128w4".
std::string to_string(const Tile& tile);

/// For rungs that take whole tiles only: why they refuse this problem, if they do.
std::optional<Unsupported> refuse_partial_tiles(const Problem& problem, const Tile& tile);

/// What a plan may know of the device it is made for.
struct DeviceDescription {
  std::string name;
  int sm = 0;                    ///< compute capability x 10
  int sms = 1;                   ///< streaming multiprocessors
  std::int64_t l2_bytes = 0;     ///< size of the L2 cache
  std::size_t shared_bytes = 0;  ///< shared memory that one block may have
  bool all_targets = false;      ///< runs code for every compute capability: the virtual machine
};

/// What the virtual machine stands for, and what plans are made for where no card is: an H200.
DeviceDescription h200_description();

}  // namespace fa
