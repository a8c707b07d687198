// SPDX-License-Identifier: MIT
// ptxas is laxer than the PTX ISA. One-edit mutants of our spellings that it accepts and we refuse
// are a reviewed list; `ptxvm_isa_mutants_test "[write]"` writes it anew.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "catch.h"
#include "isa/decode.h"
#include "isa/sample.h"
#include "isa/types.h"
#include "ptxas.h"
#include "ptxvm/module.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

constexpr size_t kMostOfARow = 48;  // rows with more spellings are sampled
constexpr size_t kBatch = 20000;

using Words = std::vector<std::string>;

Words words_of(const isa::Spelling& s) {
  Words words;
  for (const isa::Token& t : s.tokens) words.emplace_back(t.text);
  return words;
}

// All spellings of a small row; of a large one every so many, and whatever has a modifier that was
// not there yet.
std::vector<const isa::Spelling*> parents() {
  std::map<uint32_t, size_t> sizes;
  for (const isa::Spelling& s : isa::spellings()) ++sizes[s.row_index];
  std::map<uint32_t, std::set<std::string>> seen;
  std::vector<const isa::Spelling*> out;
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs()) continue;
    const size_t step = (sizes[s.row_index] + kMostOfARow - 1) / kMostOfARow;
    bool fresh = false;
    for (const std::string& w : words_of(s)) fresh |= seen[s.row_index].insert(w).second;
    if (fresh || s.index % step == 0) out.push_back(&s);
  }
  return out;
}

struct Mutant {
  std::string statement, target;  // with its parent's operands
};

std::map<std::string, Mutant> make_mutants() {
  std::map<std::string, std::set<std::string>> alphabet;
  for (const isa::Spelling& s : isa::spellings()) {
    for (size_t i = 1; i < s.tokens.size(); ++i)
      alphabet[std::string(s.tokens[0].text)].emplace(s.tokens[i].text);
  }
  std::map<std::string, Mutant> out;
  for (const isa::Spelling* s : parents()) {
    const std::string target = isa::sample_target(*s);
    const std::string statement = isa::sample_statement(*s, false);
    const std::string operands = statement.substr(s->text.size());
    const auto add = [&](const Words& w) {
      const std::string text = join(w);
      // ptxas 13.0 crashes on forms of st.param that it does not know.
      if (text.starts_with("st.") && text.find(".param") != text.npos) return;
      const isa::Spelling* same = isa::decode(text).spelling;
      if (!same || !same->runs()) out.emplace(text, Mutant{text + operands, target});
    };
    const Words words = words_of(*s);
    for (size_t i = 1; i < words.size(); ++i) {
      Words w = words;
      w.erase(w.begin() + static_cast<long>(i));
      add(w);
      w = words;
      w.insert(w.begin() + static_cast<long>(i), words[i]);
      add(w);
      if (i + 1 < words.size()) {
        w = words;
        std::swap(w[i], w[i + 1]);
        add(w);
      }
      for (const std::string& other : alphabet[words[0]]) {
        w = words;
        w[i] = other;
        add(w);
      }
    }
  }
  return out;
}

// They take seconds to make, and two tests have them.
const std::map<std::string, Mutant>& mutants() {
  static const std::map<std::string, Mutant> made = make_mutants();
  return made;
}

struct Assembled {
  std::set<size_t> bad;  // lines that ptxas complains about
  size_t fatal = 0;      // the line behind which it read nothing,
  std::string near;      // and the word there that it did not expect
  bool clean = false;
};

