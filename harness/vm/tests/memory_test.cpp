// SPDX-License-Identifier: MIT
#include <cstring>

#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

TEST_CASE("loads extend by their type to the width of the register") {
  std::vector<std::byte> in(512, std::byte{0x80});
  const Run r = run(kernel(R"(
  ld.global.s8 %r1, [%in];
  ld.global.u8 %r2, [%in];
  ld.global.s16 %r3, [%in];
  ld.global.s32 %d1, [%in];
  cvt.u32.u64 %r5, %d1; shr.u64 %d1, %d1, 32; cvt.u32.u64 %r4, %d1;
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};)"),
                    in);
  CHECK(r.at<uint32_t>(0, 0) == 0xffffff80);
  CHECK(r.at<uint32_t>(0, 1) == 0x80);
  CHECK(r.at<uint32_t>(0, 2) == 0xffff8080);
  CHECK(r.at<uint32_t>(0, 3) == 0xffffffff);
}

TEST_CASE("a load may overwrite its own address") {
  std::vector<std::byte> in(512);
  for (int i = 0; i < 512; ++i) in[static_cast<size_t>(i)] = static_cast<std::byte>(i / 16);
  const Run r =
      run(kernel("  ld.global.v2.u64 {%in, %d1}, [%in];\n  st.global.u64 [%out], %d1;"), in);
  CHECK(r.at<uint64_t>(5) == 0x0505050505050505);
}

TEST_CASE("generic addresses reach every space") {
  const Run r = run(kernel(R"(
  .shared .align 4 .b8 area[128];
  .local .align 4 .b8 stack[8];
  mov.u64 %d1, area; cvta.shared.u64 %d1, %d1;
  mov.u64 %d2, stack; cvta.local.u64 %d2, %d2;
  mul.wide.u32 %d3, %lane, 4; add.u64 %d1, %d1, %d3;
  st.u32 [%d1], %lane;
  add.u32 %r1, %lane, 100; st.u32 [%d2+4], %r1;
  cvt.u32.u64 %r2, %d1; ld.shared.u32 %r3, [%r2];
  ld.local.u32 %r4, [stack+4];
  // Half of the lanes read shared, half local memory with one instruction.
  setp.lt.u32 %p1, %lane, 16; add.u64 %d2, %d2, 4; selp.b64 %d4, %d1, %d2, %p1;
  ld.u32 %r5, [%d4];
  isspacep.shared %p2, %d4; selp.b32 %r6, 1, 0, %p2;
  st.global.v4.b32 [%out], {%r3, %r4, %r5, %r6};)"));
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(7, 0) == 7);
  CHECK(r.at<uint32_t>(7, 1) == 107);
  CHECK(r.at<uint32_t>(7, 2) == 7);
  CHECK(r.at<uint32_t>(7, 3) == 1);
  CHECK(r.at<uint32_t>(20, 2) == 120);
  CHECK(r.at<uint32_t>(20, 3) == 0);
}

TEST_CASE("isspacep knows the windows, and the one that lies in another") {
  std::string body = R"(
  .shared .align 4 .b8 area[128];
  .local .align 4 .b8 stack[8];
  mov.u64 %d1, area; cvta.shared::cta.u64 %d1, %d1;
  mov.u64 %d2, stack; cvta.local.u64 %d2, %d2;
  mov.u64 %d3, buffer; cvta.param::entry.u64 %d3, %d3;
  mov.u32 %r1, 0;
)";
  int bit = 0;
  for (const char* space :
       {"global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"}) {
    for (const char* address : {"%base", "%d1", "%d2", "%d3"}) {
      body += "  isspacep." + std::string(space) + " %p1, " + address +
              ";\n  @%p1 or.b32 %r1, %r1, " + std::to_string(1u << bit++) + ";\n";
    }
  }
  body +=
      "  cvta.to.shared::cta.u64 %d4, %d1; mov.u64 %d5, area; setp.ne.u64 %p2, %d4, %d5;\n"
      "  @%p2 trap;\n  st.global.b32 [%out], %r1;";
  const Run r = run(kernel(body, "sm_90"));
  if (r.result.fault) FAIL(r.result.fault->format());
  // From the low bits: global, shared three times, local, param twice; a bit for each address.
  CHECK(r.at<uint32_t>(0) == 0b1000'1000'0100'0010'0010'0010'1001);
}

