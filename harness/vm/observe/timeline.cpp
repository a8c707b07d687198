// SPDX-License-Identifier: MIT
#include "observe/timeline.h"

#include <algorithm>
#include <cstdio>

#include "observe/instruction.h"

namespace ptxvm::observe {
namespace {

// Steps that a change between computing, loading and storing must last to be a slice of its own:
// nvcc mixes the end of one phase with the start of the next.
constexpr uint64_t kHold = 8;

const char* name_of(Activity a) {
  constexpr const char* kNames[] = {"",     "other", "matrix", "arithmetic",
                                    "load", "store", "copy",   "sync"};
  return kNames[static_cast<size_t>(a)];
}

bool lasts(Activity a) {
  return a == Activity::kMatrix || a == Activity::kArithmetic || a == Activity::kLoad ||
         a == Activity::kStore || a == Activity::kOther;
}

}  // namespace

Activity activity_of(CountClass count, bool waits) {
  switch (count) {
    case CountClass::kTensor:
    case CountClass::kWgmma:
    case CountClass::kWgmmaSync:
    case CountClass::kTcgen05:
    case CountClass::kLdMatrix:
    case CountClass::kMovMatrix:
      return Activity::kMatrix;
    case CountClass::kFloat:
    case CountClass::kHalf:
    case CountClass::kDouble:
    case CountClass::kExp:
    case CountClass::kSpecial:
    case CountClass::kConvert:
    case CountClass::kShuffle:
    case CountClass::kVote:
      return Activity::kArithmetic;
    case CountClass::kLoadShared:
    case CountClass::kLoadGlobal:
    case CountClass::kLoadLocal:
    case CountClass::kLoadConst:
    case CountClass::kLoadGeneric:
      return Activity::kLoad;
    case CountClass::kStMatrix:
    case CountClass::kStoreShared:
    case CountClass::kStoreGlobal:
    case CountClass::kStoreLocal:
    case CountClass::kStoreGeneric:
    case CountClass::kAtomic:
      return Activity::kStore;
    case CountClass::kCpAsync:
    case CountClass::kBulkCopy:
    case CountClass::kTensorMemory:
      return Activity::kCopy;
    case CountClass::kCpAsyncGroup:
      return waits ? Activity::kSync : Activity::kCopy;
    case CountClass::kTcgen05Sync:
    case CountClass::kMbarrier:
    case CountClass::kBarrier:
    case CountClass::kFence:
      return Activity::kSync;
    case CountClass::kInteger:
    case CountClass::kCompare:
    case CountClass::kMove:
    case CountClass::kLoadParam:
    case CountClass::kBranch:
    case CountClass::kControl:
    case CountClass::kCount:
      break;
  }
  return Activity::kOther;
}

Timeline::Timeline(const Kernel& kernel, uint32_t process, const std::string& name, uint32_t warps)
    : kernel_(kernel), process_(process), warps_(warps) {
  const std::string pid = "\"pid\":" + std::to_string(process_);
  events_.push_back(R"({"ph":"M","name":"process_name",)" + pid + R"(,"args":{"name":")" +
                    json_text(name) + R"("}})");
  for (uint32_t w = 0; w < warps; ++w) {
    events_.push_back(R"({"ph":"M","name":"thread_name",)" + pid + ",\"tid\":" + std::to_string(w) +
                      R"(,"args":{"name":"warp )" + std::to_string(w) + R"("}})");
  }
}

uint64_t Timeline::latest() const {
  uint64_t last = 0;
  for (const WarpLine& w : warps_) last = std::max(last, w.now);
  return last;
}

void Timeline::slice(uint32_t warp, const std::string& name, const char* category, uint64_t begin,
                     uint64_t end, uint32_t instruction) {
  if (end <= begin) return;
  std::string at = "line " + std::to_string(kernel_.instructions()[instruction].line);
  for (const SourceLocation& s : kernel_.source(instruction)) {
    at += ", " + to_string({s.file.substr(s.file.find_last_of('/') + 1), s.line, 0});
  }
  events_.push_back(R"({"ph":"X","name":")" + json_text(name) + R"(","cat":")" + category +
                    R"(","pid":)" + std::to_string(process_) + ",\"tid\":" + std::to_string(warp) +
                    ",\"ts\":" + std::to_string(begin) + ",\"dur\":" + std::to_string(end - begin) +
                    R"(,"args":{"from":")" + json_text(at) + R"("}})");
}

void Timeline::close(uint32_t warp, const Run& run, uint64_t end) {
  if (run.activity == Activity::kNone) return;
  slice(warp, name_of(run.activity), name_of(run.activity), run.begin, end, run.instruction);
}

void Timeline::flush(uint32_t warp) {
  WarpLine& w = warps_[warp];
  close(warp, w.open, w.now);
  w.open = w.next = {};
}

void Timeline::step(uint32_t warp, uint32_t instruction) {
  WarpLine& w = warps_[warp];
  const uint64_t at = w.now++;
  Activity a = activity_of(kernel_.instructions()[instruction].count_class,
                           spelling_of(kernel_, instruction).traits().waits);
  if (w.open.activity == Activity::kNone) {
    w.open = {a, at, instruction};
    return;
  }
  if (a == Activity::kOther) {
    // Addresses for the next phase are part of it or of this one; nobody can tell.
    a = w.next.activity != Activity::kNone ? w.next.activity : w.open.activity;
  }
  // A few of them before a phase belong to it.
  if (w.open.activity == Activity::kOther && lasts(a) && at - w.open.begin < kHold) {
    w.open.activity = a;
  }
  if (a == w.open.activity) {
    w.next = {};
    return;
  }
  if (a != w.next.activity) w.next = {a, at, instruction};
  const bool at_once = !lasts(a) || !lasts(w.open.activity);
  if (!at_once && w.now - w.next.begin < kHold) return;
  close(warp, w.open, w.next.begin);
  w.open = w.next;
  w.next = {};
}

void Timeline::wait(uint32_t warp, uint64_t end, uint32_t instruction, const std::string& what) {
  WarpLine& w = warps_[warp];
  if (end <= w.now) return;
  flush(warp);
  slice(warp, "wait: " + what, "wait", w.now, end, instruction);
  w.now = end;
}

void Timeline::engine(uint32_t warp, uint64_t begin, uint64_t end, const std::string& category,
                      const std::string& name) {
  end = std::max(end, begin + 1);
  const std::string id = std::to_string(process_) + "." + std::to_string(next_id_++);
  const std::string where =
      R"(,"pid":)" + std::to_string(process_) + ",\"tid\":" + std::to_string(warp) + ",\"ts\":";
  const std::string what = R"(,"name":")" + json_text(name) + R"(","cat":")" + category +
                           R"(","id":")" + id + "\"" + where;
  events_.push_back(R"({"ph":"b")" + what + std::to_string(begin) + "}");
  events_.push_back(R"({"ph":"e")" + what + std::to_string(end) + "}");
  const std::string arrow = R"(,"name":"done","cat":"arrow","id":")" + id + "\"" + where;
  events_.push_back(R"({"ph":"s")" + arrow + std::to_string(begin) + "}");
  events_.push_back(R"({"ph":"f","bp":"e")" + arrow + std::to_string(end) + "}");
}

}  // namespace ptxvm::observe
