// SPDX-License-Identifier: MIT
// Spellings that ptxas takes and compilers write, each run on the machine.
#include "catch.h"
#include "isa/decode.h"
#include "run_ptx.h"

using namespace ptxvm_test;

namespace {

// The first word that lane 3 leaves in %r1.
uint32_t word(const std::string& body, const std::string& target = "sm_90",
              const std::string& before = "") {
  const Run r = run(kernel(body + "\n  st.global.u32 [%out], %r1;", target, before));
  REQUIRE(!r.result.fault);
  return r.at<uint32_t>(3);
}

}  // namespace

TEST_CASE("a vector of one in loads and stores, as Triton writes it") {
  CHECK(word("  mov.u32 %r2, 7; st.global.b32 [ %out + 4 ], { %r2 };\n"
             "  ld.global.b32 { %r1 }, [ %out + 4 ];") == 7);
  CHECK_THROWS_AS(word("  mov.u32 { %r1, %r1 }, 5;"), Error);
  CHECK_THROWS_AS(word("  add.u32 { %r1 }, %r1, 5;"), Error);
}

TEST_CASE("vector registers") {
  const std::string declare =
      "  .reg .v2 .f32 mx; .reg .v4 .b32 %q<3>; .reg .v2 .b64 %w; .reg .v2 .b32 u;\n"
      "  mov.b32 %r2, 0x40000000; st.global.v4.b32 [%in], {%lane, %r2, 3, 4};\n";
  const auto result = [&](const std::string& body) { return word(declare + body); };
  // Elements by both sets of letters; each is a register of its own.
  CHECK(result("  mov.f32 mx.x, 1.0; mov.f32 mx.y, 2.0; add.f32 mx.r, mx.x, mx.g;\n"
               "  mov.b32 %r1, mx.x;") == 0x40400000);
  CHECK(result("  mov.b32 %q1.w, 7; mov.b32 %q2.w, 8; mov.b32 %q1.z, 9; mov.b32 %r1, %q1.a;") == 7);
  // A whole one in loads, stores, packing and moves.
  CHECK(result("  ld.global.v4.b32 %q1, [%in]; add.u32 %r1, %q1.x, %q1.w;") == 7);
  CHECK(result("  ld.global.v4.b32 %q0, [%in]; mov.b32 %q0.y, 5; st.global.v4.b32 [%in], %q0;\n"
               "  ld.global.b32 %r1, [%in+4];") == 5);
  CHECK(result("  ld.global.v2.f32 {mx.y, mx.x}, [%in]; mov.b64 %d1, mx; shr.u64 %d1, %d1, 32;\n"
               "  cvt.u32.u64 %r1, %d1;") == 3);
  CHECK(result("  mov.b64 u, 0x900000008; mov.v2.b32 u, {u.y, u.x}; mov.b32 %r1, u.x;") == 9);
  CHECK(result("  ld.global.v4.b32 %q0, [%in]; mov.v4.u32 {%r4, %r5, %r6, %r1}, %q0;") == 4);
  CHECK(result("  mov.v2.b64 %w, {%base, 6}; cvt.u32.u64 %r1, %w.y;") == 6);
  CHECK(result("  .shared .align 16 .b8 tile[512]; mov.u32 %r2, tile;\n"
               "  mad.lo.u32 %r3, %lane, 16, %r2; mov.b32 u.x, %lane; mov.b32 u.y, 1;\n"
               "  stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r3], u; bar.warp.sync -1;\n"
               "  ldmatrix.sync.aligned.m8n8.x2.shared.b16 u, [%r3]; mov.b32 %r1, u.x;") == 3);
  // A name of an inner scope hides the vector.
  CHECK(result("  mov.f32 mx.x, 1.0; { .reg .b32 mx; mov.b32 mx, 4; mov.b32 %r1, mx; }") == 4);
  for (const char* bad :
       {"mov.f32 mx.z, 1.0;", "mov.b32 %q1.v, 1;", "mov.b32 %q3.x, 1;", "add.f32 mx, mx, mx;",
        "mov.f32 mx, mx;", "ld.global.v4.f32 mx, [%in];", "ld.global.b32 %r1, [%w.x];",
        "mov.f32 %f1.x, 1.0;", "ld.global.v2.f32 {mx, mx}, [%in];", ".reg .v2 .pred pp;",
        ".reg .v4 .b64 big;", ".reg .v2 .b128 big;"}) {
    INFO(bad);
    CHECK_THROWS_AS(result("  " + std::string(bad)), Error);
  }
}

