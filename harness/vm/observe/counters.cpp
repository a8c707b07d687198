// SPDX-License-Identifier: MIT
// Counts by instruction; totals and source tables are sums of them.
#include <algorithm>
#include <array>
#include <map>

#include "memory/banks.h"
#include "memory/sectors.h"
#include "ptxvm/report.h"

namespace ptxvm {
namespace {

struct Tally {
  AccessKind kind = AccessKind::kLoad;  ///< Of its shared requests.
  SharedTraffic shared;
  AccessKind global_kind = AccessKind::kLoad;
  GlobalTraffic global;
  uint64_t local_bytes = 0;
  BulkKind bulk_kind = BulkKind::kLoad;
  BulkTraffic bulk;
  uint64_t wgmma_bytes = 0;
};

// A pattern of an instruction. Conflicts do not change when all addresses move by the same number
// of words, sectors when they move by whole sectors, and most requests repeat one of a few
// patterns.
struct Memo {
  bool valid = false;
  uint32_t mask = 0, bytes = 0, phase = 0;
  uint32_t delta[32] = {};
  Wavefronts shared;
  uint32_t sectors = 0;

  bool matches(uint32_t m, uint32_t b, uint32_t p, const uint32_t* d) {
    uint32_t differs = (mask ^ m) | (bytes ^ b) | (phase ^ p) | (valid ? 0u : 1u);
    for (int i = 0; i < 32; ++i) differs |= delta[i] ^ d[i];
    return differs == 0;
  }
  void set(uint32_t m, uint32_t b, uint32_t p, const uint32_t* d) {
    valid = true;
    mask = m;
    bytes = b;
    phase = p;
    std::copy_n(d, 32, delta);
  }
};

class CounterProbe : public Probe {
 public:
  explicit CounterProbe(const Kernel& kernel)
      : blocks_(kernel.block_count(), 0),
        tallies_(kernel.instructions().size()),
        memos_(kernel.instructions().size()) {}

  void block(const BlockEvent& e) override { ++blocks_[e.block]; }

  void access(const AccessEvent& e) override {
    Tally& t = tallies_[e.instruction];
    const auto lanes = static_cast<uint32_t>(__builtin_popcount(e.mask));
    if (e.space == Space::kShared) {
      const Wavefronts w = wavefronts(e);
      t.kind = e.kind;
      ++t.shared.requests;
      t.shared.wavefronts += w.actual;
      t.shared.ideal += w.ideal;
      t.shared.bytes += uint64_t{lanes} * e.bytes;
    } else if (e.space == Space::kGlobal) {
      t.global_kind = e.kind;
      ++t.global.requests;
      t.global.sectors += sectors(e);
      t.global.bytes += uint64_t{lanes} * e.bytes;
    } else if (e.space == Space::kLocal && e.kind != AccessKind::kPassed) {
      t.local_bytes += uint64_t{lanes} * e.bytes;
    }
  }

  void bulk(const BulkEvent& e) override {
    if (e.action != BulkAction::kIssue) return;
    Tally& t = tallies_[e.instruction];
    t.bulk_kind = e.kind;
    t.bulk.add({1, e.bytes, e.global_bytes, e.sectors});
  }

  void wgmma(const WgmmaEvent& e) override {
    if (e.action != WgmmaAction::kExecute) return;
    for (const SharedRange& r : e.shared) tallies_[e.instruction].wgmma_bytes += r.bytes;
  }

  const std::vector<uint64_t>& blocks() const { return blocks_; }
  const std::vector<Tally>& tallies() const { return tallies_; }

 private:
  // A swizzle gives as many patterns as it has rows.
  static constexpr size_t kPatterns = 8;

  // One instruction may make shared and global requests (cp.async): a memo for each.
  struct Memos {
    std::unique_ptr<std::array<Memo, kPatterns>> shared, global;
  };

  static Memo& slot(std::unique_ptr<std::array<Memo, kPatterns>>& memos, const uint32_t* delta) {
    if (!memos) memos = std::make_unique<std::array<Memo, kPatterns>>();
    uint32_t hash = 0;
    for (int i = 1; i < 32; i += 2) hash = hash * 31 + delta[i];
    return (*memos)[(hash * 0x9e3779b1u) >> 29];
  }

  template <class T>
  static void deltas(uint32_t mask, const T* addresses, uint32_t* out) {
    const T first = addresses[__builtin_ctz(mask)];
    for (int i = 0; i < 32; ++i) {
      out[i] = mask >> i & 1 ? static_cast<uint32_t>(addresses[i] - first) : 0;
    }
  }

