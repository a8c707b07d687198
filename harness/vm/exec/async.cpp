// SPDX-License-Identifier: MIT
#include "exec/async.h"

#include <algorithm>

#include "exec/fault.h"

namespace ptxvm {
namespace {

constexpr uint32_t kRegisterFile = 65536;  // 32-bit registers of a multiprocessor
constexpr uint32_t kMostRegisters = 256;   // of a thread, as they are allocated

std::string list_warps(uint32_t first, uint32_t mask) {
  std::string text;
  for (uint32_t i = 0; i < 4; ++i) {
    if (mask >> i & 1) text += (text.empty() ? "" : ", ") + std::to_string(first + i);
  }
  return text;
}

}  // namespace

uint32_t most_registers(const Program& program) {
  uint32_t most = 0;
  for (size_t i = 0; i < program.plain.size(); ++i) {
    if (program.actions[i] != Action::kInstruction) continue;
    const Op& op = program.plain[i];
    const isa::Spelling* spelling = program.spellings[op.instruction];
    if (spelling && spelling->traits().polls == isa::Polls::kRegisters) {
      most = std::max(most, op.r[0]);
    }
  }
  return most;
}

void begin_async(Cta& cta) {
  AsyncState& a = cta.async;
  a.mbarriers.clear();
  a.copies = 0;
  a.warpgroups.assign(cta.warps.size() / 4, {});
  a.tensor = {};
  a.tensor_work.clear();
  // What ptxas gives a kernel that is compiled for blocks of this size, so many on an SM: no more
  // than setmaxnreg asks for anywhere. The block has no more than these: what one warp acquires
  // another must have released.
  const LaunchState& launch = *cta.launch;
  const Program& program = *launch.program;
  const auto launched = static_cast<uint32_t>(cta.warps.size()) * 32;
  const uint64_t threads = program.max_threads ? program.max_threads->count() : launched;
  const auto share = static_cast<uint32_t>(kRegisterFile / (threads * program.min_blocks));
  uint32_t registers = std::min(share / 8 * 8, kMostRegisters);
  if (launch.most_registers != 0) registers = std::min(registers, launch.most_registers);
  if (launch.options->registers != 0) registers = (launch.options->registers + 7) / 8 * 8;
  for (Warp& w : cta.warps) w.registers = registers;
  a.free_registers = 0;
}

namespace {

std::string describe_cluster(const Cluster& cluster) {
  size_t live = 0, arrived = 0;
  for (const Cta& block : cluster.blocks) {
    for (const Warp& w : block.warps) {
      if (w.status == WarpStatus::kExited) continue;
      ++live;
      arrived += w.cluster_arrived && w.cluster_phase == cluster.phase;
    }
  }
  return ", for the cluster: " + std::to_string(arrived) + " of " + std::to_string(live) +
         " warps have arrived";
}

std::string describe_mbarrier(const Cta& cta, const Warp& w, const Op& op) {
  const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(w.mask ? w.mask : w.active));
  const uint64_t address = (op.r[1] & kRefWide ? w.at<uint64_t>(op.r[1])[lane] & 0xffffffffu
                                               : w.at<uint32_t>(op.r[1])[lane]) +
                           op.r[2];
  auto it = cta.async.mbarriers.find(static_cast<uint32_t>(address));
  if (it == cta.async.mbarriers.end()) return {};
  const Mbarrier& b = it->second;
  std::string text = ", for the mbarrier at shared address " + std::to_string(it->first) +
                     ": phase " + std::to_string(b.phase) + " misses " + std::to_string(b.pending) +
                     " of " + std::to_string(b.expected) + " arrivals";
  if (b.bytes != 0) text += " and " + std::to_string(b.bytes) + " bytes";
  return text;
}

}  // namespace

