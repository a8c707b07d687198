// SPDX-License-Identifier: MIT
// Kernel arguments as the command line has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "ptxvm/launch.h"
#include "tools/npy.h"

namespace ptxvm::tools {

/// The command line is wrong; one line that names the word and what is allowed.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A piece of global memory.
struct BufferArgument {
  enum class Begin : uint8_t {
    kFile,     ///< Q.npy and inout:Q.npy: the contents of a file.
    kPoison,   ///< out:O.npy:float16[2,64]
    kZero,     ///< zero:O.npy:float32[64]
    kEarlier,  ///< buffer:NAME: a buffer that an earlier argument made.
  };
  Begin begin = Begin::kFile;
  std::string name;      ///< Of the file, or of the buffer.
  ArrayType type;        ///< For kPoison and kZero.
  uint64_t offset = 0;   ///< For kEarlier: bytes.
  bool written = false;  ///< To the file of its name, afterwards.

  bool reads_file() const { return begin == Begin::kFile; }
};
/// i32:7, bf16:0.5, raw:00ff
struct ValueArgument {
  std::string word;  ///< As it was given.
  std::vector<std::byte> bytes;
  const ElementInfo* type = nullptr;  ///< Null for raw.
};
/// tmap:Q.npy:box=64,64:swizzle=128; extents are those of the array, outermost first.
struct TensorMapArgument {
  BufferArgument base;
  std::vector<uint64_t> dims;     ///< Elements; empty: the array's.
  std::vector<uint64_t> strides;  ///< Bytes, of all but the last dimension; empty: without gaps.
  std::vector<uint64_t> box;      ///< Elements.
  Swizzle swizzle = Swizzle::kNone;
};
/// struct:Q.npy;i32:7: members as C lays them out.
struct StructArgument {
  std::vector<std::variant<BufferArgument, ValueArgument, TensorMapArgument>> members;
};
using KernelArgument =
    std::variant<BufferArgument, ValueArgument, TensorMapArgument, StructArgument>;

/// Reads one word. Throws UsageError and InputError.
KernelArgument parse_argument(const std::string& word);

/// All buffers of an argument.
std::vector<const BufferArgument*> buffers_of(const KernelArgument& argument);

/// Throws UsageError where the argument is of another kind than its parameter: a float for an
/// integer, a number for a pointer, a size that differs.
void require_fit(const KernelArgument& argument, const Kernel& kernel, size_t index);

}  // namespace ptxvm::tools