TEST_CASE("modifiers in another order") {
  CHECK(word("  setp.lt.u32 %p1, %lane, 4; vote.ballot.sync.b32 %r1, %p1, -1;") == 15);
  CHECK(word("  .shared .align 16 .b8 tile[512]; mov.u32 %r2, tile;\n"
             "  mad.lo.u32 %r3, %lane, 16, %r2; st.shared.u32 [%r3], %lane;\n"
             "  bar.warp.sync -1;\n"
             "  ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%r1, %r4, %r5, %r6}, [%r3];\n"
             "  stmatrix.sync.aligned.x4.m8n8.shared.b16 [%r3], {%r1, %r4, %r5, %r6};\n"
             "  ldmatrix.sync.aligned.x1.trans.m8n8.shared.b16 {%r7}, [%r3];\n"
             "  ld.shared.u32 %r1, [%r3];") == 3);
  CHECK(word("  mov.f32 %f1, 0f3F800000; fma.ftz.rn.f32 %f2, %f1, %f1, %f1; mov.b32 %r1, %f2;") ==
        0x40000000);
  // So do those of tcgen05 and of tensor copies, behind their names; spaces stay.
  const auto same = [](const char* one, const char* other) {
    const isa::Spelling* found = isa::decode(one).spelling;
    return found && found == isa::decode(other).spelling;
  };
  CHECK(same("tcgen05.cp.cta_group::1.32x128b.warpx4", "tcgen05.cp.cta_group::1.warpx4.32x128b"));
  CHECK(same("tcgen05.ld.sync.aligned.32x32b.x8.pack::16b.b32",
             "tcgen05.ld.sync.aligned.32x32b.pack::16b.x8.b32"));
  const std::string load = "cp.async.bulk.tensor.5d.shared::cluster.global.tile";
  const std::string bytes = ".mbarrier::complete_tx::bytes";
  CHECK(same((load + bytes + ".multicast::cluster.cta_group::2").c_str(),
             (load + bytes + ".cta_group::2.multicast::cluster").c_str()));
  CHECK(isa::decode("cp.async.bulk.tensor.2d.global.shared::cluster" + bytes).spelling == nullptr);
  CHECK(isa::decode("tcgen05.cta_group::1.cp.32x128b.warpx4").spelling == nullptr);
  // Types keep their order: the first is the result's.
  CHECK(word("  mov.b16 %h1, 0x3c00; cvt.f32.f16 %f1, %h1; mov.b32 %r1, %f1;") == 0x3f800000);
}

TEST_CASE("accesses of 32 bytes say what the second level keeps") {
  const auto known = [](const char* text) { return isa::decode(text).spelling != nullptr; };
  CHECK(known("ld.global.nc.L1::evict_normal.L2::evict_normal.L2::256B.v8.s32"));
  CHECK(known("ld.global.L1::no_allocate.L2::evict_first.L2::128B.v4.u64"));
  CHECK(known("st.global.L1::evict_first.L2::evict_last.v4.u64"));
  CHECK(isa::decode("st.global.L2::evict_last.v8.b32").sm == 100);
  for (const char* bad : {"ld.global.L2::evict_last.v4.u32", "ld.global.L2::evict_last.b64",
                          "ld.global.L2::evict_unchanged.v8.b32",
                          "ld.global.L2::evict_first.L2::evict_last.v8.b32"}) {
    INFO(bad);
    CHECK(!known(bad));
  }
}

TEST_CASE("constants in packing, and WARP_SZ") {
  CHECK(word("  mov.b16 %h1, 0x3f80; mov.b32 %f1, {0, %h1}; mov.b32 %r1, %f1;") == 0x3f800000);
  CHECK(word("  mov.b64 %d1, {1, 2}; shr.u64 %d1, %d1, 32; cvt.u32.u64 %r1, %d1;") == 2);
  CHECK(word("  mov.u32 %r1, WARP_SZ;") == 32);
  CHECK(word("  mad.lo.u32 %r1, %lane, WARP_SZ, WARP_SZ;") == 128);
}

