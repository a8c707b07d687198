// SPDX-License-Identifier: MIT
// Memory, arguments and the launch itself.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "ptxvm/card.h"
#include "ptxvm/module.h"
#include "ptxvm/observer.h"

namespace ptxvm {

/// A global address as kernels see it.
using Address = uint64_t;

/// What a fresh buffer holds.
enum class Fill : uint8_t {
  kPoison,  ///< All bits one: NaN in every floating-point type.
  kZero,
};

/// A named piece of global memory.
struct Buffer {
  std::string name;
  Address address = 0;  ///< A multiple of 256 bytes, plus the buffer's skew.
  size_t bytes = 0;
  std::byte* host = nullptr;
  /// Poison that neither the host has asked for nor a kernel has run over: a read finds nothing.
  bool fresh = false;
};

/// Global memory of the machine. Every buffer stands alone in half a terabyte of red zone on either
/// side, so that no wrong index reaches another buffer and each stray address names its neighbour.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Makes a buffer, which begins `skew` bytes (less than 256) after a multiple of 256: a part of a
  /// larger array is no better aligned than it is there. Throws `Error` for a name in use and
  /// std::bad_alloc when the host has no room.
  Address allocate(std::string name, size_t bytes, Fill fill = Fill::kPoison, size_t skew = 0);
  /// Makes a buffer and copies `data` into it.
  Address upload(std::string name, std::span<const std::byte> data, size_t skew = 0);
  /// Makes a buffer of zeros that the host reads and writes at the same address, as CUDA's managed
  /// and pinned memory. There may be 64 at once, on Linux; std::bad_alloc where there is no room.
  Address map(std::string name, size_t bytes);
  /// Frees a buffer; later accesses to its addresses are out of bounds.
  void release(Address address);

  /// The contents of a buffer; throws `Error` for an unknown name or address.
  std::span<std::byte> bytes(std::string_view name);
  std::span<std::byte> bytes(Address address);

  /// The buffer that holds an address, or whose red zone does; null where there is none.
  const Buffer* find(Address address) const;
  std::span<const std::unique_ptr<Buffer>> buffers() const;

  /// Storage of a module's `.global` and `.const` variables; made by the first launch or the first
  /// look at one, kept until the memory goes.
  void attach(const Module& module);
  /// The contents of a `__device__` or `__constant__` variable, to be read and written between
  /// launches; by its name in the PTX or its demangled name. Throws `Error` that lists the names
  /// there are.
  std::span<std::byte> variable(const Module& module, std::string_view name);
  /// The constant bank of a module that is attached.
  std::span<std::byte> constants(const Module& module);

  /// malloc and free of kernels: 0 when the heap of 8 MiB is full; false when nothing in use begins
  /// at the address.
  Address heap_allocate(size_t bytes);
  bool heap_release(Address address);

  /// Zeroed memory that the barrier of a cooperative grid counts in.
  Address grid_workspace();
  /// From now on every buffer may have been written.
  void forget_fresh();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Shared-memory layout that a tensor copy writes (PTX ISA 5.5.7). Chunks of 16 bytes change
/// places, in the last one chunks of 32 bytes of a row of 128.
enum class Swizzle : uint8_t { kNone, k32B, k64B, k128B, k128BAtom32B };

/// Types of a tensor map's elements, by the numbers of PTX ISA 9.7.9.27. Copies need none;
/// reductions combine elements of that type.
enum class MapElement : uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF32Ftz,
  kF64,
  kBf16,
  kTf32,
  kTf32Ftz,
  // Elements of 4 and 6 bits, side by side: extents and boxes have bytes, coordinates count
  // elements.
  kPackedU4,
  kU4Gaps,  ///< In shared memory 16 of them have 16 bytes.
  kU6Gaps,  ///< The same.
  kUnknown = 255,
};

/// What cuTensorMapEncodeTiled is given, for tiled mode without interleave.
struct TensorMap {
  Address base = 0;
  uint32_t element_bytes = 2;
  uint32_t rank = 2;
  std::array<uint64_t, 5> dims{1, 1, 1, 1, 1};     ///< Elements, innermost first.
  std::array<uint64_t, 5> strides{0, 0, 0, 0, 0};  ///< Bytes; [0] is the element size.
  std::array<uint32_t, 5> box{1, 1, 1, 1, 1};      ///< Elements, innermost first.
  Swizzle swizzle = Swizzle::kNone;
  MapElement element = MapElement::kUnknown;
};

/// The 128 bytes that stand for a tensor map in parameter memory.
std::array<std::byte, 128> encode(const TensorMap& map);
/// Reads them back; empty when the bytes were not made by `encode`.
std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes);