Assembled assemble(const std::string& text, const std::string& target) {
  const Judged judged = ptxas(text, isa::target_name(target));
  Assembled out;
  out.clean = judged.accepted;
  std::istringstream in(judged.said);
  for (std::string line; std::getline(in, line);) {
    // Not those of the functions that it puts in: "ptxas <builtin>, line 28".
    const size_t at = line.find(".ptx, line ");
    // All were read; that there are too many accumulators for one kernel is no matter.
    out.clean |= line.find("(C7600) Register allocation failed") != std::string::npos;
    if (at == std::string::npos || line.find("warning") != std::string::npos) continue;
    const size_t number = std::strtoull(line.c_str() + at + 11, nullptr, 10);
    out.bad.insert(number);
    if (line.find("; fatal ") == std::string::npos) continue;
    out.fatal = number;
    const size_t quote = line.find('\'', at) + 1;
    out.near = line.substr(quote, line.find('\'', quote) - quote);
  }
  if (!out.clean && out.bad.empty()) FAIL("ptxas failed without naming a line: " << judged.said);
  return out;
}

// The mutants for a target that are left once nothing is wrong any more.
Words accepted(Words names, const std::map<std::string, Mutant>& statements,
               const std::string& target) {
  const size_t first = static_cast<size_t>(first_line(target));
  for (bool clean = false; !clean;) {
    clean = true;
    Words left;
    size_t window = kBatch;
    for (size_t at = 0, end; at < names.size(); at = end) {
      end = std::min(at + window, names.size());
      std::vector<std::string> texts;
      for (size_t i = at; i < end; ++i) texts.push_back(statements.at(names[i]).statement);
      const Assembled found = assemble(module_of(texts, target), target);
      if (found.fatal != 0) end = at + found.fatal - first + 1;
      window = found.fatal != 0 ? 1000 : kBatch;  // others like it follow
      const size_t before = left.size();
      for (size_t i = at; i < end; ++i) {
        if (!found.bad.count(first + i - at)) left.push_back(names[i]);
      }
      if (!found.clean && left.size() - before == end - at)
        FAIL("ptxas blames a line that is no mutant");
      clean &= found.clean;
      if (found.fatal == 0) continue;
      // Mutants that begin with the words that the parser refused are refused as well.
      const std::string& name = names[end - 1];
      const size_t stop = name.rfind(found.near);
      const std::string same = name.substr(0, stop) + found.near + ".";
      while (end < names.size() && names[end].starts_with(same)) ++end;
    }
    names = std::move(left);
  }
  return names;
}

// The set of modifiers that an order or a repetition does not change.
std::string essence(Words w) {
  std::sort(w.begin() + 1, w.end());
  w.erase(std::unique(w.begin() + 1, w.end()), w.end());
  return join(w);
}

Words split(const std::string& mnemonic) {
  Words words;
  std::istringstream in(mnemonic);
  for (std::string w; std::getline(in, w, '.');) words.push_back(w);
  return words;
}

// A mnemonic without its types, vector and tile, which go with every one of its forms.
std::string shape(const Words& w) {
  const std::regex left_out("v[248]|m64n.*|x[0-9]+|[0-9]+x[0-9]+bx?2?");
  std::string text = w[0];
  for (size_t i = 1; i < w.size(); ++i) {
    if (!std::regex_match(w[i], left_out) && !parse_type(w[i])) text += "." + w[i];
  }
  return text;
}

