// SPDX-License-Identifier: MIT
// Slices of one block, in steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/json_text.h"
#include "ptxvm/module.h"

namespace ptxvm::observe {

/// What a slice of a warp is about.
enum class Activity : uint8_t {
  kNone,
  kOther,       ///< Addresses, moves, branches; joins whatever is going on.
  kMatrix,      ///< ldmatrix, mma, wgmma.
  kArithmetic,  ///< Floating point, conversions, shuffles: the softmax of an attention kernel.
  kLoad,
  kStore,
  kCopy,  ///< Starts asynchronous copies.
  kSync,  ///< Barriers, fences and waits, while they are executed.
};

Activity activity_of(CountClass count, bool waits);

/// Events of one block, as the lines of a JSON array.
class Timeline {
 public:
  Timeline(const Kernel& kernel, uint32_t process, const std::string& name, uint32_t warps);

  uint64_t now(uint32_t warp) const { return warps_[warp].now; }
  uint64_t latest() const;

  /// One instruction: one step.
  void step(uint32_t warp, uint32_t instruction);
  /// The warp waits until `end`, if that is later than now.
  void wait(uint32_t warp, uint64_t end, uint32_t instruction, const std::string& what);
  /// Closes the slice that is open.
  void flush(uint32_t warp);

  /// An engine works from one step of a warp to another; an arrow leads to the end.
  void engine(uint32_t warp, uint64_t begin, uint64_t end, const std::string& category,
              const std::string& name);

  const std::vector<std::string>& events() const { return events_; }

 private:
  struct Run {
    Activity activity = Activity::kNone;
    uint64_t begin = 0;
    uint32_t instruction = 0;
  };
  struct WarpLine {
    uint64_t now = 0;
    Run open, next;  // `next`: a change that may not last
  };

  void slice(uint32_t warp, const std::string& name, const char* category, uint64_t begin,
             uint64_t end, uint32_t instruction);
  void close(uint32_t warp, const Run& run, uint64_t end);

  const Kernel kernel_;
  uint32_t process_;
  std::vector<WarpLine> warps_;
  std::vector<std::string> events_;
  uint64_t next_id_ = 0;
};

}  // namespace ptxvm::observe