TEST_CASE("module variables") {
  const Run r = run(kernel(
      R"(
  mov.u64 %d1, table; ld.const.u32 %r1, [table+4];
  ld.global.u32 %r2, [counter];
  ld.global.u64 %d2, [pointer]; ld.global.u32 %r3, [%d2];
  atom.global.add.u32 %r4, [counter], 1;
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};)",
      "sm_80",
      ".const .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 1};\n"
      ".global .align 8 .u64 pointer = generic(counter);\n.global .align 4 .u32 counter = 7;\n"));
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(0, 0) == 258);
  CHECK(r.at<uint32_t>(0, 1) == 7);
  CHECK(r.at<uint32_t>(0, 2) == 7);
  CHECK(r.at<uint32_t>(31, 3) == 38);
}

TEST_CASE("atomics") {
  const Run r = run(kernel(R"(
  .shared .align 8 .b8 area[32];
  setp.eq.u32 %p1, %lane, 0;
  @%p1 st.shared.u32 [area], 0;
  @%p1 st.shared.u32 [area+4], 10;
  @%p1 st.shared.f32 [area+8], 0f00000000;
  bar.sync 0;
  red.shared.add.u32 [area], %lane;
  atom.shared.max.s32 %r1, [area+4], %lane;
  atom.shared.add.f32 %f1, [area+8], 0f3F000000;
  bar.sync 0;
  ld.shared.u32 %r2, [area]; ld.shared.u32 %r3, [area+4]; ld.shared.f32 %f2, [area+8];
  atom.shared.cas.b32 %r4, [area], 496, 5;
  st.global.v4.b32 [%out], {%r2, %r3, %f2, %r4};)"));
  REQUIRE(!r.result.fault);
  CHECK(r.at<uint32_t>(3, 0) == 496);
  CHECK(r.at<uint32_t>(3, 1) == 31);
  CHECK(r.at<float>(3, 2) == 16.0f);
  CHECK(r.at<uint32_t>(0, 3) == 496);
  CHECK(r.at<uint32_t>(1, 3) == 5);
}

TEST_CASE("inc and dec wrap at their bound") {
  const Run r = run(kernel(R"(
  atom.global.inc.u32 %r1, [%base+1024], 4;
  atom.global.dec.u32 %r2, [%base+1028], 2;
  st.global.v2.b32 [%out], {%r1, %r2};)"));
  CHECK(r.at<uint32_t>(6, 0) == 1);
  CHECK(r.at<uint32_t>(0, 1) == 0);
  CHECK(r.at<uint32_t>(1, 1) == 2);
  CHECK(r.at<uint32_t>(4, 1) == 2);
}

TEST_CASE("red zones before a buffer, and where there is none") {
  const Module m = Module::parse(kernel("  ld.global.u32 %r1, [%base+-4];"), "k.ptx");
  Memory memory;
  LaunchConfig config;
  config.block = {32, 1, 1};
  memory.allocate("first", 64);
  config.arguments = {Argument::pointer(memory.allocate("second", 64))};
  const auto stopped = [&] { return fault(launch(m, "k", config, memory), m.kernel("k")); };
  CHECK(stopped() == "out of bounds 18 warp 0 lane 0");
  config.arguments = {Argument::pointer(0)};
  CHECK(stopped() == "out of bounds 18 warp 0 lane 0");
}

TEST_CASE("buffers are 256-byte aligned, poisoned, and can be released") {
  Memory memory;
  const Address a = memory.allocate("a", 3), b = memory.allocate("b", 100, Fill::kZero);
  CHECK(a % 256 == 0);
  CHECK(memory.bytes("a")[2] == std::byte{0xff});
  CHECK(memory.bytes(b)[99] == std::byte{0});
  CHECK(memory.find(a + 1)->name == "a");
  CHECK_THROWS_AS(memory.allocate("a", 1), Error);
  const std::array bytes{std::byte{1}, std::byte{2}};
  const Address part = memory.upload("part", bytes, 20);
  CHECK(part % 256 == 20);
  CHECK(std::ranges::equal(memory.bytes(part), bytes));
  memory.release(a);
  CHECK_THROWS_AS(memory.bytes("a"), Error);
}

TEST_CASE("the host reaches mapped buffers at the same address, and no others") {
  Memory memory;
  const Address a = memory.map("a", 64), b = memory.map("b", 64);
  CHECK(memory.find(a + 63)->host == reinterpret_cast<std::byte*>(a));
  CHECK(memory.find(b)->name == "b");
  std::memset(reinterpret_cast<void*>(a), 7, 64);
  CHECK(memory.bytes(a)[63] == std::byte{7});
  CHECK(memory.allocate("device", 64) >> 47 != 0);  // no address of a process
  memory.release(a);
  CHECK_THROWS_AS(memory.bytes(a), Error);
  CHECK(memory.map("c", 64) == a);
  CHECK(memory.bytes(a)[63] == std::byte{0});
}

TEST_CASE("shared memory and registers start as NaN") {
  const Run r = run(kernel(R"(
  .shared .align 4 .b8 area[128];
  ld.shared.u32 %r1, [area]; st.global.v2.b32 [%out], {%r1, %r9};)"));
  CHECK(r.at<uint32_t>(0, 0) == 0xffffffff);
  CHECK(r.at<uint32_t>(0, 1) == 0xffffffff);
}

TEST_CASE("tensor maps survive their encoding") {
  TensorMap map;
  map.base = 4096;
  map.rank = 3;
  map.dims = {128, 1000, 32, 1, 1};
  map.strides = {2, 256, 256000, 0, 0};
  map.box = {64, 128, 1, 1, 1};
  map.swizzle = Swizzle::k128B;
  const auto bytes = encode(map);
  const auto back = decode_tensor_map(bytes);
  REQUIRE(back);
  CHECK(back->dims[1] == 1000);
  CHECK(back->strides[2] == 256000);
  CHECK(back->box[0] == 64);
  CHECK(back->swizzle == Swizzle::k128B);
  map.box[0] = 128;
  CHECK_THROWS_AS(encode(map), Error);
  CHECK(!decode_tensor_map(std::array<std::byte, 128>{}));
}

TEST_CASE("copies of structs read padding, and functions their parameters, without a finding") {
  const std::string padded = R"(
  .local .align 8 .b8 stack[32];
  mov.u64 %d1, stack; cvta.local.u64 %d1, %d1;
  st.u32 [%d1], %lane;
  ld.u64 %d2, [%d1];
  ld.u8 %h1, [%d1+7];
  ld.u32 %r1, [%d1+LATER];
  st.global.b64 [%out], %d2;
  st.global.b32 [%out+8], %r1;)";
  for (const bool unwritten : {false, true}) {
    std::string body = padded;
    body.replace(body.find("LATER"), 5, unwritten ? "8" : "0");
    CHECK(run_checked(kernel(body)).found == (unwritten ? "uninitialised 24\n" : ""));
  }
  const std::string function = R"(
.func (.param .b32 result) second(.param .align 8 .b8 given[16])
{
  .reg .b64 %d<3>; .reg .b32 %r<3>;
  mov.b64 %d1, given; cvta.local.u64 %d2, %d1;
  ld.u32 %r1, [%d2+8];
  st.param.b32 [result], %r1;
  ret;
}
)";
  const Run r = run_checked(kernel(R"(
  {
    .param .align 8 .b8 given[16];
    .param .b32 result;
    mov.b64 %d1, 5; mov.b64 %d2, 7;
    st.param.b64 [given], %d1; st.param.b64 [given+8], %d2;
    call (result), second, (given);
    ld.param.b32 %r1, [result];
  }
  st.global.b32 [%out], %r1;)",
                                   "sm_80", function));
  if (r.result.fault) FAIL(r.result.fault->format());
  CHECK(r.found == "");
  CHECK(r.at<uint32_t>(3) == 7);
  CHECK(name(AccessKind::kPassed) == "passed");
}

