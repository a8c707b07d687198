// SPDX-License-Identifier: MIT
#include <bit>
#include <cmath>
#include <random>

#include "catch.h"
#include "num/half.h"
#include "run_ptx.h"

using namespace ptxvm_test;

namespace {

float op(const std::string& opcode, std::vector<float> x) {
  std::string s = opcode + " %y";
  for (size_t i = 0; i < x.size(); ++i) s += ", %x" + std::to_string(i);
  return apply_one<float, float>(s + ";", x);
}

uint32_t bits_of(const std::string& opcode, std::vector<uint32_t> x) {
  std::string s = opcode + " %y";
  for (size_t i = 0; i < x.size(); ++i) s += ", %x" + std::to_string(i);
  return apply_one<uint32_t, uint32_t>(s + ";", x);
}

double op64(const std::string& opcode, std::vector<double> x) {
  std::string s = opcode + " %y";
  for (size_t i = 0; i < x.size(); ++i) s += ", %x" + std::to_string(i);
  return apply_one<double, double>(s + ";", x);
}

constexpr uint32_t kSubnormal = 1, kNan = 0x7fc00000, kOne = 0x3f800000, kInf = 0x7f800000;

}  // namespace

TEST_CASE("f32 arithmetic") {
  CHECK(op("add.f32", {1.5f, 2.25f}) == 3.75f);
  CHECK(op("sub.rn.f32", {1.5f, 2.25f}) == -0.75f);
  CHECK(op("mul.f32", {1.5f, -2.0f}) == -3.0f);
  CHECK(op("fma.rn.f32", {1 + 0x1p-12f, 1 - 0x1p-12f, -1.0f}) == -0x1p-24f);
  CHECK(op("div.rn.f32", {1.0f, 3.0f}) == 1.0f / 3.0f);
  CHECK(op("sqrt.rn.f32", {2.0f}) == std::sqrt(2.0f));
  CHECK(op("rcp.rn.f32", {3.0f}) == 1.0f / 3.0f);
  CHECK(op("div.approx.f32", {1.0f, 0x1.8p126f}) == 0.0f);
}

TEST_CASE("directed rounding") {
  CHECK(op("add.rz.f32", {1.0f, 0x1p-30f}) == 1.0f);
  CHECK(op("add.rp.f32", {1.0f, 0x1p-30f}) == 1.0f + 0x1p-23f);
  CHECK(op("add.rm.f32", {-1.0f, -0x1p-30f}) == -1.0f - 0x1p-23f);
  CHECK(op("mul.rz.f32", {1 + 0x1p-23f, 1 + 0x1p-23f}) == 1 + 0x1p-22f);
  CHECK(op("mul.rp.f32", {1 + 0x1p-23f, 1 + 0x1p-23f}) == 1 + 3 * 0x1p-23f);
  CHECK(op("fma.rm.f32", {1 + 0x1p-23f, 1 + 0x1p-23f, -0x1p-60f}) == 1 + 0x1p-22f);
  CHECK(op("div.rp.f32", {1.0f, 3.0f}) == std::nextafter(op("div.rm.f32", {1.0f, 3.0f}), 2.0f));
  CHECK(op("sqrt.rm.f32", {2.0f}) < op("sqrt.rp.f32", {2.0f}));
  CHECK(op64("add.rp.f64", {1.0, 0x1p-60}) == 1.0 + 0x1p-52);
  CHECK(op64("fma.rz.f64", {1.0, 1.0, -0x1p-60}) == 1.0 - 0x1p-53);
}

TEST_CASE("ftz, sat and NaN") {
  CHECK(bits_of("add.f32", {kSubnormal, 0}) == kSubnormal);
  CHECK(bits_of("add.ftz.f32", {kSubnormal, 0}) == 0);
  CHECK(bits_of("mul.ftz.f32", {0x80800000, 0x3f000000}) == 0x80000000);
  CHECK(bits_of("fma.rn.ftz.f32", {kSubnormal, kOne, kOne}) == kOne);
  CHECK(op("add.sat.f32", {3.0f, 4.0f}) == 1.0f);
  CHECK(bits_of("add.sat.f32", {kNan, kOne}) == 0);
  CHECK(bits_of("add.f32", {0xffc12345, kOne}) == 0x7fffffff);
  CHECK(bits_of("mul.f32", {kInf, 0}) == 0x7fffffff);
}

