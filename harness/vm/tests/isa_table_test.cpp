// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "catch.h"
#include "exec/bind.h"
#include "isa/sample.h"
#include "isa/table.h"
#include "ptxvm/module.h"

using namespace ptxvm;

namespace {

std::vector<std::string> texts(std::string_view pattern) {
  std::vector<std::string> out;
  for (const auto& tokens : isa::expand(pattern)) {
    std::string text(tokens[0].text);
    for (size_t i = 1; i < tokens.size(); ++i) text += "." + std::string(tokens[i].text);
    out.push_back(text);
  }
  return out;
}

bool has_operand(const isa::Spelling& s, isa::OperandKind kind) {
  return std::any_of(s.operands.begin(), s.operands.end(),
                     [&](const isa::OperandSpec& o) { return o.kind == kind; });
}

// The first operand that a spelling writes is a register, and one of the others is memory.
bool reads_memory(const isa::Spelling& s) {
  return has_operand(s, isa::OperandKind::kMemory) && s.operands[0].role == isa::Role::kWrite;
}

}  // namespace

TEST_CASE("patterns expand to exact spellings") {
  CHECK(texts("a.{b|c}[.d]") == std::vector<std::string>{"a.b", "a.c", "a.b.d", "a.c.d"});
  CHECK(texts("a[.{x|y.z}].e") == std::vector<std::string>{"a.e", "a.x.e", "a.y.z.e"});
  CHECK(texts("exit") == std::vector<std::string>{"exit"});
}

TEST_CASE("chosen modifiers are marked, fixed ones are not") {
  const auto tokens = isa::expand("mma.sync.{m1|m2}.f32")[0];
  CHECK(!tokens[1].chosen);
  CHECK(tokens[2].chosen);
  CHECK(!tokens[3].chosen);
}

TEST_CASE("every spelling that runs has code that reads every modifier") {
  size_t count = 0;
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs()) continue;
    INFO(s.text);
    const Bound bound = bind(s);
    REQUIRE(bound.plain != nullptr);
    REQUIRE(bound.observed != nullptr);
    const isa::Spelling* found = isa::find(s.text);
    while (found && found != &s) found = found->overload;
    REQUIRE(found);
    ++count;
  }
  CHECK(count > 10000);
}

TEST_CASE("no row that runs belongs to a family that does not, unless it is meant to") {
  // A family is looked up only after the exact spellings.
  CHECK(isa::find("wmma.load.a.sync.aligned.col.m8n8k32.s4") == nullptr);
  CHECK(isa::find_family("wmma.load.a.sync.aligned.col.m8n8k32.s4") != nullptr);
  CHECK(isa::find_family("wmmaload") == nullptr);
  CHECK(isa::find_family("ldu.global.u32") != nullptr);
  CHECK(isa::find_family("add.s32") == nullptr);
}

TEST_CASE("every spelling parses and lowers from its sample statement") {
  for (int i = 0; i < 6; ++i) {
    const bool optional = i % 2;
    const std::string target = i < 2 ? "90a" : i < 4 ? "100a" : "100a.2";
    std::string text = ".version 9.0\n.target sm_" + isa::target_name(target) +
                       "\n.address_size 64\n" + isa::sample_functions() +
                       ".visible .entry k()\n{\n" + isa::sample_declarations();
    size_t count = 0;
    for (const isa::Spelling& s : isa::spellings()) {
      if (!s.runs() || isa::sample_target(s) != target) continue;
      text += isa::sample_statement(s, optional) + "\n";
      ++count;
    }
    CHECK(count > 20);
    text += "$sample_label:\nret;\n}\n";
    const Module m = Module::parse(text, "samples.ptx");
    // One ret here, one in the function that a call reaches.
    CHECK(m.kernel("k").instructions().size() == count + (i < 2 ? 2 : 1));
    CHECK(m.kernel("k").unsupported().empty());
  }
}

