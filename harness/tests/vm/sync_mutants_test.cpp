// Every synchronisation instruction of every rung, and of a Hopper kernel, is taken out in turn.
// The machine must notice, or the site stands on the list of those that the kernel does not need,
// with the reason.
#include <cstdio>
#include <functional>

#include "catch.h"
#include "ladder.h"
#include "ptxvm/races.h"
#include "sync_sites.h"
#include "warp_specialized.h"

using namespace ptxvm_test;

namespace {

struct Subject {
  std::string name, entry;
  std::vector<std::string> opcodes;
  std::function<RungRun(const Module&, const Options&)> run;
};

struct Tally {
  int sites = 0, noticed = 0;
};

// How a mutant was noticed.
struct Notice {
  std::string finding;  // of a checker, or the fault
  bool wrong = false;   // the output differs

  bool any() const { return wrong || !finding.empty(); }
  std::string checker() const { return finding.substr(0, finding.find(':')); }
};

Notice run_mutant(const Subject& subject, const Module& module,
                  const std::vector<uint16_t>& expected) {
  Notice notice;
  for (Order order : {Order::kForward, Order::kReversed}) {
    Races races;
    Options options;
    options.warp_order = order;
    options.max_warp_steps = 1 << 20;
    options.observers = {&races};
    const RungRun r = subject.run(module, options);
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

Tally run_mutants(const Subject& subject, RedundantSites& redundant) {
  const std::string text = read_text(std::string(PTXVM_TEST_PTX_DIR) + "/" + subject.name + ".ptx");
  const Module clean = Module::parse(text, subject.name);
  const std::vector<uint16_t> expected = subject.run(clean, {}).output;
  const Notice nothing = run_mutant(subject, clean, expected);
  INFO(subject.name << ", as it is: " << nothing.finding);
  REQUIRE(!nothing.any());
  Tally tally;
  for (const SyncSite& site :
       find_sites(clean, text, subject.entry, subject.name + ".cu", subject.opcodes)) {
    const Module mutant = Module::parse(without(text, site), subject.name);
    const Notice notice = run_mutant(subject, mutant, expected);
    const std::string* reason = redundant.find(subject.name, site);
    ++tally.sites;
    tally.noticed += notice.any();
    const std::string checker = !notice.finding.empty() ? notice.checker()
                                : notice.wrong          ? "-"
                                : reason                ? "redundant"
                                                        : "NOTHING";
    std::printf("%-16s %-34.34s %5d  %-13s %-6s %.60s\n", subject.name.c_str(), site.opcode.c_str(),
                site.source_line, checker.c_str(), notice.wrong ? "wrong" : "",
                site.source.c_str());
    INFO(subject.name << " | " << site.key() << "\n" << notice.finding);
    CHECK(notice.any() == (reason == nullptr));
    if (reason) CHECK(!reason->empty());
  }
  return tally;
}

}  // namespace

TEST_CASE("no synchronisation can be taken out unnoticed") {
  RedundantSites redundant(PTXVM_TEST_DIR "/redundant_sync_sites.txt");
  const Problem small(256, 1), ring(640, 1);
  std::vector<Subject> subjects;
  for (const Rung& rung : kRungs) {
    subjects.push_back(
        {rung.file,
         rung.entry,
         {"bar.", "barrier.", "cp.async.wait_group", "cp.async.wait_all", "cp.async.commit_group"},
         [&](const Module& m, const Options& o) { return run_rung(m, rung, small, o); }});
  }
  subjects.push_back(
      {"warp_specialized",
       "warp_specialized",
       {"bar.", "barrier.", "mbarrier.", "fence.", "wgmma.fence", "wgmma.commit", "wgmma.wait",
        "cp.async.bulk.commit", "cp.async.bulk.wait"},
       [&](const Module& m, const Options& o) { return run_warp_specialized(m, ring, o); }});
  std::printf("%-16s %-34s %5s  %-13s %-6s %s\n", "kernel", "without", "line", "checker", "output",
              "source");
  Tally total;
  for (const Subject& s : subjects) {
    const Tally t = run_mutants(s, redundant);
    CHECK(t.sites >= 6);
    total.sites += t.sites;
    total.noticed += t.noticed;
  }
  std::printf("%d sites: %d noticed, %d redundant\n", total.sites, total.noticed,
              total.sites - total.noticed);
  for (const std::string& entry : redundant.unused()) {
    INFO("redundant_sync_sites.txt: " << entry);
    CHECK(false);
  }
}
