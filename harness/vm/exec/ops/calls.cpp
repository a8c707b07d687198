// SPDX-License-Identifier: MIT
// call and ret in functions, and the stack (PTX ISA 9.7.12.5, 9.7.12.6, 9.7.18).
#include "exec/calls.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "exec/access.h"
#include "exec/fault.h"
#include "exec/interpreter.h"
#include "exec/ops/lanes.h"
#include "exec/poison.h"

namespace ptxvm {
namespace {

const Program& program_of(const Warp& w) {
  return *w.cta->launch->program;
}

std::byte* local_memory(Warp& w, int lane) {
  return w.local + size_t{program_of(w).local_bytes} * static_cast<size_t>(lane);
}

uint64_t read_register(Warp& w, Ref ref, int lane) {
  if (ref & kRefPredicate) return *w.at<uint32_t>(ref) >> lane & 1;
  return ref & kRefWide ? w.at<uint64_t>(ref)[lane] : w.at<uint32_t>(ref)[lane];
}

void write_register(Warp& w, Ref ref, int lane, uint64_t value) {
  if (ref & kRefPredicate) {
    uint32_t& mask = *w.at<uint32_t>(ref);
    mask = (mask & ~(1u << lane)) | static_cast<uint32_t>(value) << lane;
  } else if (ref & kRefWide) {
    w.at<uint64_t>(ref)[lane] = value;
  } else {
    w.at<uint32_t>(ref)[lane] = static_cast<uint32_t>(value);
  }
}

CallStack& stack_of(Warp& w) {
  if (!w.calls) {
    w.calls = std::make_unique<CallStack>();
    w.calls->top.fill(program_of(w).frame_bytes);
  }
  return *w.calls;
}

// A call through a pointer is checked when it happens.
void check_shape(Warp& w, const Op& op, int lane, const CallSite& site, const Function& f) {
  if (site.fits(f)) return;
  raise(w, op, FaultKind::kInvalid, lane,
        "the call passes other parameters than '" + f.name + "' has");
}

uint32_t function_at(Warp& w, const Op& op, int lane, const CallSite& site) {
  if (site.function != CallSite::kIndirect) return site.function;
  const uint64_t address = w.at<uint64_t>(site.target)[lane];
  const auto& functions = program_of(w).functions;
  for (uint32_t i = 0; i < functions.size(); ++i) {
    if (functions[i].address != address) continue;
    check_shape(w, op, lane, site, functions[i]);
    return i;
  }
  raise(w, op, FaultKind::kInvalid, lane,
        "a call through " + hex(address, 16) + ", which is no function");
}

// Makes the callee's frame, with its arguments in place.
void enter(Warp& w, const Op& op, int lane, const Function& f, CallFrame frame) {
  const Program& program = program_of(w);
  CallStack& stack = stack_of(w);
  uint32_t& top = stack.top[static_cast<size_t>(lane)];
  frame.base = top;
  if (program.local_bytes - frame.base < f.frame_bytes) {
    raise(
        w, op, FaultKind::kOutOfBounds, lane,
        "the call stack is full: " + std::to_string(stack.lanes[static_cast<size_t>(lane)].size()) +
            " calls take " + std::to_string(frame.base - program.frame_bytes) + " bytes");
  }
  std::byte* local = local_memory(w, lane);
  move_local_poison(w, lane, kNoSource, frame.base, f.frame_bytes);
  const CallSite& site = program.calls[frame.site];
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    const uint64_t from = w.at<uint64_t>(site.arguments[i].address)[lane];
    const uint64_t to = frame.base + f.parameters[i].offset;
    std::memcpy(local + to, local + from, f.parameters[i].bytes);
    move_local_poison(w, lane, from, to, f.parameters[i].bytes);
  }
  for (const Ref ref : f.registers) frame.saved.push_back(read_register(w, ref, lane));
  for (const FrameSlot& slot : f.slots) {
    w.at<uint64_t>(slot.slot)[lane] = frame.base + slot.offset;
  }
  top = frame.base + f.frame_bytes;
  stack.lanes[static_cast<size_t>(lane)].push_back(std::move(frame));
}

// Loads that the function makes of its parameters by address find them written.
void report_passed(Warp& w, const Op& op, const Function& f, uint32_t lanes) {
  for (const FramePart& part : f.parameters) {
    Request request{};
    for_lanes(lanes, [&](int lane) {
      const CallFrame& frame = stack_of(w).lanes[static_cast<size_t>(lane)].back();
      request.narrow[lane] = frame.base + part.offset;
    });
    report_access(w, op, Space::kLocal, AccessKind::kPassed, lanes, part.bytes, request);
  }
}

Step call(Warp& w, const Op& op) {
  const auto number = static_cast<uint32_t>(op.r[0]);
  const CallSite& site = program_of(w).calls[number];
  if (site.system != System::kNone) {
    call_system(w, op);
    return Step::kNext;
  }
  const auto next = static_cast<uint32_t>(&op - w.code) + 1;
  const uint32_t rest = w.active & ~w.mask;
  if (rest != 0) w.fragments.push_back({next, rest, false});
  for (uint32_t lanes = w.mask; lanes != 0;) {
    const uint32_t callee = function_at(w, op, __builtin_ctz(lanes), site);
    const Function& f = program_of(w).functions[callee];
    uint32_t same = 0;
    for_lanes(lanes, [&](int lane) {
      if (function_at(w, op, lane, site) != callee) return;
      enter(w, op, lane, f, {next, number, callee, 0, {}});
      same |= 1u << lane;
    });
    lanes &= ~same;
    if (w.cta->launch->observed) {
      report_passed(w, op, f, same);
      poison_unset(w, callee, same);
    }
    w.fragments.push_back({f.first, same, false});
  }
  w.active = 0;
  run_lowest_fragment(w);
  return Step::kJump;
}

// Takes a lane back: results go to the caller's variables.
uint32_t leave(Warp& w, int lane) {
  const Program& program = program_of(w);
  CallStack& stack = stack_of(w);
  auto& frames = stack.lanes[static_cast<size_t>(lane)];
  const CallFrame frame = std::move(frames.back());
  frames.pop_back();
  const Function& f = program.functions[frame.function];
  for (size_t i = 0; i < f.registers.size(); ++i) {
    write_register(w, f.registers[i], lane, frame.saved[i]);
    set_poison(w, f.registers[i], 1u << lane, {});  // of the activation that has ended
  }
  std::byte* local = local_memory(w, lane);
  const CallSite& site = program.calls[frame.site];
  for (size_t i = 0; i < f.returns.size(); ++i) {
    const uint64_t to = w.at<uint64_t>(site.returns[i].address)[lane];
    const uint64_t from = frame.base + f.returns[i].offset;
    std::memcpy(local + to, local + from, f.returns[i].bytes);
    move_local_poison(w, lane, from, to, f.returns[i].bytes);
  }
  stack.top[static_cast<size_t>(lane)] = frame.base;
  return frame.return_pc;
}

uint64_t value_of(Warp& w, Ref ref, int lane) {
  return ref & kRefWide ? w.at<uint64_t>(ref)[lane] : w.at<uint32_t>(ref)[lane];
}

// Memory of alloca is a part of the frame: it is given back when the function returns.
Step allocate(Warp& w, const Op& op) {
  constexpr uint64_t kLeast = 16;
  CallStack& stack = stack_of(w);
  const uint64_t align = op.list[2] == kNoRef ? kLeast : std::max<uint64_t>(op.list[2], kLeast);
  if ((align & (align - 1)) != 0) {
    raise(w, op, FaultKind::kInvalid, -1, "the alignment must be a power of two");
  }
  const uint64_t room = program_of(w).local_bytes;
  for_lanes(w.mask, [&](int lane) {
    uint32_t& top = stack.top[static_cast<size_t>(lane)];
    const uint64_t bytes = value_of(w, op.list[1], lane);
    const uint64_t at = (top + align - 1) / align * align;
    if (at > room || bytes > room - at) {
      raise(w, op, FaultKind::kOutOfBounds, lane,
            "the stack is full: alloca of " + std::to_string(bytes) + " bytes, and " +
                std::to_string(room - top) + " are left");
    }
    top = static_cast<uint32_t>(std::min(room, (at + bytes + kLeast - 1) / kLeast * kLeast));
    write_register(w, op.list[0], lane, at);
  });
  return Step::kNext;
}

Step save(Warp& w, const Op& op) {
  const CallStack& stack = stack_of(w);
  for_lanes(w.mask, [&](int lane) {
    write_register(w, op.list[0], lane, stack.top[static_cast<size_t>(lane)]);
  });
  return Step::kNext;
}

Step restore(Warp& w, const Op& op) {
  CallStack& stack = stack_of(w);
  for_lanes(w.mask, [&](int lane) {
    const auto& frames = stack.lanes[static_cast<size_t>(lane)];
    const uint64_t first =
        frames.empty()
            ? program_of(w).frame_bytes
            : frames.back().base + program_of(w).functions[frames.back().function].frame_bytes;
    uint32_t& top = stack.top[static_cast<size_t>(lane)];
    const uint64_t value = value_of(w, op.list[0], lane);
    if (value < first || value > top) {
      raise(w, op, FaultKind::kInvalid, lane,
            "this is no place of the stack that stacksave gave here");
    }
    top = static_cast<uint32_t>(value);
  });
  return Step::kNext;
}

Step return_lanes(Warp& w, const Op&) {
  const uint32_t leaving = w.mask;
  uint32_t pc[32];
  for_lanes(leaving, [&](int lane) { pc[lane] = leave(w, lane); });
  for (uint32_t lanes = leaving; lanes != 0;) {
    const uint32_t first = pc[__builtin_ctz(lanes)];
    uint32_t same = 0;
    for_lanes(lanes, [&](int lane) { same |= static_cast<uint32_t>(pc[lane] == first) << lane; });
    w.fragments.push_back({first, same, false});
    lanes &= ~same;
  }
  w.active &= ~leaving;
  if (w.active != 0) return Step::kNext;
  run_lowest_fragment(w);
  return Step::kJump;
}

}  // namespace

Bound bind_call() {
  return ops::code(call);
}
Bound bind_return() {
  return ops::code(return_lanes);
}

// What calls pass is a matter of the compiler's: nothing is reported.
Bound bind_frame_access(const isa::Spelling& spelling) {
  const Bound access = bind(spelling);
  return {access.plain, access.plain, access.aux};
}

namespace ops {

Bound stack_alloca(Modifiers& m) {
  m.type();
  return code(allocate);
}
Bound stack_save(Modifiers& m) {
  m.type();
  return code(save);
}
Bound stack_restore(Modifiers& m) {
  m.type();
  return code(restore);
}

// The lowering gives every call an operation of its own.
Bound call(Modifiers& m) {
  m.flag("uni");
  return bind_call();
}

}  // namespace ops
}  // namespace ptxvm
