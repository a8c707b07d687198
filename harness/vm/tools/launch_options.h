// SPDX-License-Identifier: MIT
// The command line of `ptxvm run`.
#pragma once

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

/// --arg Q.npy: a buffer with the file's contents.
struct InputFile {
  std::string path;
};
/// --arg out:O.npy:float16[2,64]: a buffer of NaN that is written to the file afterwards.
struct OutputFile {
  std::string path;
  ArrayType type;
};
/// --arg zero:NAME:float32[64]: a buffer of zeros.
struct ZeroBuffer {
  std::string name;
  ArrayType type;
};
/// --arg i32:7, f32:0.125 and so on: the bytes of a value.
struct Scalar {
  Argument value;
};
using KernelArgument = std::variant<InputFile, OutputFile, ZeroBuffer, Scalar>;

struct LaunchOptions {
  std::string file, entry;
  Dim3 grid, block, cluster;
  uint32_t shared_bytes = 0;
  int threads = 0;
  bool reversed = false, checkers = true, by_line = false, overwrite = false;
  std::vector<KernelArgument> arguments;
};

/// Reads the words after `run`. Throws UsageError and InputError.
LaunchOptions parse_launch(const std::vector<std::string>& words);

}  // namespace ptxvm::tools