/// One kernel argument: a pointer, the bytes of a scalar or struct, or a tensor map.
class Argument {
 public:
  static Argument pointer(Address address) { return scalar(address); }
  template <class T>
  static Argument scalar(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    Argument a;
    a.bytes_.resize(sizeof(T));
    std::memcpy(a.bytes_.data(), &value, sizeof(T));
    return a;
  }
  static Argument raw(std::span<const std::byte> bytes) {
    Argument a;
    a.bytes_.assign(bytes.begin(), bytes.end());
    return a;
  }
  static Argument tensor_map(const TensorMap& map) { return raw(encode(map)); }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// A launch as the host would write it between <<< and >>>.
struct LaunchConfig {
  Dim3 grid, block, cluster;  ///< cluster 1 x 1 x 1: without clusters, unless the kernel asks
  uint32_t dynamic_shared_bytes = 0;
  std::vector<Argument> arguments;
  /// As cudaLaunchCooperativeKernel: all blocks must be resident at once, and
  /// cooperative_groups::this_grid().sync() works.
  bool cooperative = false;
};

/// Order in which warps of a block, or blocks of the grid, get their turn. Of the blocks, as many
/// as the card holds are reversed: a block may wait for those before it.
enum class Order : uint8_t { kForward, kReversed };

struct Options {
  /// Host threads; 0 takes all cores. A kernel whose blocks see what others do in global memory
  /// (atomics whose result or order matters, volatile and acquiring loads) is run by one, so that
  /// results and counts are the same each time.
  int threads = 0;
  Order warp_order = Order::kForward;
  Order cta_order = Order::kForward;
  std::vector<Observer*> observers;
  uint64_t max_warp_steps = uint64_t{1} << 32;  ///< Instructions of one warp before it is stopped.
  uint64_t max_steps = uint64_t{1} << 40;       ///< Of all warps of the launch together.
  /// Local memory of all threads that the launch keeps at once. Host threads are fewer where blocks
  /// need much; a launch whose blocks need more side by side is refused.
  uint64_t max_local_bytes = uint64_t{512} << 20;
  /// What the launch is for. It holds so many blocks at once, which matters to kernels whose blocks
  /// wait for each other.
  Card card = kH200;
  /// Of a thread, as `ptxas -v` prints them: they limit how many blocks are resident. 0: not known,
  /// no limit.
  uint32_t registers = 0;
  uint32_t shared_base = 1024;  ///< First shared address; a multiple of 16, so that 0 is not valid.
  const std::atomic<bool>* stop = nullptr;  ///< Ends the launch soon after it becomes true.
  bool portable_math = false;  ///< Do not use AVX2 even where there is; results are the same.
};

enum class FaultKind : uint8_t {
  kOutOfBounds,
  kMisaligned,
  kDivergence,  ///< A collective instruction without the lanes it needs.
  kDeadlock,
  kTrap,
  kStepLimit,
  kInvalid,  ///< An operand value that PTX does not allow.
};

std::string_view name(FaultKind kind);

/// Why a launch stopped. With several faults, the one of the first block in launch order.
struct Fault {
  FaultKind kind = FaultKind::kInvalid;
  std::string message;       ///< One line.
  std::string kernel;        ///< Entry name.
  Dim3 cta;                  ///< %ctaid
  int warp = -1, lane = -1;  ///< -1 where it does not apply.
  std::optional<uint32_t> instruction;
  Diagnostic where;  ///< PTX line, caret, inlining chain; for a deadlock every warp's position.

  std::string format() const { return where.format(); }
};

struct LaunchResult {
  std::optional<Fault> fault;
  std::vector<Finding> findings;  ///< Of all observers, in their order.
  uint64_t steps = 0;             ///< Instructions that warps executed.
  bool stopped = false;           ///< By Options::stop, before its end.
  std::string printed;            ///< By printf and assert, in the order of blocks; at most 1 MiB.

  /// No fault, and no finding but advice.
  bool ok() const {
    return !fault && !stopped &&
           std::all_of(findings.begin(), findings.end(),
                       [](const Finding& f) { return f.severity == Severity::kAdvice; });
  }
};

/// Runs a kernel to its end or to its first fault. Throws `Error` when the launch itself is
/// refused: unsupported instructions, a grid or block that is out of range, arguments that do not
/// fit.
LaunchResult launch(const Module& module, std::string_view entry, const LaunchConfig& config,
                    Memory& memory, const Options& options = {});

}  // namespace ptxvm
