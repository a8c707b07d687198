// SPDX-License-Identifier: MIT
// Global memory of a command line: what is made, what is written afterwards.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ptxvm/launch.h"
#include "tools/launch_options.h"

namespace ptxvm::tools {

/// Before anything runs: every file that will be written can be, and is none of those that are
/// read; the host has memory for all buffers.
void require_files_and_memory(const LaunchOptions& wanted);

/// Makes the buffers of arguments, and remembers what is to be written.
class Buffers {
 public:
  explicit Buffers(Memory& memory) : memory_(memory) {}

  /// `align` is that of the parameter.
  Argument make(const KernelArgument& argument, uint32_t align);
  /// Gives a variable its first contents.
  void fill(const Module& module, const VariableWords& wanted);
  /// Writes the files of all arguments and variables that say so.
  void write(bool overwrite) const;

 private:
  struct Held {
    Address address = 0;
    ArrayType type;
  };
  struct Output {
    std::string path;
    ArrayType type;
    std::span<const std::byte> bytes;
  };

  Held place(const BufferArgument& buffer);
  Held made(const BufferArgument& buffer);
  Argument tensor_map(const TensorMapArgument& wanted);
  Argument structure(const StructArgument& wanted, uint32_t align);
  std::string free_name(const std::string& wanted) const;

  Memory& memory_;
  std::map<std::string, Held> held_;
  std::vector<Output> outputs_;
};

}  // namespace ptxvm::tools
