// SPDX-License-Identifier: MIT
#include "web/observers.h"

#include <utility>

#include "memory/banks.h"

namespace ptxvm::web {
namespace {

class BlockCounter : public Probe {
 public:
  explicit BlockCounter(std::function<void()> ended) : ended_(std::move(ended)) {}
  void cta_end(const CtaEvent&) override { ended_(); }

 private:
  std::function<void()> ended_;
};

}  // namespace

void Progress::begin(const LaunchInfo& info) {
  done_ = 0;
  blocks_ = info.grid.count();
}

std::unique_ptr<Probe> Progress::make_probe() {
  return std::make_unique<BlockCounter>([this] { report_(++done_, blocks_); });
}

class Requests::Recorder : public Probe {
 public:
  explicit Recorder(Requests& owner) : owner_(owner) {}

  void access(const AccessEvent& e) override {
    using enum AccessKind;
    if (e.warp.cta != 0 || e.space != Space::kShared || e.mask == 0) return;
    auto [found, is_new] = places_.try_emplace(e.instruction, owner_.json_.size());
    if (is_new) {
      const auto& info = owner_.kernel_.instructions()[e.instruction];
      owner_.json_.push_back({{"entry", owner_.kernel_.name()},
                              {"line", info.line},
                              {"opcode", std::string(info.opcode)},
                              {"requests", Json::array()}});
    }
    Json& requests = owner_.json_[found->second]["requests"];
    if (requests.size() >= owner_.limit_) return;
    const bool is_load = e.kind == kLoad;
    Json addresses = Json::array();
    for (int lane = 0; lane < 32; ++lane) {
      addresses.push_back((e.mask >> lane & 1) != 0 ? Json(e.narrow[lane]) : Json());
    }
    const auto wavefronts = shared_wavefronts(e.mask, e.narrow, e.bytes, is_load);
    requests.push_back({{"warp", e.warp.warp},
                        {"step", e.warp.step},
                        {"kind", std::string(name(e.kind))},
                        {"load", is_load},
                        {"bytes", e.bytes},
                        {"wavefronts", wavefronts.actual},
                        {"ideal", wavefronts.ideal},
                        {"addresses", std::move(addresses)}});
  }

 private:
  Requests& owner_;
  std::map<uint32_t, size_t> places_;
};

void Requests::begin(const LaunchInfo& info) {
  kernel_ = info.kernel;
}

std::unique_ptr<Probe> Requests::make_probe() {
  return std::make_unique<Recorder>(*this);
}

}  // namespace ptxvm::web
