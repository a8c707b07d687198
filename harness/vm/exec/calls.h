// SPDX-License-Identifier: MIT
// Calls of functions: where each lane goes back to, and its frames.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ptxvm {

struct Warp;
struct Op;

/// One call that a lane has not come back from.
struct CallFrame {
  uint32_t return_pc = 0;
  uint32_t site = 0;            ///< Index into Program::calls.
  uint32_t function = 0;        ///< Index into Program::functions.
  uint32_t base = 0;            ///< Local address of the callee's frame.
  std::vector<uint64_t> saved;  ///< Registers of the activation before, of a recursive function.
};

/// Lanes of a warp may be at different depths.
struct CallStack {
  std::array<std::vector<CallFrame>, 32> lanes;
  std::array<uint32_t, 32> top{};  ///< Local address behind the last frame.
};

/// What kernels print, put into the order of blocks when the launch has ended.
class Printed {
 public:
  void add(uint32_t block, const std::string& text);
  /// All of it, at most a mebibyte.
  std::string take();

 private:
  static constexpr size_t kMost = size_t{1} << 20;

  std::mutex mutex_;
  std::vector<std::pair<uint32_t, std::string>> pieces_;
  size_t bytes_ = 0;
};

/// Calls a function that the machine provides.
void call_system(Warp& w, const Op& op);

}  // namespace ptxvm