TEST_CASE("a function's parameters by their address, as LLVM passes structs") {
  const std::string function = R"(
.func (.param .align 8 .b8 result[16]) turned(.param .align 8 .b8 given[16])
{
  .reg .b64 %d<4>; .reg .f64 %g<3>;
  mov.b64 %d1, given; mov.b64 %d2, %d1; mov.b64 %d3, result;
  ld.param.f64 %g1, [%d2]; ld.param.f64 %g2, [%d2+8];
  st.param.f64 [%d3+8], %g1; st.param.f64 [%d3], %g2;
  ret;
}
)";
  const Run r = run(kernel(R"(
  cvt.rn.f64.u32 %g1, %lane; mov.f64 %g2, 0d3FF8000000000000;
  {
    .param .align 8 .b8 given[16];
    .param .align 8 .b8 result[16];
    st.param.f64 [given], %g1; st.param.f64 [given+8], %g2;
    call (result), turned, (given);
    ld.param.f64 %g3, [result]; ld.param.f64 %g4, [result+8];
  }
  st.global.v2.f64 [%out], {%g3, %g4};)",
                           "sm_80", function));
  if (r.result.fault) FAIL(r.result.fault->format());
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(r.at<double>(lane, 0) == 1.5);
    CHECK(r.at<double>(lane, 1) == lane);
  }
}

