// SPDX-License-Identifier: MIT
// ptxas decides what is PTX: it must accept every spelling that we run.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include "catch.h"
#include "isa/decode.h"
#include "isa/sample.h"
#include "ptxas.h"
#include "ptxvm/module.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

// What ptxas says about the statements; empty when it takes them.
std::string judge(const std::vector<std::string>& statements, const std::string& target) {
  const Judged judged = ptxas(module_of(statements, target), target, "-w");
  return judged.accepted ? "" : judged.said.substr(0, 4000);
}

// Lines of the statements that ptxas refuses, counted from the head of the file.
std::vector<int> refused_lines(const std::vector<std::string>& statements,
                               const std::string& target) {
  const Judged judged = ptxas(module_of(statements, target), target, "-w");
  if (judged.accepted) return {};
  std::istringstream errors(judged.said);
  std::vector<int> lines;
  for (std::string line; std::getline(errors, line);) {
    const size_t at = line.find(", line ");
    if (at != std::string::npos) lines.push_back(std::atoi(line.c_str() + at + 7));
  }
  return lines;
}

bool is_specific(const isa::Spelling& s) {
  return s.row->specific != isa::Specific::kNo;
}

// One file for each least target, so that a row's `sm` is checked as well. Of the statements with
// optional operands, only those that differ from the plain ones are assembled.
std::string assemble(int sm, bool arch_specific, bool optional, size_t& count) {
  std::map<std::string, std::vector<std::string>> texts;  // by what one kernel may hold
  count = 0;
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs() || s.row->sm != sm || is_specific(s) != arch_specific) continue;
    const std::string statement = isa::sample_statement(s, optional);
    if (optional && statement == isa::sample_statement(s, false)) continue;
    texts[isa::sample_target(s)].push_back(statement);
    ++count;
  }
  std::string errors;
  for (const auto& [name, statements] : texts)
    errors += judge(statements, std::to_string(std::max(sm, 75)) + (arch_specific ? "a" : ""));
  return errors;
}

}  // namespace

TEST_CASE("ptxas accepts every spelling that runs") {
  need_ptxas();
  std::vector<std::pair<int, bool>> levels;
  for (const isa::Row& row : isa::rows()) {
    const std::pair level{row.sm, row.specific != isa::Specific::kNo};
    if (row.reason.empty() && std::find(levels.begin(), levels.end(), level) == levels.end()) {
      levels.push_back(level);
    }
  }
  size_t total = 0;
  for (auto [sm, arch_specific] : levels) {
    for (bool optional : {false, true}) {
      size_t count = 0;
      INFO("sm_" << sm);
      CHECK(assemble(sm, arch_specific, optional, count) == "");
      total += count;
    }
  }
  CHECK(total > 20000);
}

TEST_CASE("ptxas accepts no row for an older target than we do") {
  need_ptxas();
  for (const int sm : {75, 80, 86, 89, 90}) {
    std::vector<const isa::Spelling*> asked;
    std::vector<int> of_row(isa::rows().size());
    for (const isa::Spelling& s : isa::spellings()) {
      constexpr int kOfARow = 4;
      if (!s.runs() || is_specific(s) || s.row->sm <= sm) continue;
      if (of_row[s.row_index]++ < kOfARow) asked.push_back(&s);
    }
    // Where ptxas gives up before the end, the lines that it has refused are left out.
    while (!asked.empty()) {
      std::vector<std::string> statements;
      for (const isa::Spelling* s : asked) {
        statements.push_back(isa::sample_statement(*s, false));
        REQUIRE(statements.back().find('\n') == std::string::npos);
      }
      int line = first_line("75");
      const std::vector<int> refused = refused_lines(statements, std::to_string(sm));
      const size_t before = asked.size();
      std::erase_if(asked, [&](const isa::Spelling*) {
        return std::find(refused.begin(), refused.end(), line++) != refused.end();
      });
      if (refused.empty() || asked.size() == before) break;
    }
    for (const isa::Spelling* s : asked)
      FAIL_CHECK("sm_" << sm << " has " << s->text << ", the table says " << s->row->sm);
  }
}

