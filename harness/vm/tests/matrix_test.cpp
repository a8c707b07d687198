// SPDX-License-Identifier: MIT
#include "catch.h"
#include "ptxvm/races.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

// Four 8x8 matrices in shared memory, element (m, r, c) = m * 64 + r * 8 + c, 16 bytes a row.
std::string matrices(const std::string& then) {
  return kernel(R"(
  .shared .align 16 .b8 area[1024];
  shl.b32 %r1, %lane, 4; mov.u32 %r2, area; add.u32 %r1, %r1, %r2;
  cp.async.cg.shared.global [%r1], [%in], 16; cp.async.wait_all;
  bar.warp.sync -1;
)" + then,
                "sm_90");
}

std::vector<std::byte> elements() {
  std::vector<std::byte> in(512);
  for (uint16_t i = 0; i < 256; ++i) std::memcpy(&in[i * 2u], &i, 2);
  return in;
}

}  // namespace

TEST_CASE("constants among the registers of a matrix") {
  // %r8, %s8, %f8 and %g6 hold what the constants say.
  const std::string load = R"(
  .reg .s32 %s<9>;
  mad.lo.u32 %r0, %lane, 0x01000301, 0x3c003800; mad.lo.u32 %r1, %lane, 0x00100010, 0x3a003c40;
  mov.b32 %r8, 0x3c00; mov.s32 %s8, -7; mov.f32 %f8, 0f3FC00000; mov.f64 %g6, 0d4004000000000000;
  cvt.rn.f32.u32 %f0, %lane; mov.s32 %s0, %lane; cvt.rn.f64.u32 %g0, %lane;
)";
  struct Pair {
    std::string in_registers, constant;
  };
  const std::string mma = "mma.sync.aligned.", f32 = " {%f4, %f5, %f6, %f7}, ";
  const std::string out_f32 = "  st.global.v4.f32 [%out], {%f4, %f5, %f6, %f7};";
  const std::string out_b32 = "  st.global.v2.b32 [%out], {%r4, %r5};";
  const auto same = [&](const std::string& opcode, const Pair& operands, const std::string& out) {
    INFO(opcode);
    std::vector<std::byte> results[2];
    for (const bool constant : {false, true}) {
      Races races;
      Options options;
      options.observers = {&races};
      const Run r =
          run(kernel(load + "  " + opcode + (constant ? operands.constant : operands.in_registers) +
                         ";\n" + out,
                     "sm_90"),
              {}, 32, 0, options);
      if (r.result.fault) FAIL(r.result.fault->format());
      CHECK(races.findings().empty());
      results[constant ? 1 : 0].assign(r.out.begin(), r.out.begin() + 512);
    }
    CHECK(results[0] == results[1]);
    CHECK(results[0] != std::vector<std::byte>(512));
  };
  same(mma + "m16n8k16.row.col.f32.f16.f16.f32" + f32,
       {"{%r0, %r8, %r1, %r8}, {%r8, %r1}, {%f0, %f8, %f0, %f8}",
        "{%r0, 0x3c00, %r1, 15360}, {0x3c00, %r1}, {%f0, 1.5, %f0, 0f3FC00000}"},
       out_f32);
  same(mma + "m16n8k16.row.col.f32.f16.f16.f32" + f32,
       {"{%r0, %r1, %r1, %r0}, {%r0, %r1}, {%f8, %f8, %f8, %f8}",
        "{%r0, %r1, %r1, %r0}, {%r0, %r1}, {0f3FC00000, 0f3FC00000, 0f3FC00000, 0f3FC00000}"},
       out_f32);
  same(mma + "m16n8k8.row.col.f32.tf32.tf32.f32" + f32,
       {"{%r0, %r8, %r1, %r8}, {%r8, %r1}, {%f0, %f8, %f0, %f8}",
        "{%r0, 0x3c00, %r1, 0x3c00}, {0x3c00, %r1}, {%f0, 1.5, %f0, 1.5}"},
       out_f32);
  same(mma + "m16n8k32.row.col.s32.s8.s8.s32 {%r4, %r5, %r6, %r7}, ",
       {"{%r0, %r8, %r1, %r8}, {%r8, %r1}, {%s0, %s8, %s0, %s8}",
        "{%r0, 0x3c00, %r1, 0x3c00}, {0x3c00, %r1}, {%s0, -7, %s0, -7}"},
       out_b32);
  same(mma + "m16n8k16.row.col.f16.f16.f16.f16 {%r4, %r5}, ",
       {"{%r0, %r8, %r1, %r8}, {%r8, %r1}, {%r0, %r8}",
        "{%r0, 0x3c00, %r1, 0x3c00}, {0x3c00, %r1}, {%r0, 0x3c00}"},
       out_b32);
  same(mma + "m8n8k4.row.col.f64.f64.f64.f64 {%g4, %g5}, ",
       {"{%g0}, {%g6}, {%g0, %g6}", "{%g0}, {2.5}, {%g0, 2.5}"},
       "  st.global.v2.f64 [%out], {%g4, %g5};");
  same(
      "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32 {%f4, %f5, %f6, %f7, %f9, %f10, "
      "%f11, %f12}, ",
      {"{%r0, %r8, %r1, %r8}, {%r8, %r1, %r0, %r8}, {%f0, %f8, %f0, %f8, %f0, %f8, %f0, %f8}",
       "{%r0, 0x3c00, %r1, 0x3c00}, {0x3c00, %r1, %r0, 0x3c00}, {%f0, 1.5, %f0, 1.5, %f0, 1.5, "
       "%f0, 1.5}"},
      out_f32);
  same(
      ".shared .align 16 .b8 tile[512]; mov.u32 %r2, tile; mad.lo.u32 %r3, %lane, 16, %r2;\n"
      "  stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3], ",
      {"{%r8, %r0, %r8, %r1}", "{0x3c00, %r0, 0x3c00, %r1}"},
      "  bar.warp.sync -1; ld.shared.v2.b32 {%r4, %r5}, [%r3];\n" + out_b32);
  for (const char* bad : {"{0, 0, 0, 0}, {%r0, %r1}, {%f0, %f0, %f0, %f0}",
                          "{%r0, %r0, %r0, %r0}, {0, 0}, {%f0, %f0, %f0, %f0}",
                          "{%r0, %r0, %r0, %r0}, {%r0, %r1}, {%f0, %f0, %f0, 0}"}) {
    INFO(bad);
    CHECK_THROWS_AS(
        run(kernel("  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + f32 + bad + ";")),
        Error);
  }
}

TEST_CASE("matrix instructions need all lanes and rows of 16 aligned bytes") {
  const Run part =
      run(kernel("  setp.lt.u32 %p1, %lane, 16;\n  @%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 "
                 "{%r1}, [%r2];"));
  REQUIRE(part.result.fault);
  CHECK(part.result.fault->kind == FaultKind::kDivergence);
  const Run off =
      run(matrices("  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r1+8];"),
          elements());
  REQUIRE(off.result.fault);
  CHECK(off.result.fault->kind == FaultKind::kMisaligned);
}
