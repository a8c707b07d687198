// SPDX-License-Identifier: MIT
// Every synchronisation instruction of a Hopper kernel is taken out in turn, and the machine must
// notice. The rungs are treated the same way in harness/tests/device.
#include <cstdio>

#include "catch.h"
#include "ptxvm/races.h"
#include "sync_sites.h"
#include "warp_specialized.h"

using namespace ptxvm_test;

namespace {

constexpr const char* kKernel = "warp_specialized";

// How a mutant was noticed.
struct Notice {
  std::string finding;  // of a checker, or the fault
  bool wrong = false;   // the output differs

  bool any() const { return wrong || !finding.empty(); }
};

Notice run(const Module& module, const Problem& problem, const std::vector<uint16_t>& expected) {
  Notice notice;
  for (Order order : {Order::kForward, Order::kReversed}) {
    Races races;
    Options options;
    options.warp_order = order;
    options.max_warp_steps = 1 << 20;
    options.observers = {&races};
    const RungRun r = run_warp_specialized(module, problem, options);
    if (notice.finding.empty() && !r.result.findings.empty()) {
      notice.finding = format(r.result.findings.front());
    }
    if (notice.finding.empty() && r.result.fault) {
      notice.finding = std::string(name(r.result.fault->kind)) + ": " + r.result.fault->message;
    }
    notice.wrong |= !r.result.fault && r.output != expected;
  }
  return notice;
}

}  // namespace

TEST_CASE("no synchronisation of a warp-specialised kernel can be taken out unnoticed") {
  const std::string text = read_text(std::string(PTXVM_TEST_PTX_DIR) + "/" + kKernel + ".ptx");
  const Module clean = Module::parse(text, kKernel);
  const Problem ring(640, 1);
  const std::vector<uint16_t> expected = run_warp_specialized(clean, ring, {}).output;
  REQUIRE(!run(clean, ring, expected).any());
  const std::vector<SyncSite> sites =
      find_sites(clean, text, {kKernel}, std::string(kKernel) + ".cu",
                 {"bar.", "barrier.", "mbarrier.", "fence.", "wgmma.fence", "wgmma.commit",
                  "wgmma.wait", "cp.async.bulk.commit", "cp.async.bulk.wait"});
  CHECK(sites.size() >= 20);
  for (const SyncSite& site : sites) {
    const Notice notice = run(Module::parse(without(text, site), kKernel), ring, expected);
    const std::string checker = notice.finding.substr(0, notice.finding.find(':'));
    std::printf("%-34.34s %5d  %-13s %s\n", site.opcode.c_str(), site.source_line, checker.c_str(),
                notice.wrong ? "wrong" : "");
    INFO(site.key());
    CHECK(notice.any());
  }
}
