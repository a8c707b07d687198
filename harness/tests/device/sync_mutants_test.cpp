// SPDX-License-Identifier: MIT
// Every synchronisation instruction of every rung is taken out in turn. The machine must notice, or
// the site stands on the list of those that the rung does not need, with the reason. Other faults,
// of which a list says what must be said, are put in as well.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <regex>

#include "harness/attention/parallel.h"
#include "harness/device/gate.h"
#include "harness/measure/sync_problem.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/faults.h"
#include "harness/tests/device/support.h"
#include "harness/vm/tests/sync_sites.h"

using namespace fa_test;
namespace fs = std::filesystem;

namespace {

struct Subject {
  explicit Subject(const Rung& of) : Subject(of, sync_problem(of)) {}
  Subject(const Rung& of, const SyncProblem& p)
      : rung(&of),
        problem(p.problem),
        plan(p.plan),
        inputs{make_pass_inputs(problem, p.inputs[0], 1), make_pass_inputs(problem, p.inputs[1], 1),
               make_pass_inputs(problem, p.inputs[2], 1)} {}

  const Rung* rung;
  Problem problem;
  LaunchPlan plan;
  std::array<Inputs, 3> inputs;
};

struct Outputs {
  std::vector<decltype(HostTensor::bytes)> exact;
  HostTensor d_q;  ///< summed in an order that may differ
  bool operator==(const Outputs& other) const {
    for (std::int64_t i = 0; i < d_q.size(); ++i) {
      const float a = d_q.at(i), b = other.d_q.at(i);
      if (!(std::abs(a - b) <= 0x1p-9f * (std::abs(a) + std::abs(b)) + 0x1p-22f)) return false;
    }
    return exact == other.exact;
  }
};

Outputs run(const Subject& s, std::size_t inputs, const VmOptions& options) {
  VmDevice device(options);
  device.load(s.problem, s.inputs[inputs]);
  device.launch(s.plan);
  Outputs out;
  if (s.problem.backward) {
    Gradients gradients = device.download_gradients();
    out.exact = {gradients.d_k.bytes, gradients.d_v.bytes};
    out.d_q = std::move(gradients.d_q);
    return out;
  }
  out.exact.push_back(device.download_output().bytes);
  if (s.problem.lse) out.exact.push_back(device.download_lse().bytes);
  return out;
}

/// How a mutant was noticed, or an empty text: a finding, a fault, or another output. What is
/// expected to go unnoticed does so whatever the numbers are: one of the inputs is enough.
std::string notice(const Subject& s, const std::array<Outputs, 3>& expected, const fs::path& folder,
                   bool redundant) {
  const auto mutant = std::make_shared<PtxLibrary>(folder);
  for (std::size_t i = 0; i < (redundant ? 1 : s.inputs.size()); ++i) {
    for (const bool reversed : {false, true}) {
      try {
        const VmOptions options{
            .threads = 1, .reversed = reversed, .ptx = mutant, .max_warp_steps = 1 << 22};
        if (run(s, i, options) != expected[i]) return "another output";
      } catch (const KernelFault& fault) {
        return fault.what();
      }
    }
  }
  return {};
}

const std::vector<std::string> kOpcodes{
    "bar.",         "barrier.",   "cp.async.wait_group",   "cp.async.wait_all",    "mbarrier.",
    "fence.",       "membar.",    "cp.async.commit_group", "cp.async.bulk.commit", "wgmma.fence",
    "wgmma.commit", "wgmma.wait", "cp.async.bulk.wait",    "tcgen05.fence",        "tcgen05.commit",
    "tcgen05.wait"};

/// The text without the kernels that a plan does not launch: each mutant is parsed anew.
std::string with_only(const LaunchPlan& plan, const std::string& text) {
  const std::string_view begins = "\n.visible .entry ";
  std::size_t at = text.find(begins);
  std::string out = text.substr(0, at);
  while (at != text.npos && text.compare(at, begins.size(), begins) == 0) {
    const std::size_t name = at + begins.size(),
                      end = std::min(text.find(begins, name), text.find("\n\t.file", name));
    const std::string entry = text.substr(name, text.find('(', name) - name);
    const auto same = [&](const Launch& launch) { return launch.entry == entry; };
    if (std::ranges::any_of(plan.launches, same)) out += text.substr(at, end - at);
    at = end;
  }
  return at == text.npos ? out : out + text.substr(at);
}

/// A rung's PTX, and its sites of some opcodes.
struct Code {
  Code(const Subject& s, std::string ptx)
      : name(s.rung->name), text(std::move(ptx)), module(ptxvm::Module::parse(text, name)) {
    for (const Launch& launch : s.plan.launches) entries.emplace_back(launch.entry);
  }
  explicit Code(const Subject& s)
      : Code(s, with_only(s.plan, ptxvm_test::read_text(
                                      fmt::format("{}/{}.ptx", FA_PTX_DIR, s.rung->name)))) {}