TEST_CASE("all orders and scopes of atom and red") {
  for (const char* order : {"", ".relaxed", ".acquire", ".release", ".acq_rel"}) {
    for (const char* scope : {"", ".cta", ".cluster", ".gpu", ".sys"}) {
      for (const char* space : {"", ".global"}) {
        const std::string how = std::string(order) + scope + space;
        INFO(how);
        CHECK(word("  mov.u32 %r2, 5; atom" + how + ".add.u32 %r3, [%in], %r2;\n  atom" + how +
                   ".cas.b32 %r4, [%in], 5, 9; ld.global.u32 %r1, [%in];") == 9);
        const std::string name(order);
        if (name == ".acquire" || name == ".acq_rel") continue;
        CHECK(word("  mov.u32 %r2, 5; red" + how +
                   ".max.u32 [%in], %r2;\n"
                   "  ld.global.u32 %r1, [%in];") == 5);
      }
    }
  }
  CHECK(word("  .shared .align 8 .b32 cell; st.shared.u32 [cell], 0; bar.warp.sync -1;\n"
             "  mov.u32 %r3, cell; mapa.shared::cluster.u32 %r2, %r3, 0;\n"
             "  atom.relaxed.cluster.shared::cluster.add.u32 %r4, [%r2], 2;\n"
             "  bar.warp.sync -1; ld.shared.u32 %r1, [cell];") == 64);
}

TEST_CASE("cache hints and policies change nothing") {
  const std::string policy = "  createpolicy.fractional.L2::evict_last.b64 %d1, 0f3F800000;\n";
  CHECK(word(policy +
             "  mov.u32 %r2, 11;\n"
             "  st.global.L1::no_allocate.L2::cache_hint.b32 [%in], { %r2 }, %d1;\n"
             "  ld.global.L1::evict_last.L2::cache_hint.L2::128B.b32 { %r1 }, [%in], %d1;") == 11);
  CHECK(word(policy + "  red.global.add.L2::cache_hint.u32 [%in], 3, %d1;\n"
                      "  ld.global.nc.L2::128B.u32 %r1, [%in];") == 3);
  CHECK(word(policy + "  .shared .align 16 .b8 tile[512]; st.global.u32 [%in], 77;\n"
                      "  mov.u32 %r2, tile; mad.lo.u32 %r2, %lane, 16, %r2;\n"
                      "  cp.async.cg.shared.global.L2::cache_hint.L2::128B [%r2], [%in], 16, %d1;\n"
                      "  cp.async.wait_all; ld.shared.u32 %r1, [%r2];") == 77);
  // The policy is an operand that must be there, of 64 bits.
  CHECK_THROWS_AS(word("  ld.global.L2::cache_hint.b32 %r1, [%in];"), Error);
  CHECK_THROWS_AS(word("  ld.global.L2::cache_hint.b32 %r1, [%in], %r2;"), Error);
  CHECK_THROWS_AS(word("  ld.shared.L1::evict_last.b32 %r1, [%r2];"), Error);
  CHECK_THROWS_AS(word("  ld.volatile.L1::evict_last.b32 %r1, [%in];"), Error);
}

TEST_CASE("an arrival without a count is taken by sm_80, with one from sm_90 on") {
  const std::string barrier =
      "  .shared .align 8 .b64 bar[32]; mov.u32 %r2, bar; mad.lo.u32 %r2, %lane, 8, %r2;\n"
      "  mbarrier.init.shared.b64 [%r2], 1;\n  mbarrier.arrive.shared.b64 %d1, [%r2]";
  const std::string wait =
      ";\n  mbarrier.test_wait.shared.b64 %p1, [%r2], %d1; selp.u32 %r1, 1, 0, %p1;";
  CHECK(word(barrier + wait, "sm_80") == 1);
  CHECK(word(barrier + ", 1" + wait, "sm_90") == 1);
  CHECK_THROWS_AS(word(barrier + ", 1" + wait, "sm_80"), Error);
}

