#include "ptxvm/trace.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "observe/timeline.h"

namespace ptxvm {
namespace {

using observe::Timeline;

std::string show(Dim3 d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

class TraceProbe : public Probe {
 public:
  TraceProbe(const Kernel& kernel, const std::vector<uint32_t>& blocks)
      : kernel_(kernel), blocks_(blocks) {}

  void cta_begin(const CtaEvent& e) override {
    line_.reset();
    if (std::find(blocks_.begin(), blocks_.end(), e.cta) == blocks_.end()) return;
    line_.emplace(kernel_, e.cta, "block " + show(e.position), e.warps);
    cta_ = e.cta;
    warps_ = e.warps;
    copies_.clear();
    bulk_.clear();
    wgmma_.clear();
    mbarriers_.clear();
    barriers_ = {};
  }

  void cta_end(const CtaEvent&) override {
    if (!line_) return;
    for (uint32_t w = 0; w < warps_; ++w) line_->flush(w);
    recorded_[cta_] = line_->events();
    line_.reset();
  }

  void instruction(const InstructionEvent& e) override {
    if (line_) line_->step(e.warp.warp, e.instruction);
  }

  void barrier(const BarrierEvent& e) override {
    if (!line_) return;
    if (e.action != BarrierAction::kComplete) {
      uint64_t& last = barriers_[e.barrier];
      last = std::max(last, line_->now(e.warp.warp));
      return;
    }
    for (uint16_t w : e.waiters) {
      line_->wait(w, barriers_[e.barrier], e.instruction, "barrier " + std::to_string(e.barrier));
    }
    barriers_[e.barrier] = 0;
  }

  void async(const AsyncEvent& e) override {
    if (!line_) return;
    const uint32_t w = e.warp.warp;
    const uint64_t bytes = uint64_t{e.bytes} * static_cast<uint64_t>(__builtin_popcount(e.mask));
    if (e.action == AsyncAction::kIssue) {
      Group& g = copies_[{w, e.group}];
      if (g.requests++ == 0) g.begin = line_->now(w) - 1;
      g.bytes += bytes;
    } else if (e.action == AsyncAction::kLand) {
      const auto found = copies_.find({w, e.group});
      if (found == copies_.end()) return;
      // Parts of a group land one after the other, in the same wait.
      Group& g = found->second;
      if (--g.requests != 0) return;
      line_->engine(w, g.begin, line_->now(w), "cp.async",
                    "cp.async, group " + std::to_string(e.group) + " of warp " + std::to_string(w) +
                        ": " + std::to_string(g.bytes) + " bytes");
      copies_.erase(found);
    }
  }

  void bulk(const BulkEvent& e) override {
    if (!line_ || e.kind == BulkKind::kPrefetch) return;
    const uint32_t w = e.warp.warp;
    if (e.action == BulkAction::kIssue) bulk_[e.copy] = line_->now(w) - 1;
    if (e.action != BulkAction::kLand) return;
    const uint64_t end = line_->latest();
    line_->engine(w, bulk_[e.copy], end, "bulk copy",
                  std::string(e.kind == BulkKind::kLoad ? "bulk load: " : "bulk store: ") +
                      std::to_string(e.bytes) + " bytes");
    if (e.kind == BulkKind::kLoad) {
      uint64_t& last = mbarriers_[e.mbarrier].arriving;
      last = std::max(last, end);
    }
  }

  void mbarrier(const MbarrierEvent& e) override {
    if (!line_) return;
    Mbarrier& m = mbarriers_[e.address];
    if (e.action == MbarrierAction::kArrive) {
      m.arriving = std::max(m.arriving, line_->now(e.warp.warp));
    } else if (e.action == MbarrierAction::kPhase) {
      m.done = m.arriving;
      m.arriving = 0;
    } else if (e.action == MbarrierAction::kWait) {
      line_->wait(e.warp.warp, m.done, e.instruction, "mbarrier +" + std::to_string(e.address));
    }
  }

  void wgmma(const WgmmaEvent& e) override {
    if (!line_) return;
    const uint32_t w = e.warp.warp, first = e.warpgroup * 4;
    if (e.action == WgmmaAction::kIssue && w == first) {
      Group& g = wgmma_[{e.warpgroup, e.group}];
      if (g.requests++ == 0) g.begin = line_->now(w) - 1;
    }
    if (e.action != WgmmaAction::kComplete) return;
    uint64_t last = 0;
    const uint32_t end = std::min(first + 4, warps_);
    for (uint32_t i = first; i < end; ++i) last = std::max(last, line_->now(i));
    for (uint32_t i = first; i < end; ++i) line_->wait(i, last, e.instruction, "wgmma");
    for (auto it = wgmma_.begin(); it != wgmma_.end();) {
      if (it->first.first == e.warpgroup && it->first.second < e.group) {
        line_->engine(first, it->second.begin, last, "wgmma",
                      "wgmma, group " + std::to_string(it->first.second) + ": " +
                          std::to_string(it->second.requests) + " instructions");
        it = wgmma_.erase(it);
      } else {
        ++it;
      }
    }
  }

  const std::map<uint32_t, std::vector<std::string>>& recorded() const { return recorded_; }

 private:
  struct Group {
    uint64_t begin = 0, bytes = 0, requests = 0;
  };
  struct Mbarrier {
    uint64_t arriving = 0, done = 0;
  };

  const Kernel kernel_;
  const std::vector<uint32_t>& blocks_;
  std::optional<Timeline> line_;
  uint32_t cta_ = 0, warps_ = 0;
  std::map<std::pair<uint32_t, uint64_t>, Group> copies_, wgmma_;  // by warp or warpgroup, group
  std::map<uint64_t, uint64_t> bulk_;                              // issue, by number of the copy
  std::map<uint32_t, Mbarrier> mbarriers_;
  std::array<uint64_t, 16> barriers_{};  // last arrival
  std::map<uint32_t, std::vector<std::string>> recorded_;
};

}  // namespace

struct Trace::State {
  std::vector<uint32_t> blocks;
  LaunchInfo info;
  std::string json;  // made at the end of the launch: the module may go after it
};

Trace::Trace(std::vector<uint32_t> blocks) : state_(std::make_unique<State>()) {
  state_->blocks = std::move(blocks);
}
Trace::~Trace() = default;

void Trace::begin(const LaunchInfo& info) {
  state_->info = info;
  state_->json.clear();
}

std::unique_ptr<Probe> Trace::make_probe() {
  return std::make_unique<TraceProbe>(state_->info.kernel, state_->blocks);
}

void Trace::end(std::span<const std::unique_ptr<Probe>> probes) {
  std::map<uint32_t, std::vector<std::string>> recorded;
  for (const auto& p : probes) {
    const auto& own = static_cast<const TraceProbe&>(*p).recorded();
    recorded.insert(own.begin(), own.end());
  }
  const LaunchInfo& info = state_->info;
  std::string& text = state_->json;
  text = R"({"displayTimeUnit":"ms","otherData":{"kernel":")" +
         observe::json_text(info.kernel.name()) + R"(","grid":")" + show(info.grid) +
         R"(","block":")" + show(info.block) +
         R"(","axis":"steps, not time: one PTX instruction of a warp is one step, which the )"
         R"(viewer shows as one microsecond"},"traceEvents":[)";
  bool first = true;
  for (const auto& [cta, events] : recorded) {
    for (const std::string& e : events) {
      text += first ? "\n" : ",\n";
      text += e;
      first = false;
    }
  }
  text += "\n]}\n";
}

const std::string& Trace::json() const {
  return state_->json;
}

void Trace::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary);
  out << json();
  out.flush();
  if (!out) throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

}  // namespace ptxvm
