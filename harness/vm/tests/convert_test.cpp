// SPDX-License-Identifier: MIT
#include <bit>
#include <cmath>

#include "catch.h"
#include "run_ptx.h"

using namespace ptxvm_test;

namespace {

template <class D, class S>
D cvt(const std::string& opcode, S x) {
  return apply_one<D, S>(opcode + " %y, %x0;", {x});
}

uint32_t f(float x) {
  return std::bit_cast<uint32_t>(x);
}
uint64_t g(double x) {
  return std::bit_cast<uint64_t>(x);
}

}  // namespace

TEST_CASE("between integers") {
  CHECK(cvt<uint32_t, uint32_t>("cvt.s32.s8", 0x80) == 0xffffff80);
  CHECK(cvt<uint32_t, uint32_t>("cvt.u32.u8", 0x180) == 0x80);
  CHECK(cvt<uint64_t, uint32_t>("cvt.s64.s32", 0x80000000) == 0xffffffff80000000);
  CHECK(cvt<uint64_t, uint32_t>("cvt.u64.u32", 0x80000000) == 0x80000000);
  CHECK(cvt<uint32_t, uint64_t>("cvt.u32.u64", 0x123456789) == 0x23456789);
  CHECK(cvt<uint32_t, uint32_t>("cvt.sat.s8.s32", 300) == 127);
  CHECK(cvt<uint32_t, uint32_t>("cvt.sat.s8.s32", 0xfffffe00) == 0xffffff80);
  CHECK(cvt<uint32_t, uint32_t>("cvt.sat.u32.s32", 0xffffffff) == 0);
  CHECK(cvt<uint32_t, uint64_t>("cvt.sat.s32.s64", 1ull << 40) == 0x7fffffff);
  CHECK((cvt<uint16_t, uint32_t>("cvt.u16.u32", 0x12345)) == 0x2345);
}

TEST_CASE("from floating point to integer") {
  CHECK(cvt<uint32_t, uint32_t>("cvt.rni.s32.f32", f(2.5f)) == 2);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rni.s32.f32", f(3.5f)) == 4);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rzi.s32.f32", f(-2.7f)) == 0xfffffffe);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rmi.s32.f32", f(-2.1f)) == 0xfffffffd);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rpi.s32.f32", f(2.1f)) == 3);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rzi.s32.f32", f(1e20f)) == 0x7fffffff);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rzi.u32.f32", f(-5.0f)) == 0);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rzi.s32.f32", f(NAN)) == 0);
  CHECK(cvt<uint64_t, uint32_t>("cvt.rzi.s64.f32", f(NAN)) == 0x8000000000000000);
  CHECK(cvt<uint64_t, uint64_t>("cvt.rzi.u64.f64", g(1.8446744073709552e19)) == ~0ull);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rpi.ftz.s32.f32", 1) == 0);
  CHECK(cvt<uint32_t, uint32_t>("cvt.rpi.s32.f32", 1) == 1);
}

TEST_CASE("from integer to floating point") {
  CHECK(cvt<uint32_t, uint32_t>("cvt.rn.f32.s32", 0xffffffff) == f(-1.0f));
  CHECK(cvt<uint32_t, uint32_t>("cvt.rz.f32.u32", 0xffffffff) == f(4294967040.0f));
  CHECK(cvt<uint32_t, uint32_t>("cvt.rn.f32.u32", 0xffffffff) == f(4294967296.0f));
  CHECK(cvt<uint64_t, uint32_t>("cvt.rn.f64.s32", 0x80000000) == g(-2147483648.0));
  CHECK((cvt<uint16_t, uint32_t>("cvt.rn.f16.s32", 2049)) == 0x6800);
  CHECK((cvt<uint16_t, uint32_t>("cvt.rp.f16.s32", 2049)) == 0x6801);
  CHECK((cvt<uint16_t, uint64_t>("cvt.rn.f16.u64", ~0ull)) == 0x7c00);
}