TEST_CASE("set with half-precision operands") {
  const std::string x =
      "  mov.u32 %r2, 0x3c004000; mov.u32 %r3, 0x3c003c00;\n"
      "  mov.b16 %h1, 0x4000; mov.b16 %h2, 0x3c00; mov.b16 %h3, 0x7e00;\n";
  CHECK(word(x + "  set.gt.f16x2.f16x2 %r1, %r2, %r3;") == 0x00003c00);
  CHECK(word(x + "  set.ge.u32.f16x2 %r1, %r2, %r3;") == 0xffffffff);
  CHECK(word(x + "  set.gt.u32.f16x2 %r1, %r2, %r3;") == 0x0000ffff);
  CHECK(word(x + "  set.ltu.u32.f16 %r1, %h1, %h3;") == 0xffffffff);
  CHECK(word(x + "  set.lt.u32.f16 %r1, %h1, %h3;") == 0);
  CHECK(word(x + "  set.ne.f16.f16 %h4, %h1, %h2; cvt.u32.u16 %r1, %h4;") == 0x3c00);
  CHECK(word(x + "  set.eq.bf16x2.bf16x2 %r1, %r2, %r3;") == 0x3f800000);
  CHECK(word("  mov.f64 %g1, 0d3FF0000000000000; mov.f64 %g2, 0d4000000000000000;\n"
             "  set.lt.u32.f64 %r1, %g1, %g2;") == 0xffffffff);
  CHECK(word("  mov.u32 %r2, -1; set.lt.f32.s32 %f1, %r2, 1; mov.b32 %r1, %f1;") == 0x3f800000);
}

TEST_CASE("comparisons that are combined with a predicate") {
  // %r2 packs (2, 1) and %r3 (1, 1): the first is greater in the lower half alone.
  const std::string x =
      "  mov.u32 %r2, 0x3c004000; mov.u32 %r3, 0x3c003c00; mov.b16 %h1, 0x4000; mov.b16 %h2, "
      "0x3c00;\n  mov.f32 %f1, 1.0; mov.b32 %f2, 1; mov.f64 %g1, 1.0; mov.f64 %g2, 2.0;\n"
      "  setp.eq.u32 %p1, %lane, 3; setp.ne.u32 %p2, %lane, 3;\n";
  const auto all_combine = [&](const std::string& compare, const std::string& operands, bool holds,
                               uint32_t yes, const std::string& after = "") {
    INFO(compare << " " << operands);
    const size_t dot = compare.find('.', compare.find('.') + 1);
    for (const bool other : {false, true}) {
      const auto result = [&](const char* how) {
        // Where lane 3 reads: %p1 is true there, %p2 false.
        return word(x + "  " + compare.substr(0, dot) + "." + how + compare.substr(dot) + " " +
                    operands + (other ? ", %p1;\n" : ", !%p1;\n") + after);
      };
      CHECK(result("and") == (holds && other ? yes : 0));
      CHECK(result("or") == (holds || other ? yes : 0));
      CHECK(result("xor") == (holds != other ? yes : 0));
    }
  };
  all_combine("set.gt.u32.u32", "%r1, %r2, %r3", true, 0xffffffff);
  all_combine("set.lo.s32.u16", "%r1, %h1, %h2", false, 0xffffffff);
  all_combine("set.lt.f32.s64", "%f3, -1, 1", true, 0x3f800000, "mov.b32 %r1, %f3;");
  all_combine("set.ne.ftz.u32.f32", "%r1, %f2, 0.0", false, 0xffffffff);
  all_combine("set.ne.u32.f32", "%r1, %f2, 0.0", true, 0xffffffff);
  all_combine("set.geu.u32.f64", "%r1, %g1, %g2", false, 0xffffffff);
  all_combine("set.gt.f16.f16", "%h3, %h1, %h2", true, 0x3c00, "cvt.u32.u16 %r1, %h3;");
  all_combine("set.le.bf16.bf16", "%h3, %h1, %h2", false, 0x3f80, "cvt.u32.u16 %r1, %h3;");
  const std::string as_word = "selp.u32 %r1, 1, 0, %p3;";
  all_combine("setp.gt.f16", "%p3, %h1, %h2", true, 1, as_word);
  all_combine("setp.lt.bf16", "%p3, %h1, %h2", false, 1, as_word);
  all_combine("setp.gt.f16x2", "%p3|%p4, %r2, %r3", true, 1, as_word);
  all_combine("setp.gt.bf16x2", "%p4|%p3, %r2, %r3", false, 1, as_word);
  // Each half is combined with the predicate.
  CHECK(word(x + "  set.gt.xor.f16x2.f16x2 %r1, %r2, %r3, %p1;") == 0x3c000000);
  CHECK(word(x + "  set.gt.and.u32.f16x2 %r1, %r2, %r3, %p1;") == 0x0000ffff);
  CHECK(word(x + "  set.gt.or.bf16x2.bf16x2 %r1, %r2, %r3, %p1;") == 0x3f803f80);
  CHECK_THROWS_AS(word(x + "  set.gt.and.u32.u32 %r1, %r2, %r3;"), Error);
}

