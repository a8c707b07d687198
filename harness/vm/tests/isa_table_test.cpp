// SPDX-License-Identifier: MIT
#include <set>

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
    const bool same = found == &s || found->overload == &s;
    REQUIRE(same);
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
  for (bool optional : {false, true}) {
    std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n" +
                       isa::sample_functions() + ".visible .entry k()\n{\n" +
                       isa::sample_declarations();
    size_t count = 0;
    for (const isa::Spelling& s : isa::spellings()) {
      if (!s.runs()) continue;
      text += isa::sample_statement(s, optional) + "\n";
      ++count;
    }
    text += "$sample_label:\nret;\n}\n";
    const Module m = Module::parse(text, "samples.ptx");
    CHECK(m.kernel("k").instructions().size() == count + 2);  // one ret here, one in the function
    CHECK(m.kernel("k").unsupported().empty());
  }
}

TEST_CASE("what is wrong with a mnemonic") {
  CHECK(isa::explain_unknown("fma.ftz.rn.f32") == "the order in the PTX ISA is 'fma.rn.ftz.f32'");
  CHECK(isa::explain_unknown("frob.u32") == "there is no instruction 'frob'");
  CHECK(isa::explain_unknown("fma.rn.f31") ==
        "'.f31' does not fit here; after 'fma.rn' may follow .f32, .ftz, .sat, .f64, .f16, .f16x2, "
        ".relu, .bf16, .bf16x2");
  CHECK(
      isa::explain_unknown("mul.lo") ==
      "the mnemonic is not complete; after 'mul.lo' may follow .u16, .u32, .u64, .s16, .s32, .s64");
}
