// SPDX-License-Identifier: MIT
#include "observe/fresh_buffers.h"

#include "observe/instruction.h"

namespace ptxvm::observe {
namespace {

FindingKey read_at(uint32_t instruction) {
  FindingKey key;
  key.problem = Problem::kGlobalUnwritten;
  key.hazard = Hazard::kUnwritten;
  key.instruction = instruction;
  key.kind = AgentKind::kWarp;
  return key;
}

Example read_by(const WarpId& w, uint32_t instruction, const CtaEvent& cta, const Buffer& buffer,
                uint64_t address, uint32_t bytes) {
  Example e;
  e.cta = cta.cta;
  e.position = cta.position;
  e.address = address - buffer.address;
  e.bytes = bytes;
  e.buffer = buffer.name;
  e.here = {AgentKind::kWarp, w.warp, Place::kWarp, instruction, static_cast<int>(cta.cta)};
  return e;
}

}  // namespace

FreshBuffers::FreshBuffers(const LaunchInfo& info) : memory_(*info.memory) {
  if (info.ordered) return;
  for (const auto& buffer : memory_.buffers()) {
    if (buffer->fresh) uses_[buffer.get()];
  }
}

void FreshBuffers::use(const Buffer& buffer, bool writes, const FindingKey& key,
                       const Example& example) {
  const auto found = uses_.find(&buffer);
  if (found == uses_.end() || found->second.written) return;
  if (writes) {
    found->second = {true, {}};
  } else {
    found->second.reads.next_request();
    found->second.reads.add(key, example);
  }
}

void FreshBuffers::access(const AccessEvent& e, bool sets, const CtaEvent& cta) {
  if (uses_.empty() || e.space != Space::kGlobal) return;
  const bool writes = is_write(e.kind) && (e.kind != AccessKind::kAtomic || sets);
  const Buffer* last = nullptr;
  for (uint32_t rest = e.mask; rest != 0; rest &= rest - 1) {
    const uint64_t address = e.wide[__builtin_ctz(rest)];
    if (last && address - last->address < last->bytes) continue;
    last = memory_.find(address);
    if (!last) continue;
    use(*last, writes, read_at(e.instruction),
        read_by(e.warp, e.instruction, cta, *last, address, e.bytes));
  }
}

void FreshBuffers::bulk(const BulkEvent& e, const CtaEvent& cta) {
  if (uses_.empty() || e.action != BulkAction::kIssue || e.kind == BulkKind::kPrefetch) return;
  if (e.global.empty()) return;
  const GlobalRange& range = e.global.front();
  const Buffer* buffer = memory_.find(range.address);
  if (!buffer) return;
  use(*buffer, e.kind == BulkKind::kStore && !e.combines, read_at(e.instruction),
      read_by(e.warp, e.instruction, cta, *buffer, range.address, range.bytes));
}

void FreshBuffers::merge(const FreshBuffers& o) {
  for (const auto& [buffer, theirs] : o.uses_) {
    Use& own = uses_[buffer];
    own.written |= theirs.written;
    own.reads.merge(theirs.reads);
  }
}

void FreshBuffers::report(FindingLog& log) const {
  for (const auto& [buffer, use] : uses_) {
    if (!use.written) log.merge(use.reads);
  }
}

}  // namespace ptxvm::observe