  Wavefronts wavefronts(const AccessEvent& e) {
    uint32_t delta[32];
    deltas(e.mask, e.narrow, delta);
    Memo& memo = slot(memos_[e.instruction].shared, delta);
    const uint32_t phase = e.narrow[__builtin_ctz(e.mask)] & 3;
    if (!memo.matches(e.mask, e.bytes, phase, delta)) {
      memo.set(e.mask, e.bytes, phase, delta);
      memo.shared = shared_wavefronts(e.mask, e.narrow, e.bytes, e.kind == AccessKind::kLoad);
    }
    return memo.shared;
  }

  uint32_t sectors(const AccessEvent& e) {
    uint32_t delta[32];
    deltas(e.mask, e.wide, delta);
    Memo& memo = slot(memos_[e.instruction].global, delta);
    uint64_t spread = 0;
    const uint64_t first = e.wide[__builtin_ctz(e.mask)];
    for (uint32_t m = e.mask; m != 0; m &= m - 1) {
      spread |= (e.wide[__builtin_ctz(m)] - first + (uint64_t{1} << 31)) >> 32;
    }
    if (spread != 0) return global_sectors(e.mask, e.wide, e.bytes);
    const auto phase = static_cast<uint32_t>(first & 31);
    if (!memo.matches(e.mask, e.bytes, phase, delta)) {
      memo.set(e.mask, e.bytes, phase, delta);
      memo.sectors = global_sectors(e.mask, e.wide, e.bytes);
    }
    return memo.sectors;
  }

  std::vector<uint64_t> blocks_;
  std::vector<Tally> tallies_;
  std::vector<Memos> memos_;
};

SharedTraffic& shared_slot(Counts& c, AccessKind kind) {
  switch (kind) {
    case AccessKind::kStore:
      return c.shared_store;
    case AccessKind::kAtomic:
      return c.shared_atomic;
    case AccessKind::kLdMatrix:
      return c.ldmatrix;
    case AccessKind::kStMatrix:
      return c.stmatrix;
    case AccessKind::kCopyWrite:
      return c.shared_copy;
    default:
      return c.shared_load;
  }
}

GlobalTraffic& global_slot(Counts& c, AccessKind kind) {
  switch (kind) {
    case AccessKind::kStore:
      return c.global_store;
    case AccessKind::kAtomic:
      return c.global_atomic;
    case AccessKind::kCopyRead:
      return c.global_copy;
    default:
      return c.global_load;
  }
}

BulkTraffic& bulk_slot(Counts& c, BulkKind kind) {
  switch (kind) {
    case BulkKind::kStore:
      return c.bulk_store;
    case BulkKind::kPrefetch:
      return c.bulk_prefetch;
    default:
      return c.bulk_load;
  }
}

}  // namespace

struct Counters::State {
  Kernel kernel{nullptr};
  CountReport report;
};

Counters::Counters() : state_(std::make_unique<State>()) {}
Counters::~Counters() = default;

void Counters::begin(const LaunchInfo& info) {
  state_->kernel = info.kernel;
  state_->report = {};
}

std::unique_ptr<Probe> Counters::make_probe() {
  return std::make_unique<CounterProbe>(state_->kernel);
}

void Counters::end(std::span<const std::unique_ptr<Probe>> probes) {
  const Kernel& kernel = state_->kernel;
  CountReport& report = state_->report;
  const auto instructions = kernel.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const InstructionInfo& info = instructions[i];
    LineCounts line;
    line.ptx_line = info.line;
    line.opcode = std::string(info.opcode);
    const auto chain = kernel.source(i);
    line.source.assign(chain.begin(), chain.end());
    for (const auto& p : probes) {
      const auto& probe = static_cast<const CounterProbe&>(*p);
      if (!info.unreachable) {
        line.counts.instructions[static_cast<size_t>(info.count_class)] +=
            probe.blocks()[info.block];
      }
      const Tally& t = probe.tallies()[i];
      shared_slot(line.counts, t.kind).add(t.shared);
      global_slot(line.counts, t.global_kind).add(t.global);
      line.counts.local_bytes += t.local_bytes;
      bulk_slot(line.counts, t.bulk_kind).add(t.bulk);
      line.counts.wgmma_bytes += t.wgmma_bytes;
    }
    report.total.add(line.counts);
    report.by_instruction.push_back(std::move(line));
  }
}

const CountReport& Counters::report() const {
  return state_->report;
}

}  // namespace ptxvm