TEST_CASE("lop3 says with a predicate whether any bit is set") {
  const std::string x = "  mov.u32 %r2, 0xff; setp.eq.u32 %p1, %lane, 3;\n";
  const auto both = [&](const std::string& statement) {
    return word(x + statement + "  selp.u32 %r3, 0x100, 0, %p2; or.b32 %r1, %r1, %r3;");
  };
  for (const char* b : {"0xf0", "0"}) {
    const bool any = b[1] != 0;
    INFO(b);
    const std::string operands = " %r1|%p2, %r2, " + std::string(b) + ", 0xff, 0x80, ";
    const uint32_t value = any ? 0xf0 : 0;
    CHECK(both("  lop3.or.b32" + operands + "%p1;") == (value | 0x100));
    CHECK(both("  lop3.or.b32" + operands + "!%p1;") == (value | (any ? 0x100 : 0)));
    CHECK(both("  lop3.and.b32" + operands + "%p1;") == (value | (any ? 0x100 : 0)));
    CHECK(both("  lop3.and.b32" + operands + "!%p1;") == value);
  }
  CHECK(word(x + "  lop3.or.b32 _|%p2, %r2, %r2, %r2, 0x80, 0; selp.u32 %r1, 5, 6, %p2;") == 5);
  CHECK_THROWS_AS(word(x + "  lop3.or.b32 %r1, %r2, %r2, %r2, 0x80, %p1;"), Error);
}

TEST_CASE("products whose sum saturates") {
  const auto mad = [](const std::string& name, int32_t a, int32_t b, int32_t c) {
    return apply_one<int32_t, int32_t>(name + ".hi.sat.s32 %y, %x0, %x1, %x2;", {a, b, c});
  };
  CHECK(mad("mad", 1 << 30, 1 << 30, 5) == (1 << 28) + 5);
  CHECK(mad("mad", 1 << 30, 1 << 30, INT32_MAX - 5) == INT32_MAX);
  CHECK(mad("mad", INT32_MIN, INT32_MAX, INT32_MIN + 7) == INT32_MIN);
  CHECK(mad("mad", -1, 1, 0) == -1);
  CHECK(mad("mad24", 0x400000, 0x400000, 5) == (1 << 28) + 5);
  CHECK(mad("mad24", 0x1400000, 0x400000, INT32_MAX - 5) == INT32_MAX);
  CHECK(mad("mad24", 0x800000, 0x7fffff, INT32_MIN + 7) == INT32_MIN);
  CHECK_THROWS_AS(word("  mad.lo.sat.s32 %r1, %r1, %r1, %r1;"), Error);
}

TEST_CASE("accesses of devices are relaxed accesses of the system") {
  CHECK(word("  st.mmio.relaxed.sys.global.u32 [%in], 7;\n"
             "  ld.mmio.relaxed.sys.u32 %r1, [%in];") == 7);
  CHECK_THROWS_AS(word("  ld.mmio.relaxed.gpu.global.u32 %r1, [%in];"), Error);
  CHECK_THROWS_AS(word("  ld.mmio.relaxed.sys.shared.u32 %r1, [%in];"), Error);
}

TEST_CASE("hints about caches and aliases, and what they check") {
  CHECK(word("  createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d1, [%in], 64, "
             "4096;\n  createpolicy.cvt.L2.b64 %d2, %d1; fence.proxy.alias; membar.proxy.alias;\n"
             "  st.global.L2::cache_hint.u32 [%in], 3, %d2; ld.global.u32 %r1, [%in];") == 3);
  const auto fault_of = [](const std::string& body) {
    const Run r = run(kernel("  mad.wide.u32 %d1, %lane, 128, %base;\n  " + body, "sm_90"));
    return r.result.fault ? r.result.fault->message : "";
  };
  CHECK(fault_of("createpolicy.range.L2::evict_first.b64 %d1, [%in], 65, 64;") ==
        "the primary range has 65 bytes; it is a part of the whole, which has 64");
  // What is discarded has no value any more, and what is next to it keeps its own.
  const std::string two =
      "  mad.wide.u32 %d1, %lane, 256, %base; st.global.u32 [%d1], 5;\n"
      "  st.global.u32 [%d1+128], 6; discard.global.L2 [%d1], 128;\n";
  CHECK(word(two + "  ld.global.u32 %r1, [%d1];") == 0xffffffff);
  CHECK(word(two + "  ld.global.u32 %r1, [%d1+128];") == 6);
  CHECK(fault_of("discard.L2 [%d1+64], 128;").find("128") != std::string::npos);
  CHECK(fault_of("discard.L2 [%d1+131072], 128;") != "");
  CHECK(fault_of(".shared .align 128 .b8 tile[128]; cvta.shared.u64 %d1, 0; discard.L2 [%d1], "
                 "128;") == "the address is not in global memory");
}