void list_groups(std::ostream& out, const std::map<std::string, Words>& groups) {
  for (const auto& [name, list] : groups) {
    uint64_t digest = 0xcbf29ce484222325;
    for (const std::string& m : list) {
      for (char c : m + "\n") digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    char text[200];
    std::snprintf(text, sizeof text, "%s %zu %016llx %s\n", name.c_str(), list.size(),
                  static_cast<unsigned long long>(digest), list[0].c_str());
    out << text;
  }
}

// Groups that are large and of one nature are given by count and digest, the others in full.
std::string describe(const Words& all) {
  std::set<std::string> essences;
  for (const isa::Spelling& s : isa::spellings()) {
    if (s.runs()) essences.insert(essence(words_of(s)));
  }
  std::map<std::string, Words> rearranged, known, memory;
  Words forms;
  for (const std::string& m : all) {
    const Words words = split(m);
    if (essences.count(essence(words)))
      rearranged[words[0]].push_back(m);
    else if (isa::find(m) || isa::find_family(m))
      known[shape(words)].push_back(m);
    else if (words[0] == "ld" || words[0] == "st")
      memory[shape(words)].push_back(m);
    else
      forms.push_back(m);
  }
  std::ostringstream out;
  out << "# One-edit mutants of our spellings that ptxas accepts and this machine refuses.\n"
         "# Written by `ptxvm_isa_mutants_test \"[write]\"` with ptxas 13.0; reviewed by hand.\n"
         "# A group is given as: name, number of mutants, FNV-1a of their sorted list, an "
         "example.\n"
         "\n# 1. Spellings of ours with modifiers in another order, or twice. ptxas does not mind; "
         "the\n# PTX ISA gives one order, and we refuse with that order in the message.\n";
  list_groups(out, rearranged);
  out << "\n# 2. Valid PTX that the table has as not run here, with the reason. Types,\n# vectors "
         "and tile sizes left out.\n";
  list_groups(out, known);
  out << "\n# 3. Loads and stores with combinations of cache operators, hints and scopes that the "
         "table\n# does not have: generic addresses with hints, operators on .const and .param, "
         "hints "
         "beside\n# .weak, .volatile and scopes. nvcc emits none of them for this project. By "
         "modifiers; types\n# and vectors left out.\n";
  list_groups(out, memory);
  out << "\n# 4. Other forms that ptxas accepts and the table does not have.\n";
  for (const std::string& m : forms) out << m << "\n";
  return out.str();
}

std::string survey() {
  const auto& statements = mutants();
  std::map<std::string, Words> of_target;
  Words all;
  for (const auto& [name, mutant] : statements) of_target[mutant.target].push_back(name);
  for (const auto& [target, names] : of_target) {
    for (size_t at = 0; at < names.size(); at += kBatch) {
      const auto from = names.begin() + static_cast<long>(at);
      const auto to = names.begin() + static_cast<long>(std::min(at + kBatch, names.size()));
      for (std::string& m : accepted(Words(from, to), statements, target))
        all.push_back(std::move(m));
    }
  }
  std::sort(all.begin(), all.end());
  std::printf("%zu mutants, %zu accepted by ptxas\n", statements.size(), all.size());
  return describe(all);
}

}  // namespace

TEST_CASE("an unknown modifier or opcode is refused, never run") {
  uint64_t state = 1;
  const auto next = [&] { return state = state * 6364136223846793005 + 1442695040888963407; };
  size_t tried = 0;
  for (const isa::Spelling* s : parents()) {
    Words w = words_of(*s);
    std::string noise;
    for (int i = 0; i < 3; ++i) noise += static_cast<char>('a' + (next() >> 33) % 26);
    const size_t at = (next() >> 33) % (w.size() + 1);
    if (at == w.size())
      w.push_back(noise);
    else if ((next() >> 40) % 2)
      w[at] = noise;
    else
      w[at] += noise;
    const std::string text = join(w);
    if (isa::decode(text).spelling || isa::find_family(text)) continue;
    const std::string operands = isa::sample_statement(*s, false).substr(s->text.size());
    INFO(text);
    CHECK_THROWS_AS(
        Module::parse(head(isa::sample_target(*s)) + text + operands + "\n" + kTail, "m.ptx"),
        Error);
    ++tried;
  }
  CHECK(tried > 2000);
}

TEST_CASE("a mutant is refused by the parser or before a launch") {
  const auto& all = mutants();
  size_t number = 0;
  for (const auto& [name, mutant] : all) {
    if (number++ % 101) continue;
    INFO(name);
    try {
      const Module m =
          Module::parse(head(mutant.target) + mutant.statement + "\n" + kTail, "m.ptx");
      CHECK(!m.kernel("k").unsupported().empty());
    } catch (const Error&) {
      SUCCEED();
    }
  }
  CHECK(number > 100000);
}

TEST_CASE("what ptxas accepts and we refuse is the reviewed list") {
  need_ptxas();
  CHECK(survey() == read_text(PTXVM_ALSO_ACCEPTS));
}

TEST_CASE("write the list", "[.][write]") {
  need_ptxas();
  std::ofstream(PTXVM_ALSO_ACCEPTS) << survey();
}