// Another place that knew an instruction by its name would have to be found and changed with it.
TEST_CASE("only the table and the binders compare names of instructions") {
  std::set<std::string, std::less<>> names;
  for (const isa::Spelling& s : isa::spellings()) names.emplace(s.tokens[0].text);
  const std::regex compared(
      R"re((?:[!=]= |starts_with\(|ends_with\(|find\()"([a-z0-9_]+)(\.[a-z0-9_.:]*)?")re");
  const std::regex looked_at(R"((\.|->)tokens\b|opcode(\.find|\.starts_with|\.ends_with| [!=]=))");
  const std::filesystem::path root = PTXVM_SOURCES;
  size_t files = 0;
  for (const char* folder :
       {"c", "exec", "io", "lower", "memory", "num", "observe", "program", "text", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::filesystem::path path = std::filesystem::relative(entry.path(), root);
      const bool binds = path.parent_path() == "exec/ops" || path == "exec/bind.h";
      if (!entry.is_regular_file() || binds || path == "exec/bind.cpp") continue;
      std::ifstream file(entry.path());
      ++files;
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        INFO(path.string() << ":" << ++number << ": " << line);
        std::smatch m;
        const bool names_one = std::regex_search(line, m, compared) && names.contains(m[1].str());
        CHECK(!names_one);
        CHECK(!std::regex_search(line, looked_at));
      }
    }
  }
  CHECK(files > 100);
}

TEST_CASE("the traits of a row fit its operands") {
  using isa::OperandKind;
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs()) continue;
    INFO(s.text);
    const isa::Traits& t = s.traits();
    CHECK(t.branch ==
          (has_operand(s, OperandKind::kLabel) || has_operand(s, OperandKind::kTargets)));
    CHECK(t.call == has_operand(s, OperandKind::kFunction));
    if (t.load) CHECK(reads_memory(s));
    if (t.store) CHECK(s.operands[0].kind == OperandKind::kMemory);
    if (t.atomic) CHECK(has_operand(s, OperandKind::kMemory));
    CHECK(t.load + t.store + t.atomic + t.copy + t.joins + t.branch + t.call <= 1);
    if (t.ends && !t.branch) CHECK(s.operands.empty());
    if (t.copy || t.joins || t.decides) CHECK(s.operands[0].role == isa::Role::kWrite);
    if (t.vectors_pending) CHECK(s.row->check.kind != isa::CheckKind::kEffect);
  }
}

TEST_CASE("a target has what it names, and what is specific to it") {
  const auto runs_on = [](const char* text) {
    const isa::Row& row = *isa::find(text)->row;
    std::string out;
    for (const int sm : {80, 90, 100}) {
      for (const bool specific : {false, true})
        out += row.runs_on(sm, specific) ? std::to_string(sm) + (specific ? "a " : " ") : "";
    }
    return out;
  };
  CHECK(runs_on("elect.sync") == "90 90a 100 100a ");
  CHECK(runs_on("wgmma.fence.sync.aligned") == "90a ");
  CHECK(runs_on("setmaxnreg.inc.sync.aligned.u32") == "90a 100a ");
  CHECK(runs_on("add.f32x2") == "100 100a ");
  CHECK(runs_on("tcgen05.wait::ld.sync.aligned") == "100a ");
}

TEST_CASE("modifiers are read once, for all who ask about them") {
  const auto get = [](std::string_view text) { return *isa::find(text); };
  CHECK(get("ld.acquire.cta.shared::cta.u32").space == Space::kShared);
  CHECK(get("ld.acquire.cta.shared::cta.u32").ordering.block_scope);
  CHECK(get("ld.acquire.gpu.global.u32").ordering.acquire);
  CHECK(!get("ld.acquire.gpu.global.u32").ordering.block_scope);
  CHECK(get("red.global.add.f32").ordering.strong);
  CHECK(!get("st.global.f32").ordering.strong);
  CHECK(get("st.global.f32").type == Type::kF32);
  CHECK(get("ld.global.cv.u32").refetches);
  CHECK(get("atom.global.exch.b32").exchanges);
  CHECK(get("and.pred").combine == isa::Combine::kAnd);
  CHECK(isa::in_local_memory(get("ld.param.u64")) == isa::find("ld.local.u64"));
}

TEST_CASE("what is wrong with a mnemonic") {
  CHECK(isa::explain_unknown("fma.ftz.rn.f32") == "the order in the PTX ISA is 'fma.rn.ftz.f32'");
  CHECK(isa::explain_unknown("frob.u32") == "there is no instruction 'frob'");
  CHECK(isa::explain_unknown("fma.rn.f31") ==
        "'.f31' does not fit here; after 'fma.rn' may follow .f32, .ftz, .sat, .f64, .f32x2, .f16, "
        ".f16x2, .relu, .bf16, .bf16x2");
  CHECK(
      isa::explain_unknown("mul.lo") ==
      "the mnemonic is not complete; after 'mul.lo' may follow .u16, .u32, .u64, .s16, .s32, .s64");
}