TEST_CASE("special registers of the driver and of reserved shared memory") {
  CHECK(word("  mov.u32 %r1, %envreg3;") == 0);
  // The workspace of a grid is there in a cooperative launch alone (grid_test).
  CHECK(word("  mov.u32 %r2, %envreg2; mov.u32 %r3, %envreg1; or.b32 %r1, %r2, %r3;") == 0);
  CHECK(word("  mov.u32 %r2, %reserved_smem_offset_1; st.shared.u32 [%r2], 5;\n"
             "  ld.shared.u32 %r1, [%r2];") == 5);
  CHECK(word("  mov.u32 %r2, %reserved_smem_offset_begin; mov.u32 %r3, "
             "%reserved_smem_offset_end;\n  sub.u32 %r2, %r3, %r2;\n"
             "  mov.u32 %r3, %reserved_smem_offset_cap; sub.u32 %r1, %r2, %r3;") == 0);
}

TEST_CASE("registers of 128 bits") {
  const std::string make =
      "  .reg .b128 %q<4>; mov.b64 %d1, 0x1122334455667788; mov.b64 %d2, 9;\n"
      "  mov.b128 %q1, {%d1, %d2}; mov.b128 %q2, %q1;\n";
  CHECK(word(make + "  mov.b128 {%d3, %d4}, %q2; cvt.u32.u64 %r1, %d4;") == 9);
  CHECK(word(make + "  st.global.b128 [%in], %q2; ld.global.L1::no_allocate.b128 %q3, [%in];\n"
                    "  st.global.b128 [%in], %q3; ld.global.u32 %r1, [%in+4];") == 0x11223344);
  CHECK(word(make + "  st.global.v2.b64 [%in], {%d2, %d2}; mov.b128 %q1, {%d2, %d2};\n"
                    "  atom.acq_rel.gpu.global.cas.b128 %q3, [%in], %q1, %q2;\n"
                    "  ld.global.u32 %r1, [%in];") == 0x55667788);
  CHECK(word(make + "  atom.global.exch.b128 %q3, [%in], %q2; ld.global.u32 %r1, [%in+8];") == 9);
  CHECK_THROWS_AS(word(make + "  mov.b128 %q1, %d1;"), Error);
}

TEST_CASE("what is not modelled is refused by name and line, in the kernel that uses it") {
  const Module m = Module::parse(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.global .texref image;\n"
      ".global .samplerref sampler = { addr_mode_0 = clamp_to_border, filter_mode = nearest };\n"
      ".global .surfref plane;\n"
      ".visible .entry fine() { ret; }\n"
      ".visible .entry image_by_name() { .reg .f32 %f<5>; .reg .s32 %r<3>;\n"
      "  tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1, %r2}]; ret; }\n"
      ".visible .entry image_and_sampler() { .reg .f32 %f<5>;\n"
      "  tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, sampler, {%f1, %f2}]; ret; }\n"
      ".visible .entry image_by_handle() { .reg .f32 %f<5>; .reg .b64 %rd;\n"
      "  tex.base.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd, {%f1, %f2}]; ret; }\n"
      ".visible .entry gathered() { .reg .f32 %f<5>; .reg .b64 %rd;\n"
      "  tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd, {%f1, %f2}]; ret; }\n"
      ".visible .entry loaded() { .reg .b32 %r<5>; .reg .b64 %rd;\n"
      "  suld.b.2d.b32.trap {%r1}, [%rd, {%r2, %r3}]; ret; }\n"
      ".visible .entry stored() { .reg .b32 %r<5>;\n"
      "  sust.b.2d.b32.trap [plane, {%r2, %r3}], {%r1}; ret; }\n"
      ".visible .entry eighths() { .reg .b32 %r<9>;\n"
      "  mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%r0, %r1}, {%r2, %r3, %r4, %r5},\n"
      "    {%r6, %r7}, {%r0, %r1}; ret; }\n"
      ".visible .entry sparse() { .reg .f32 %f<5>; .reg .b64 %d<3>; .reg .b32 %r; .reg .pred %p;\n"
      "  wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d1, %d2, %r,\n"
      "    0, %p, 1, 1, 0, 0; ret; }\n",
      "k.ptx");
  CHECK(m.kernel("fine").unsupported().empty());
  const auto note_of = [&](const char* name, int line) {
    INFO(name);
    CHECK(m.kernel(name).errors().empty());
    const auto refused = m.kernel(name).unsupported();
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].where.line == line);
    CHECK(refused[0].message.find("' is valid PTX, but this machine does not run it") !=
          std::string::npos);
    return refused[0].notes.at(0);
  };
  for (const auto& [name, line] : {std::pair{"image_by_name", 9},
                                   {"image_and_sampler", 11},
                                   {"image_by_handle", 13},
                                   {"gathered", 15}}) {
    CHECK(note_of(name, line).starts_with("textures are not modelled; "));
  }
  CHECK(note_of("loaded", 17) == "surfaces are not modelled; the same kernel with a pointer runs");
  CHECK(note_of("stored", 19) == "surfaces are not modelled; the same kernel with a pointer runs");
  CHECK(note_of("eighths", 21) ==
        "the card rounds between products, in an order that is not known");
  CHECK(note_of("sparse", 24) ==
        "of wgmma.mma_async sparse forms and operands of 1 bit are not modelled");
}