  std::vector<ptxvm_test::SyncSite> sites(const std::vector<std::string>& opcodes) const {
    return ptxvm_test::find_sites(module, text, entries, name + ".cu", opcodes);
  }

  std::string name, text;
  ptxvm::Module module;
  std::vector<std::string> entries;
};

struct Mutant {
  ptxvm_test::SyncSite site;
  const std::string* reason;  ///< Why the rung does not need the site, or null.
  std::string noticed;
};

/// Of a source line that unrolling has copied, the first and the last copy are tried, where all are
/// redundant the first.
std::vector<Mutant> mutants_of(const Subject& s, const Code& code, RedundantSites& redundant) {
  std::vector<Mutant> mutants;
  std::map<std::string, std::vector<Mutant>> copies;  // by opcode, of the last line
  const auto take = [&](std::vector<Mutant>& of) {
    if (of.empty()) return;
    mutants.push_back(of.front());
    if (!of.front().reason && of.size() > 1) mutants.push_back(of.back());
    of.clear();
  };
  for (const ptxvm_test::SyncSite& site : code.sites(kOpcodes)) {
    const std::string* reason = redundant.find(s.rung->id, site);
    std::vector<Mutant>& last = copies[site.opcode];
    if (!last.empty() &&
        (last.back().site.source_line != site.source_line || last.back().reason != reason))
      take(last);
    last.push_back({site, reason, {}});
  }
  for (auto& [opcode, last] : copies) take(last);
  return mutants;
}

std::vector<Mutant> run_mutants(const Subject& s, RedundantSites& redundant) {
  const Code code(s);
  std::vector<Mutant> mutants = mutants_of(s, code, redundant);
  const VmOptions own{.ptx = kernels()};
  const std::array<Outputs, 3> expected{run(s, 0, own), run(s, 1, own), run(s, 2, own)};
  const fs::path root = fs::temp_directory_path() / fmt::format("fa_sync_mutants_{}", getpid());
  parallel_for(std::ssize(mutants), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const fs::path folder = root / std::to_string(i);
      fs::create_directories(folder);
      Mutant& mutant = mutants[static_cast<std::size_t>(i)];
      std::ofstream(folder / (code.name + ".ptx")) << ptxvm_test::without(code.text, mutant.site);
      mutant.noticed = notice(s, expected, folder, mutant.reason != nullptr);
    }
  });
  fs::remove_all(root);
  return mutants;
}

/// The references of a subject's inputs, each made when a fault first needs it.
class Verifiers {
 public:
  explicit Verifiers(const Subject& s) : s_(s) {}
  const Verifier& of(std::size_t inputs) {
    std::call_once(once_[inputs], [&] { made_[inputs].emplace(s_.problem, s_.inputs[inputs]); });
    return *made_[inputs];
  }

 private:
  const Subject& s_;
  std::array<std::once_flag, 3> once_;
  std::array<std::optional<Verifier>, 3> made_;
};

/// What is said of a rung with a changed text: the first fault, or what the gate rejects, which
/// launches in both orders; empty if nothing is.
std::string said(const Subject& s, Verifiers& verifiers, const fs::path& folder) {
  const auto library = std::make_shared<PtxLibrary>(folder);
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    VmDevice device({.threads = 1, .ptx = library, .max_warp_steps = 1 << 22});
    device.load(s.problem, s.inputs[i]);
    const Verdict verdict = pass_gate(
        device, [&] { device.launch(s.plan); }, verifiers.of(i), promised(s.plan));
    if (!verdict.findings.empty()) return verdict.reason;
    if (!verdict.ok) return "rejects: " + verdict.reason;
  }
  return {};
}

/// What is said of each of these faults; empty of those that the rung does not have.
std::vector<std::string> say_faults(const Subject& s, const std::vector<Fault>& faults,
                                    const fs::path& root) {
  const Code code(s);
  Verifiers verifiers(s);
  std::vector<std::string> messages(faults.size());
  parallel_for(std::ssize(faults), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const Fault& fault = faults[index];
      if (std::ranges::find(fault.rungs, s.rung->id) == fault.rungs.end()) continue;
      const std::string changed =
          with_fault(code.text, sites_of(fault, code.sites({fault.opcode})), fault);
      if (changed.empty()) {
        messages[index] = "no place";
        continue;
      }
      const fs::path folder = root / std::to_string(i);
      fs::create_directories(folder);
      std::ofstream(folder / (code.name + ".ptx")) << changed;
      messages[index] = said(s, verifiers, folder);
      if (messages[index].empty()) messages[index] = "nothing";
    }
  });
  fs::remove_all(root);
  return messages;
}