TEST_CASE("modules that were compiled apart run as one text") {
  const std::string uses = R"(
.extern .func (.param .b32 result) scaled(.param .b32 x);
.extern .const .align 4 .b8 weights[8];
.extern .global .align 4 .u32 counter;
.extern .shared .align 16 .b8 dynamic[];
.weak .global .align 4 .u32 either = 5;
.weak .func (.param .b32 result) one() { .reg .b32 %r; mov.u32 %r, 1; st.param.b32 [result], %r; ret; }
)";
  const std::string defines = R"(
.visible .const .align 4 .b8 weights[8] = {7, 0, 0, 0, 9, 0, 0, 0};
.visible .global .align 4 .u32 counter = 100;
.extern .shared .align 16 .b8 dynamic[];
.weak .global .align 4 .u32 either = 5;
.weak .func (.param .b32 result) one() { .reg .b32 %r; mov.u32 %r, 1; st.param.b32 [result], %r; ret; }
.visible .func (.param .b32 result) scaled(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x]; mul.lo.u32 %r2, %r1, 10; st.param.b32 [result], %r2;
  ret;
}
)";
  const std::string head = ".version 9.0\n.target sm_80\n.address_size 64\n";
  const std::string body = R"(
  ld.const.u32 %r1, [weights+4]; ld.global.u32 %r2, [counter]; ld.global.u32 %r3, [either];
  {
    .param .b32 x; .param .b32 result;
    st.param.b32 [x], %lane;
    call (result), scaled, (x);
    ld.param.b32 %r4, [result];
  }
  {
    .param .b32 result;
    call (result), one, ();
    ld.param.b32 %r5, [result];
  }
  add.u32 %r4, %r4, %r5;
  st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};)";
  for (const bool first : {false, true}) {
    const std::string user = kernel(body, "sm_80", uses), other = head + defines;
    const Run r = run(first ? user + other : other + user);
    if (r.result.fault) FAIL(r.result.fault->format());
    CHECK(r.at<uint32_t>(4, 0) == 9);
    CHECK(r.at<uint32_t>(4, 1) == 100);
    CHECK(r.at<uint32_t>(4, 2) == 5);
    CHECK(r.at<uint32_t>(4, 3) == 41);
  }
  const std::string twice = ".visible .global .align 4 .u32 counter = 1;\n";
  CHECK_THROWS(run(kernel("", "sm_80", twice) + head + twice));
}