std::string describe_poll(const Cta& cta, const Warp& w) {
  const Op& op = w.code[w.pc];
  const isa::Spelling* spelling = cta.launch->program->spellings[op.instruction];
  switch (spelling ? spelling->traits().polls : isa::Polls::kNo) {
    case isa::Polls::kRegisters:
      return ", for " + std::to_string((op.r[0] - w.registers) * 32) +
             " registers: " + std::to_string(cta.async.free_registers) + " are free";
    case isa::Polls::kWarpgroup:
      return ", for its warpgroup: only warps " +
             list_warps(w.index / 4u * 4u, cta.async.warpgroups[w.index / 4u].arrived) +
             " have arrived";
    case isa::Polls::kCluster:
      return describe_cluster(*cta.cluster);
    case isa::Polls::kMbarrier:
      return describe_mbarrier(cta, w, op);
    case isa::Polls::kTensorMemory:
      return ", for " + std::to_string(*w.at<uint32_t>(op.r[2])) +
             " columns of tensor memory: what is allocated leaves no room for them";
    case isa::Polls::kNo:
      break;
  }
  return {};
}

void check_tensor_memory_freed(const Warp& w) {
  const auto& allocations = w.cta->async.tensor.allocations;
  if (allocations.empty()) return;
  for (const Warp& other : w.cta->warps) {
    if (other.status != WarpStatus::kExited) return;
  }
  const TensorMemory::Allocation& a = allocations.front();
  raise(w, a.instruction, FaultKind::kInvalid, -1,
        "the block ends, and nothing has freed the " + std::to_string(a.columns) +
            " columns of tensor memory from column " + std::to_string(a.column) +
            " on, which this allocates; tcgen05.dealloc must do it");
}

uint32_t accumulator_use(const Op& op, uint32_t sums) {
  return (op.list[0] / kRegisterLine) << 8 | sums << 1;
}

void mark_registers(Warp& w, const Op& op, uint32_t sums, bool a_in_registers) {
  w.checks |= kCheckBusy;
  const uint32_t use = accumulator_use(op, sums);
  for (uint32_t i = 0; i < sums; ++i) w.busy[op.list[i] / kRegisterLine] = use;
  if (!a_in_registers) return;
  for (uint32_t i = 0; i < 4; ++i) {
    const Ref a = op.list[sums + i];
    if (!(a & kRefPool)) w.busy[a / kRegisterLine] = kUseA;
  }
}

void mark_busy_registers(Warp& w) {
  std::fill(w.busy.begin(), w.busy.end(), 0u);
  w.checks &= static_cast<uint8_t>(~kCheckBusy);
  const uint32_t self = w.index % 4u;
  for (const PendingMma& mma : w.cta->async.warpgroups[w.index / 4u].pending) {
    if (!(mma.issued >> self & 1)) continue;
    const auto& spec = w.cta->launch->program->spellings[mma.op->instruction]->operands;
    mark_registers(w, *mma.op, static_cast<uint32_t>(spec[0].count),
                   spec[1].kind == isa::OperandKind::kVector);
  }
}

namespace {

// A tcgen05.ld has no trouble with this on cards, which wait for the register.
void use_loaded(Warp& w, const Op& op) {
  finish_loads(w);
  TensorEvent e;
  e.warp = id_of(w);
  e.instruction = op.instruction;
  e.action = TensorAction::kEarlyUse;
  notify(w, [&](Probe& p) { p.tensor(e); });
}

}  // namespace

void finish_loads(Warp& w) {
  std::fill(w.busy.begin(), w.busy.end(), 0u);
  w.checks &= static_cast<uint8_t>(~kCheckBusy);
}

void check_busy_registers(Warp& w, const Op& op) {
  if (op.guard == kAddedOp) return;
  const Program& program = *w.cta->launch->program;
  const uint32_t end = program.touch_begin[op.instruction + 1];
  for (uint32_t i = program.touch_begin[op.instruction]; i < end; ++i) {
    const uint32_t use = w.busy[program.touches[i] / 2];
    const bool written = program.touches[i] & 1;
    if (use == 0 || (use == kUseA && !written)) continue;
    if (use == kUseLoaded) return use_loaded(w, op);
    raise(w, op, FaultKind::kInvalid, -1,
          std::string(written ? "writes" : "reads") + " a register that is " +
              (use != kUseA ? "an accumulator" : "operand A") +
              " of a wgmma in flight; wgmma.wait_group must come first");
  }
}

}  // namespace ptxvm