/// The text as of a kernel with `lines` lines in place of each of its own.
std::string reformatted(const std::string& text, int lines) {
  static const std::regex location(R"((\.loc\s+\d+|inlined_at \d+) (\d+))");
  std::string out;
  auto rest = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), location), end; it != end; ++it) {
    out.append(rest, (*it)[0].first);
    out += fmt::format("{} {}", (*it)[1].str(), std::stoi((*it)[2].str()) * lines);
    rest = (*it)[0].second;
  }
  return out.append(rest, text.cend());
}

/// All that the lists say of a rung's instructions: which are redundant, and which a fault changes.
std::vector<std::string> all_said(const Subject& s, const Code& code,
                                  const std::vector<Fault>& faults) {
  RedundantSites redundant(FA_REDUNDANT_SITES);
  std::vector<std::string> out;
  for (const Mutant& mutant : mutants_of(s, code, redundant)) {
    if (mutant.reason)
      out.push_back(fmt::format("{} {}: {}", mutant.site.key(), mutant.site.line, *mutant.reason));
  }
  for (const Fault& fault : faults) {
    for (const auto& site : sites_of(fault, code.sites({fault.opcode}))) {
      out.push_back(fmt::format("{} {}: {}", site.key(), site.line, fault.title));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("the lists mean the same instructions of a kernel that is formatted otherwise") {
  const std::vector<Fault> faults = read_faults(FA_FAULTS);
  for (const char* id : {"01", "11", "31", "40", "45"}) {
    const Subject s(*find_rung(id));
    const Code code(s);
    const Code other(s, reformatted(code.text, 3));
    REQUIRE(other.text != code.text);
    const std::vector<std::string> said = all_said(s, code, faults);
    CAPTURE(id);
    CHECK(!said.empty());
    CHECK(all_said(s, other, faults) == said);
  }
}

TEST_CASE("no synchronisation of a rung can be taken out unnoticed") {
  RedundantSites redundant(FA_REDUNDANT_SITES);
  ExpectedFindings expected(FA_SYNC_FINDINGS);
  int sites = 0, noticed = 0;
  for (const Rung& rung : catalogue()) {
    const std::vector<Mutant> mutants = run_mutants(Subject(rung), redundant);
    CHECK(mutants.empty() == (rung.id == "40"));  // its lanes meet in shuffles alone
    for (const auto& [site, reason, what] : mutants) {
      ++sites;
      noticed += !what.empty();
      std::printf("%-16s %-34.34s %3d %5d  %.60s\n", std::string(rung.name).c_str(),
                  site.opcode.c_str(), site.number, site.source_line,
                  !what.empty() ? what.substr(what.find(": ") + 1).c_str()
                  : reason      ? " redundant"
                                : " NOTHING");
      INFO(rung.name << " | " << site.key() << "\n" << what);
      CHECK(what.empty() == (reason != nullptr));
      CHECK((what.empty() || expected.allows(site.opcode, what)));
      if (reason) CHECK(!reason->empty());
    }
  }
  std::printf("%d sites: %d noticed, %d redundant\n", sites, noticed, sites - noticed);
  for (const std::string& entry : redundant.unused()) {
    INFO("redundant_sync_sites.txt: " << entry);
    CHECK(false);
  }
  for (const std::string& words : expected.unused()) {
    INFO("sync_findings.txt: " << words);
    CHECK(false);
  }
}

TEST_CASE("what is said of a fault is what the list says", "[faults]") {
  const std::vector<Fault> faults = read_faults(FA_FAULTS);
  const fs::path root = fs::temp_directory_path() / fmt::format("fa_faults_{}", getpid());
  for (const Rung& rung : catalogue()) {
    const std::vector<std::string> messages = say_faults(Subject(rung), faults, root);
    int found = 0;
    for (std::size_t i = 0; i < faults.size(); ++i) {
      if (messages[i].empty()) continue;
      ++found;
      std::printf("%-16s %-50.50s %.60s\n", std::string(rung.name).c_str(), faults[i].title.c_str(),
                  messages[i].c_str());
      INFO(rung.name << " | " << faults[i].title << "\n" << messages[i]);
      CHECK(holds(messages[i], faults[i].words));
    }
    INFO(rung.name);
    // 40 has nothing to synchronise that could go instead; a0 has no online softmax.
    CHECK(found >= (rung.id == "40" ? 3 : rung.id == "a0" ? 0 : 1));
  }
}
