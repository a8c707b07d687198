// SPDX-License-Identifier: MIT
// A PTX text, read, checked and made ready to run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxvm/diagnostic.h"

namespace ptxvm {

/// Extent of a grid, of a block (in threads) or of a cluster (in blocks).
struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;

  uint64_t count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

/// What an instruction is counted as. The order is the order of reports.
enum class CountClass : uint8_t {
  kInteger,
  kFloat,
  kHalf,
  kDouble,
  kExp,      ///< ex2
  kSpecial,  ///< rcp, rsqrt, sqrt.approx, lg2, sin, cos, tanh
  kConvert,
  kCompare,
  kMove,
  kTensor,        ///< mma.sync
  kWgmma,         ///< wgmma.mma_async
  kWgmmaSync,     ///< wgmma.fence, commit_group, wait_group
  kTcgen05,       ///< tcgen05.mma
  kTcgen05Sync,   ///< tcgen05.alloc and dealloc, commit, wait, fence
  kTensorMemory,  ///< tcgen05.ld, st, cp and shift
  kLdMatrix,
  kStMatrix,
  kMovMatrix,
  kLoadShared,
  kStoreShared,
  kLoadGlobal,
  kStoreGlobal,
  kLoadLocal,
  kStoreLocal,
  kLoadParam,
  kLoadConst,
  kLoadGeneric,
  kStoreGeneric,
  kAtomic,
  kCpAsync,
  kCpAsyncGroup,  ///< commit_group, wait_group, wait_all
  kBulkCopy,      ///< cp.async.bulk and its tensor forms
  kMbarrier,
  kShuffle,
  kVote,  ///< vote, match, redux, activemask, elect
  kBarrier,
  kFence,
  kBranch,
  kControl,  ///< exit, trap, nanosleep, setmaxnreg, prefetches
  kCount,
};

/// Short name used in reports and JSON, e.g. `load_shared`.
std::string_view name(CountClass c);

/// Whether a count of this class carries over to machine code one to one (mma, ldmatrix, ex2, shfl,
/// memory) or not (integer arithmetic and moves, which ptxas rewrites).
bool carries_over(CountClass c);

/// A C++ name as the source has it, without ABI tags; another name as it is.
std::string demangle(std::string_view name);

/// One kernel parameter (PTX ISA 7.1).
struct Parameter {
  std::string name;
  std::string type;     ///< As declared: `u64`, `f32`, or `b8` for an aggregate.
  uint32_t offset = 0;  ///< Bytes from the start of the parameter block.
  uint32_t size = 0;    ///< Bytes.
  uint32_t align = 0;   ///< Bytes.
};

/// One instruction of a kernel, in the order of the text.
struct InstructionInfo {
  std::string_view opcode;  ///< The whole mnemonic, e.g. `ld.global.v4.f32`.
  CountClass count_class = CountClass::kControl;
  int line = 0;              ///< Line in the PTX text.
  int column = 0;            ///< Column of the mnemonic.
  uint32_t block = 0;        ///< Basic block that holds it.
  int location = -1;         ///< Index for `Kernel::source`; -1 without -lineinfo.
  bool unreachable = false;  ///< No path from the entry reaches it; never executed or counted.
};

/// A variable of a module: `__device__` or `__constant__` in CUDA C++.
struct ModuleVariable {
  std::string name;
  std::string space;  ///< `global` or `const`
  uint64_t bytes = 0;
};

// Inside the library.
struct Program;
struct ModuleData;

/// One `.entry` of a module. A view: valid while its module lives.
class Kernel {
 public:
  explicit Kernel(const Program* program) : program_(program) {}

  const std::string& name() const;
  std::string readable_name() const;  ///< Demangled.
  std::span<const Parameter> parameters() const;
  uint32_t parameter_bytes() const;
  uint32_t static_shared_bytes() const;
  bool uses_dynamic_shared() const;
  uint32_t local_bytes() const;  ///< Per thread.
  uint32_t register_slots() const;
  std::optional<Dim3> max_threads() const;       ///< .maxntid
  std::optional<Dim3> required_threads() const;  ///< .reqntid
  std::optional<Dim3> required_cluster() const;  ///< .reqnctapercluster

  /// Instructions in the order of the text, also those that are not supported; then those of the
  /// functions that it calls.
  std::span<const InstructionInfo> instructions() const;
  uint32_t block_count() const;
  /// First instruction of each basic block that is reachable, by block number.
  std::span<const uint32_t> block_first() const;

  /// Where an instruction comes from: innermost inlined function first, the kernel's own line last.
  std::span<const SourceLocation> source(uint32_t instruction) const;

  /// What is wrong with this kernel's text, or that of a function it calls. A launch is refused
  /// while there is any; other kernels of the module run all the same.
  std::span<const Diagnostic> errors() const;
  /// Valid PTX in this kernel that the machine does not run: the first places, and how many more
  /// there are. A launch is refused while there is any.
  std::span<const Diagnostic> unsupported() const;

  /// The text of the line that holds an instruction, and a diagnostic that points at it with the
  /// inlining chain as notes.
  Diagnostic point_at(uint32_t instruction, std::string message) const;

  const Program& program() const { return *program_; }

 private:
  const Program* program_;
};

/// A loaded PTX module. Cheap to copy; immutable.
class Module {
 public:
  /// Reads PTX text. `file_name` is used in messages only. Throws `Error` when the text is not PTX,
  /// is longer than 32 MiB, or has kernels and not one without errors.
  static Module parse(std::string text, std::string file_name);

  /// Reads a file. Throws `Error` when it cannot be read, is not a regular file, or is not PTX.
  static Module load(const std::string& path);

  const std::string& file_name() const;
  const std::string& target() const;  ///< e.g. `sm_90a`
  int isa_version() const;            ///< Ten times the `.version`, e.g. 90 for 9.0.

  std::span<const Kernel> kernels() const;
  /// The kernel of that name; throws `Error` that lists the names there are.
  const Kernel& kernel(std::string_view name) const;
  /// The one kernel that `wanted` may mean: its name, its demangled name with or without
  /// parameters, template arguments and scope, or a part of either; anything where there is one
  /// kernel and `wanted` is empty. Throws `Error` that lists the candidates where there is not
  /// exactly one.
  const Kernel& find(std::string_view wanted) const;

  /// In no particular order. `Memory::variable` reads and writes them.
  std::vector<ModuleVariable> variables() const;

  const ModuleData& data() const { return *data_; }

 private:
  std::shared_ptr<const ModuleData> data_;
};

}  // namespace ptxvm