TEST_CASE("ptxas accepts constants in vectors of registers where we do") {
  need_ptxas();
  std::map<std::string, std::vector<std::string>> statements;  // by target
  std::vector<const isa::Spelling*> of_row(isa::rows().size());
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs() || std::exchange(of_row[s.row_index], &s)) continue;
    const std::string one = isa::sample_statement(s, false, true);
    if (one != isa::sample_statement(s, false)) statements[isa::sample_target(s)].push_back(one);
  }
  CHECK(statements["90a"].size() > 50);
  CHECK(statements.size() == 3);
  for (const auto& [name, own] : statements) {
    const std::string target = isa::target_name(name);
    CHECK(judge(own, target) == "");
    Module::parse(module_of(own, target), "constants.ptx");
  }
}

TEST_CASE("ptxas accepts the modifiers in every order in which we do") {
  need_ptxas();
  uint64_t state = 7;
  const auto next = [&](size_t n) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<size_t>(state >> 33) % n;
  };
  std::map<std::string, std::vector<std::string>> statements;  // by target
  size_t count = 0;
  std::vector<size_t> of_row(isa::rows().size());
  for (const isa::Spelling& s : isa::spellings()) {
    constexpr size_t kMostOfARow = 24;
    if (!s.runs() || s.tokens.size() < 3 || next(8) != 0) continue;
    if (++of_row[s.row_index] > kMostOfARow) continue;
    std::vector<std::string> words;
    for (const isa::Token& t : s.tokens) words.emplace_back(t.text);
    for (size_t i = 1; i < words.size(); ++i)
      std::swap(words[i], words[1 + next(words.size() - 1)]);
    const std::string text = join(words);
    if (isa::find(text) || isa::decode(text).spelling != &s) continue;
    statements[isa::sample_target(s)].push_back(
        text + isa::sample_statement(s, false).substr(s.text.size()));
    ++count;
  }
  CHECK(count > 500);
  for (const auto& [name, all] : statements) CHECK(judge(all, isa::target_name(name)) == "");
}

TEST_CASE("ptxas accepts the cache hints where we do, and no others") {
  need_ptxas();
  const std::vector<std::string> bases = {"ld.b32",
                                          "ld.weak.global.v4.f32",
                                          "ld.volatile.global.u32",
                                          "ld.relaxed.gpu.u64",
                                          "ld.global.nc.u16",
                                          "ld.global.ca.s8",
                                          "ld.global.cg.nc.f32",
                                          "ld.shared.u32",
                                          "ld.local.u32",
                                          "ld.const.u32",
                                          "st.global.v2.b32",
                                          "st.shared.u32",
                                          "st.global.cs.u32",
                                          "st.volatile.u32",
                                          "st.release.gpu.u32",
                                          "atom.global.add.u32",
                                          "atom.shared.add.u32",
                                          "red.global.add.f32",
                                          "atom.acq_rel.gpu.global.cas.b32"};
  size_t accepted = 0;
  for (const std::string& base : bases) {
    const isa::Spelling* plain = isa::decode(base).spelling;
    REQUIRE(plain != nullptr);
    std::string operands = isa::sample_statement(*plain, false).substr(plain->text.size());
    for (const char* hint : {".L1::evict_last", ".L1::no_allocate", ".L2::128B", ".L2::cache_hint",
                             ".L1::evict_first.L2::cache_hint.L2::256B"}) {
      const size_t type = base.find_last_of('.');
      const size_t vector = base[type - 2] == 'v' ? type - 3 : type;
      const std::string text = base.substr(0, vector) + hint + base.substr(vector);
      const isa::Decoded d = isa::decode(text);
      const bool policy = text.find("cache_hint") != std::string::npos;
      std::string statement = text + operands;
      if (policy) statement.insert(statement.size() - 1, ", %sample_b64_9");
      INFO(statement);
      const bool ours = d.spelling != nullptr;
      CHECK(d.policy == (ours && policy));
      const std::string errors = judge({statement}, "90a");
      // ptxas also takes a prefetch size on what is no load.
      if (ours) CHECK(errors == "");
      if (!ours && base.substr(0, 2) == "ld") CHECK(errors != "");
      accepted += ours;
    }
  }
  CHECK(accepted > 30);
}