TEST_CASE("modules in one text name the files of their own") {
  std::string text;
  for (const char* name : {"first", "second"}) {
    text += ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry " + std::string(name) +
            "()\n{\n  .loc 1 7 3\n  trap;\n  ret;\n}\n.file 1 \"/a/" + name + ".cu\"\n";
  }
  const Module module = Module::parse(text, "both.ptx");
  for (const char* name : {"first", "second"}) {
    Memory memory;
    const LaunchResult r = launch(module, name, {}, memory);
    const Kernel& kernel = module.kernel(name);
    CHECK_THAT(fault(r, kernel), Catch::StartsWith("trap "));
    REQUIRE(r.fault);
    const auto chain = kernel.source(r.fault->instruction.value());
    REQUIRE(chain.size() == 1);
    CHECK(chain[0] == SourceLocation{"/a/" + std::string(name) + ".cu", 7, 3});
  }
}

TEST_CASE("256 bits are loaded and stored at once, in global memory") {
  const std::string body = R"(
  .reg .b32 %w<8>; .reg .b64 %q<4>; mul.wide.u32 %d0, %lane, 32; add.u64 %d0, %d0, %base;
  mov.b32 %w0, %lane; mov.b32 %w7, 7; add.u32 %w1, %lane, 1; mov.b32 %w2, 2; mov.b32 %w3, 3;
  mov.b32 %w4, 4; mov.b32 %w5, 5; mov.b32 %w6, 6;
  st.global.v8.b32 [%d0+8192], {%w7, %w6, %w5, %w4, %w3, %w2, %w1, %w0};
  ld.global.v4.b64 {%q0, %q1, %q2, %q3}, [%d0+8192];
  st.v4.b64 [%d0+16384], {%q3, %q2, %q1, %q0};
  ld.relaxed.gpu.global.v8.u32 {%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}, [%d0+16384];
  st.global.v4.b32 [%out], {%w0, %w1, %w6, %w7};)";
  const Run r = run(kernel(body, "sm_100"));
  REQUIRE(r.fault.empty());
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(r.at<int>(lane, 0) == lane + 1);
    CHECK(r.at<int>(lane, 1) == lane);
    CHECK(r.at<int>(lane, 2) == 7);
    CHECK(r.at<int>(lane, 3) == 6);
  }
  const auto stopped = [](const std::string& access) {
    return run(kernel(std::string(kArea) + ".reg .b32 %w<8>;\ncvta.shared.u64 %d1, %d0;\n" + access,
                      "sm_100"))
        .fault;
  };
  const std::string all = " {%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}";
  CHECK(stopped("add.u64 %d1, %base, 16; ld.v8.b32" + all + ", [%d1];").substr(0, 10) ==
        "misaligned");
  CHECK(stopped("mov.u64 %d0, area; cvta.shared.u64 %d1, %d0; ld.v8.b32" + all + ", [%d1];")
            .substr(0, 7) == "invalid");
}

TEST_CASE("a generic address in an instruction of .shared") {
  const Run r = run(kernel(R"(
  .shared .align 8 .b8 area[128];
  mov.u64 %d1, area; cvta.shared.u64 %d1, %d1; mul.wide.u32 %d3, %lane, 4; add.u64 %d1, %d1, %d3;
  st.shared.u32 [%d1], %lane;
  ld.shared::cluster.u32 %r1, [%d1];
  st.global.b32 [%out], %r1;)",
                           "sm_90"));
  CHECK(r.fault == "");
  CHECK(r.at<uint32_t>(7) == 7);
  Races races;
  CHECK(run(kernel(R"(
  .shared .align 8 .b8 area[128];
  mov.u64 %d1, area; cvta.shared.u64 %d1, %d1; mul.wide.u32 %d3, %lane, 4; add.u64 %d1, %d1, %d3;
  st.shared.u32 [%d1], %lane;)"),
            {}, 32, 0, {.observers = {&races}})
            .found.starts_with("address (advice) "));
  CHECK(run(kernel("  mov.u64 %d1, 0x20000000000; st.shared.u32 [%d1], 0;")).fault != "");
}
