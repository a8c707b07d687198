// SPDX-License-Identifier: MIT
#include <cmath>
#include <random>

#include "catch.h"
#include "num/half.h"
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

uint32_t pair(int low, int high) {
  return static_cast<uint32_t>(low | high << 16);
}

}  // namespace

TEST_CASE("ldmatrix gives lane l row l/4, columns 2(l%4) and the next") {
  const Run r = run(matrices(R"(
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r1];
  st.global.v4.b32 [%out], {%r3, %r4, %r5, %r6};)"),
                    elements());
  REQUIRE(!r.result.fault);
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      const int e = m * 64 + lane / 4 * 8 + lane % 4 * 2;
      CHECK(r.at<uint32_t>(lane, m) == pair(e, e + 1));
    }
  }
}

TEST_CASE("ldmatrix.trans gives the transposed matrix") {
  const Run r = run(matrices(R"(
  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r3, %r4}, [%r1];
  movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r3;
  ldmatrix.sync.aligned.m8n8.x1.b16 {%r6}, [%d1];
  st.global.v4.b32 [%out], {%r3, %r4, %r5, %r6};)"),
                    elements());
  REQUIRE(r.result.fault);  // %d1 is poison
  const Run g = run(matrices(R"(
  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r3, %r4}, [%r1];
  movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r3;
  cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1;
  ldmatrix.sync.aligned.m8n8.x1.b16 {%r6}, [%d1];
  st.global.v4.b32 [%out], {%r3, %r4, %r5, %r6};)"),
                    elements());
  REQUIRE(!g.result.fault);
  for (int lane = 0; lane < 32; ++lane) {
    const int row = lane / 4, column = lane % 4 * 2;
    CHECK(g.at<uint32_t>(lane, 1) == pair(64 + column * 8 + row, 64 + (column + 1) * 8 + row));
    CHECK(g.at<uint32_t>(lane, 2) == pair(row * 8 + column, row * 8 + column + 1));
    CHECK(g.at<uint32_t>(lane, 3) == pair(row * 8 + column, row * 8 + column + 1));
  }
}

TEST_CASE("stmatrix is the inverse of ldmatrix") {
  for (std::string trans : {"", ".trans"}) {
    const Run r = run(matrices("  ldmatrix.sync.aligned.m8n8.x4" + trans +
                               R"(.shared.b16 {%r3, %r4, %r5, %r6}, [%r1];
  stmatrix.sync.aligned.m8n8.x4)" +
                               trans + R"(.shared.b16 [%r1+512], {%r3, %r4, %r5, %r6};
  bar.warp.sync -1;
  ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r1+512];
  st.global.v4.b32 [%out], {%r3, %r4, %r5, %r6};)"),
                      elements());
    REQUIRE(!r.result.fault);
    for (int lane = 0; lane < 32; ++lane) {
      for (int w = 0; w < 4; ++w)
        CHECK(r.at<uint32_t>(lane, w) == pair(lane * 8 + w * 2, lane * 8 + w * 2 + 1));
    }
  }
}

TEST_CASE("mma multiplies the matrices that the fragments hold") {
  std::mt19937 rng(3);
  for (bool bfloat : {false, true}) {
    for (int k : {8, 16}) {
      float a[16][16], b[16][8], c[16][8];
      auto small = [&] { return static_cast<float>(static_cast<int>(rng() % 17) - 8); };
      for (auto& row : a)
        for (float& x : row) x = small();
      for (auto& row : b)
        for (float& x : row) x = small();
      for (auto& row : c)
        for (float& x : row) x = small();
      auto narrow = [&](float x) -> uint32_t {
        return bfloat ? num::float_to_bfloat(x) : num::float_to_half(x);
      };
      auto two = [&](float lo, float hi) { return narrow(lo) | narrow(hi) << 16; };
      // 64 bytes a lane: a0..a3, b0, b1, c0..c3
      std::vector<std::byte> in(32 * 64);
      for (int lane = 0; lane < 32; ++lane) {
        const int g = lane / 4, t = lane % 4 * 2;
        uint32_t w[16] = {};
        for (int half = 0; half < k / 8; ++half) {
          w[half * 2] = two(a[g][half * 8 + t], a[g][half * 8 + t + 1]);
          w[half * 2 + 1] = two(a[g + 8][half * 8 + t], a[g + 8][half * 8 + t + 1]);
          w[4 + half] = two(b[half * 8 + t][g], b[half * 8 + t + 1][g]);
        }
        w[8] = std::bit_cast<uint32_t>(c[g][t]);
        w[9] = std::bit_cast<uint32_t>(c[g][t + 1]);
        w[10] = std::bit_cast<uint32_t>(c[g + 8][t]);
        w[11] = std::bit_cast<uint32_t>(c[g + 8][t + 1]);
        std::memcpy(&in[static_cast<size_t>(lane) * 64], w, 64);
      }
      const std::string type = bfloat ? "bf16" : "f16";
      const std::string load = R"(
  mad.wide.u32 %d1, %lane, 64, %base;
  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d1+65536]; ld.global.v2.b32 {%r4, %r5}, [%d1+65552];
  ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d1+65568];
)";
      const std::string mma =
          k == 16 ? "mma.sync.aligned.m16n8k16.row.col.f32." + type + "." + type +
                        ".f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, "
                        "%f2, %f3};"
                  : "mma.sync.aligned.m16n8k8.row.col.f32." + type + "." + type +
                        ".f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r4}, {%f0, %f1, %f2, %f3};";
      for (bool portable : {false, true}) {
        Options options;
        options.portable_math = portable;
        const Run r = run(kernel(load + mma + "\n  st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};"),
                          in, 32, 0, options);
        REQUIRE(!r.result.fault);
        for (int lane = 0; lane < 32; ++lane) {
          for (int i = 0; i < 4; ++i) {
            const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            float sum = c[row][column];
            for (int kk = 0; kk < k; ++kk) sum += a[row][kk] * b[kk][column];
            REQUIRE(r.at<float>(lane, i) == sum);
          }
        }
        CHECK(r.counts.total.of(CountClass::kTensor) == 1);
      }
      if (bfloat || k != 16) continue;
      const Run h = run(kernel(load + R"(
  cvt.rn.f16x2.f32 %r6, %f1, %f0; cvt.rn.f16x2.f32 %r7, %f3, %f2;
  mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r6, %r7}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r6, %r7};
  st.global.v2.b32 [%out], {%r6, %r7};)"),
                        in);
      REQUIRE(!h.result.fault);
      float sum = c[0][0];
      for (int kk = 0; kk < 16; ++kk) sum += a[0][kk] * b[kk][0];
      CHECK(num::half_to_float(static_cast<uint16_t>(h.at<uint32_t>(0))) == sum);
    }
  }
}

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