TEST_CASE("constant expressions") {
  const auto value_of = [](const std::string& text) {
    return run(kernel("mov.b64 %d0, " + text + "; st.global.b64 [%out], %d0;")).at<int64_t>(0);
  };
  CHECK(value_of("(0xF0 & 0xCC) | 0xAA") == ((0xF0 & 0xCC) | 0xAA));
  CHECK(value_of("1 + 2 * 3 - -4") == 11);
  CHECK(value_of("~0xff & 0xfff") == 0xf00);
  CHECK(value_of("1 << 40 | 3 << 2") == ((1ll << 40) | 12));
  CHECK(value_of("-17 / 5 * 100 + -17 % 5") == -302);
  CHECK(value_of("(.u64)7 > 6 && !(3 == 4) ? WARP_SZ : 5") == 32);
  CHECK(value_of("2 >= 3 || 1 != 1 ? 1 : -(4 ^ 1)") == -5);
  CHECK(apply_one<uint32_t, uint32_t>("lop3.b32 %y, %x0, %x1, %x2, (0xF0 & 0xCC) | 0xAA;",
                                      {0xff00ff00, 0xf0f0f0f0, 0x0f}) == 0xf000f00f);
  const auto error_of = [&](const std::string& text) {
    try {
      Module::parse(kernel("mov.b64 %d0, " + text + ";"), "k.ptx");
    } catch (const Error& e) {
      return e.diagnostics().at(0).message;
    }
    return std::string("accepted");
  };
  CHECK(error_of("5 / (3 - 3)") == "division by zero");
  CHECK(error_of("(1 + 2") == "expected ')'");
  CHECK(error_of("1 + ") == "expected an operand");
  CHECK(error_of(std::string(100000, '(')) == "this is nested too deeply");
  CHECK(error_of(std::string(100000, '-') + "1") == "this is nested too deeply");
}

TEST_CASE("a kernel that launches a kernel refuses itself") {
  const Module m = Module::parse(
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry child() { ret; }\n"
      ".visible .entry parent() { .reg .b64 %d; mov.u64 %d, child; ret; }\n",
      "k.ptx");
  CHECK(m.kernel("child").errors().empty());
  REQUIRE(m.kernel("parent").errors().size() == 1);
  CHECK(m.kernel("parent").errors()[0].message ==
        "'child' is a kernel; kernels that launch kernels are not modelled");
}

TEST_CASE("an error within the braces of an operand ends no kernel") {
  const Module m = Module::parse(
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry bad() { .reg .b32 %r<4>;\n"
      "  frob [%r1, ?, {%r1, %r2}], {%r1, %r2}; ret; }\n.visible .entry fine() { ret; }\n",
      "k.ptx");
  CHECK(m.kernel("bad").errors().size() == 1);
  CHECK(m.kernel("fine").errors().empty());
}