TEST_CASE("between floating-point types") {
  CHECK((cvt<uint16_t, uint32_t>("cvt.rn.f16.f32", f(1.0f / 3))) == 0x3555);
  CHECK((cvt<uint16_t, uint32_t>("cvt.rz.f16.f32", f(65535.0f))) == 0x7bff);
  CHECK((cvt<uint16_t, uint32_t>("cvt.rn.f16.f32", f(65535.0f))) == 0x7c00);
  CHECK((cvt<uint16_t, uint32_t>("cvt.rn.f16.f32", f(NAN))) == 0x7fff);
  CHECK((cvt<uint32_t, uint16_t>("cvt.f32.f16", 0x0001)) == f(0x1p-24f));
  CHECK((cvt<uint32_t, uint16_t>("cvt.f32.bf16", 0x3f80)) == f(1.0f));
  CHECK((cvt<uint16_t, uint32_t>("cvt.rn.bf16.f32", f(1.00390625f))) == 0x3f80);
  CHECK((cvt<uint16_t, uint32_t>("cvt.rn.relu.bf16.f32", f(-1.0f))) == 0);
  CHECK(cvt<uint32_t, uint64_t>("cvt.rn.f32.f64", g(1.0 + 0x1p-24)) == f(1.0f));
  CHECK(cvt<uint32_t, uint64_t>("cvt.rp.f32.f64", g(1.0 + 0x1p-24)) == f(1.0f + 0x1p-23f));
  CHECK(cvt<uint32_t, uint64_t>("cvt.rz.f32.f64", g(-1.0 - 0x1p-24)) == f(-1.0f));
  CHECK(cvt<uint64_t, uint32_t>("cvt.f64.f32", f(1.5f)) == g(1.5));
  CHECK(cvt<uint32_t, uint32_t>("cvt.rna.tf32.f32", f(1.0f + 0x1p-11f)) == f(1.0f + 0x1p-10f));
  CHECK(cvt<uint32_t, uint32_t>("cvt.rn.tf32.f32", f(1.0f + 0x1p-11f)) == f(1.0f));
}

TEST_CASE("rounding to integral values") {
  CHECK(cvt<uint32_t, uint32_t>("cvt.rni.f32.f32", f(2.5f)) == f(2.0f));
  CHECK(cvt<uint32_t, uint32_t>("cvt.rmi.f32.f32", f(-2.5f)) == f(-3.0f));
  CHECK(cvt<uint32_t, uint32_t>("cvt.sat.f32.f32", f(-2.5f)) == f(0.0f));
  CHECK(cvt<uint32_t, uint32_t>("cvt.sat.f32.f32", f(NAN)) == 0);
  CHECK(cvt<uint32_t, uint32_t>("cvt.ftz.f32.f32", 0x80000001) == 0x80000000);
}

TEST_CASE("packed conversions put the first source above") {
  CHECK((apply_one<uint32_t, uint32_t>("cvt.rn.f16x2.f32 %y, %x0, %x1;", {f(1.0f), f(2.0f)})) ==
        0x3c004000);
  CHECK((apply_one<uint32_t, uint32_t>("cvt.rn.bf16x2.f32 %y, %x0, %x1;", {f(1.0f), f(2.0f)})) ==
        0x3f804000);
  CHECK((apply_one<uint32_t, uint32_t>("cvt.rz.relu.f16x2.f32 %y, %x0, %x1;",
                                       {f(-1.0f), f(2.0f)})) == 0x00004000);
}

TEST_CASE("mov packs and unpacks") {
  CHECK((apply_one<uint64_t, uint32_t>("mov.b64 %y, {%x0, %x1};", {1, 2})) == 0x200000001);
  CHECK((apply_one<uint32_t, uint64_t>(".reg .b32 %t; mov.b64 {%t, %y}, %x0;",
                                       {0x1122334455667788})) == 0x11223344);
  CHECK((apply_one<uint32_t, uint16_t>("mov.b32 %y, {%x0, %x1};", {0x1234, 0x5678})) == 0x56781234);
  CHECK((apply_one<uint16_t, uint64_t>(".reg .b16 %t<4>; mov.b64 {%t0, %t1, %y, %t3}, %x0;",
                                       {0x1122334455667788})) == 0x3344);
}
