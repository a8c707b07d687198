// SPDX-License-Identifier: MIT
// alloca and its relatives, and modules that are linked as one text.
#include <algorithm>

#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

TEST_CASE("alloca gives every lane memory of its own") {
  const Run r = run(kernel(R"(
    add.u32 %r1, %lane, 1;
    mul.wide.u32 %d1, %r1, 4;
    stacksave.u64 %d9;
    alloca.u64 %d2, %d1, 16;
    mov.u32 %r2, 0;
$fill:
    mad.wide.u32 %d3, %r2, 4, %d2;
    st.local.u32 [%d3], %r2;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra $fill;
    alloca.u64 %d4, 4;
    st.local.u32 [%d4], 100;
    ld.local.u32 %r3, [%d3];
    ld.local.u32 %r4, [%d4];
    add.u32 %r3, %r3, %r4;
    st.global.u32 [%out], %r3;
    stackrestore.u64 %d9;
    alloca.u64 %d5, 32, 64;
    sub.u64 %d6, %d5, %d2;
    st.global.u32 [%out+4], %d6;
    and.b64 %d7, %d5, 63;
    st.global.u32 [%out+8], %d7;)"));
  if (r.result.fault) FAIL(r.result.fault->format());
  for (int i = 0; i < 32; ++i) {
    CHECK(r.at<uint32_t>(i) == 100u + static_cast<uint32_t>(i));
    CHECK(r.at<uint32_t>(i, 1) == 0);  // the same place again
    CHECK(r.at<uint32_t>(i, 2) == 0);
  }
}

TEST_CASE("a function gives back what it has allocated") {
  const std::string take = R"(.func take(.param .b32 bytes)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u32 %r1, [bytes];
  cvt.u64.u32 %d1, %r1;
  alloca.u64 %d2, %d1;
  st.local.u32 [%d2], %r1;
  ret;
}
)";
  const auto called = [&](int times) {
    std::string body =
        "mov.u32 %r1, 0;\n$again:\n{ .param .b32 x; st.param.b32 [x], 8000; call take, (x); }\n";
    body += "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, " + std::to_string(times) +
            "; @%p1 bra $again; st.global.u32 [%out], %r1;";
    return run(kernel(body, "sm_80", take));
  };
  const Run r = called(50);
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.at<uint32_t>(3) == 50);
}

TEST_CASE("a stack that is full, and misuse of it") {
  const auto message = [](const std::string& body) {
    const Run r = run(kernel(body));
    return r.result.fault ? r.result.fault->message : "";
  };
  CHECK(message("alloca.u64 %d1, 17000;") ==
        "the stack is full: alloca of 17000 bytes, and 16384 are left");
  CHECK(message("alloca.u64 %d1, 0xfffffffffffffff0;").starts_with("the stack is full"));
  CHECK(message("mov.u64 %d1, 64; stackrestore.u64 %d1; alloca.u64 %d2, 4;") ==
        "this is no place of the stack that stacksave gave here");
  CHECK(message("alloca.u64 %d1, 4, 48;") == "the alignment must be a power of two");
}

namespace {

std::string part(const std::string& entry, int value, const std::string& before = "",
                 const std::string& linkage = "") {
  return ".version 9.0\n.target sm_80\n.address_size 64\n" + before + linkage +
         ".global .align 4 .u32 value = " + std::to_string(value) +
         ";\n.global .align 8 .u64 to_value = value;\n"
         ".func (.param .b32 r) get()\n{\n  .reg .b32 %r;\n  ld.global.u32 %r, [value];\n"
         "  st.param.b32 [r], %r;\n  ret;\n}\n"
         ".visible .entry " +
         entry +
         "(.param .u64 buffer)\n{\n  .reg .b64 %d<4>;\n  .reg .b32 %r<4>;\n"
         "  ld.param.u64 %d1, [buffer];\n  { .param .b32 x; call (x), get, ();\n"
         "  ld.param.b32 %r1, [x]; }\n  ld.global.u64 %d2, [to_value];\n"
         "  ld.global.u32 %r2, [%d2];\n  st.global.v2.u32 [%d1], {%r1, %r2};\n  ret;\n}\n";
}

std::pair<uint32_t, uint32_t> values(const Module& module, const char* entry) {
  Memory memory;
  const Address buffer = memory.allocate("buffer", 8, Fill::kZero);
  LaunchConfig config;
  config.arguments = {Argument::pointer(buffer)};
  const LaunchResult result = launch(module, entry, config, memory, {});
  if (result.fault) FAIL(result.fault->format());
  std::pair<uint32_t, uint32_t> out;
  std::memcpy(&out.first, memory.bytes(buffer).data(), 4);
  std::memcpy(&out.second, memory.bytes(buffer).data() + 4, 4);
  return out;
}

}  // namespace

TEST_CASE("what two modules keep to themselves under one name stays apart") {
  const Module module = Module::parse(part("a", 11) + part("b", 22), "two.ptx");
  CHECK(values(module, "a") == std::pair<uint32_t, uint32_t>{11, 11});
  CHECK(values(module, "b") == std::pair<uint32_t, uint32_t>{22, 22});
  std::vector<std::string> names;
  for (const ModuleVariable& v : module.variables()) names.push_back(v.name);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"to_value", "to_value@2", "value", "value@2"});
}

TEST_CASE("a name that one module keeps to itself is not what another makes known") {
  const std::string third =
      ".version 9.0\n.target sm_80\n.address_size 64\n"
      ".extern .global .align 4 .u32 value;\n"
      ".visible .entry c(.param .u64 buffer)\n{\n  .reg .b64 %d;\n"
      "  .reg .b32 %r;\n  ld.param.u64 %d, [buffer];\n"
      "  ld.global.u32 %r, [value];\n  st.global.u32 [%d], %r;\n  ret;\n}\n";
  const Module module =
      Module::parse(part("a", 11) + part("b", 22, "", ".visible ") + third, "three.ptx");
  CHECK(values(module, "a").first == 11);
  CHECK(values(module, "b").first == 22);
  CHECK(values(module, "c").first == 22);
}

TEST_CASE("a template's kernel that two modules have is there once") {
  const std::string weak =
      ".version 9.0\n.target sm_80\n.address_size 64\n.weak .entry k()\n{\n  ret;\n}\n";
  CHECK(Module::parse(weak + weak, "weak.ptx").kernels().size() == 1);
}