TEST_CASE("minimum and maximum") {
  CHECK(op("max.f32", {1.0f, NAN}) == 1.0f);
  CHECK(bits_of("max.f32", {kNan, kNan}) == 0x7fffffff);
  CHECK(bits_of("max.NaN.f32", {kNan, kOne}) == 0x7fffffff);
  CHECK(bits_of("max.f32", {0x80000000, 0}) == 0);
  CHECK(bits_of("min.f32", {0, 0x80000000}) == 0x80000000);
  CHECK(op("max.xorsign.abs.f32", {-3.0f, 2.0f}) == -3.0f);
  CHECK(op("min.xorsign.abs.f32", {-3.0f, -2.0f}) == 2.0f);
  CHECK(op64("min.f64", {-1.0, 2.0}) == -1.0);
}

TEST_CASE("comparisons with NaN") {
  auto holds = [](const std::string& c, uint32_t a, uint32_t b) {
    return apply_one<uint32_t, uint32_t>(
               "setp." + c + ".f32 %p1, %x0, %x1; selp.b32 %y, 1, 0, %p1;", {a, b}) == 1;
  };
  CHECK(!holds("ne", kNan, kOne));
  CHECK(holds("neu", kNan, kOne));
  CHECK(!holds("lt", kNan, kOne));
  CHECK(holds("ltu", kNan, kOne));
  CHECK(holds("nan", kOne, kNan));
  CHECK(holds("num", kOne, kInf));
  CHECK(holds("eq", 0, 0x80000000));
  CHECK(holds("eq.ftz", kSubnormal, 0));
  CHECK(!holds("eq", kSubnormal, 0));
  CHECK(apply_one<uint32_t, uint32_t>("testp.subnormal.f32 %p1, %x0; selp.b32 %y, 1, 0, %p1;",
                                      {kSubnormal}) == 1);
}

TEST_CASE("approximate functions stay within their bounds") {
  for (float x : {0.5f, 1.0f, 3.7f, 1e-20f, 1e20f}) {
    CHECK(op("rcp.approx.ftz.f32", {x}) == Approx(1.0 / x).epsilon(1e-6));
    CHECK(op("rsqrt.approx.f32", {x}) == Approx(1.0 / std::sqrt(x)).epsilon(1e-6));
    CHECK(op("lg2.approx.f32", {x}) == Approx(std::log2(x)).epsilon(1e-6).margin(1e-6));
  }
  CHECK(op("ex2.approx.ftz.f32", {-0.5f}) == Approx(std::exp2(-0.5)).epsilon(1e-6));
  CHECK(bits_of("ex2.approx.ftz.f32", {std::bit_cast<uint32_t>(-140.0f)}) == 0);
  CHECK(bits_of("ex2.approx.f32", {std::bit_cast<uint32_t>(-140.0f)}) == 1u << 9);
  CHECK(op("tanh.approx.f32", {0.5f}) == Approx(std::tanh(0.5)).epsilon(1e-5));
  CHECK(op("sin.approx.f32", {0.5f}) == Approx(std::sin(0.5)).epsilon(1e-5));
}

TEST_CASE("f16 and bf16 arithmetic rounds once") {
  auto h = [](const std::string& opcode, std::vector<float> x) {
    std::string s = opcode + " %y";
    std::vector<uint16_t> raw;
    for (size_t i = 0; i < x.size(); ++i) {
      s += ", %x" + std::to_string(i);
      raw.push_back(ptxvm::num::float_to_half(x[i]));
    }
    return ptxvm::num::half_to_float(apply_one<uint16_t, uint16_t>(s + ";", raw));
  };
  CHECK(h("add.f16", {2048.0f, 1.0f}) == 2048.0f);
  CHECK(h("add.f16", {2048.0f, 3.0f}) == 2052.0f);
  CHECK(h("fma.rn.f16", {1.0009765625f, 1.0009765625f, -1.0f}) ==
        ptxvm::num::half_to_float(ptxvm::num::float_to_half(0.00195407867f)));
  CHECK(h("fma.rn.sat.f16", {3.0f, 3.0f, 0.0f}) == 1.0f);
  CHECK(h("fma.rn.relu.f16", {-3.0f, 3.0f, 0.0f}) == 0.0f);
  CHECK(h("max.f16", {-1.0f, 2.0f}) == 2.0f);
  CHECK(h("neg.f16", {2.0f}) == -2.0f);
  CHECK(h("ex2.approx.f16", {3.0f}) == 8.0f);
  CHECK(bits_of("add.f16x2", {0x3c004000, 0x40003c00}) == 0x42004200);
  CHECK(bits_of("mul.f16x2", {0x3c004000, 0x40003c00}) == 0x40004000);
  CHECK(bits_of("fma.rn.bf16x2", {0x3f804000, 0x40003f80, 0x3f803f80}) == 0x40404040);
  CHECK(bits_of("max.NaN.f16x2", {0x7e003c00, 0x3c004000}) == 0x7fff4000);
}
