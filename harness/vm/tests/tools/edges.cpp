// SPDX-License-Identifier: MIT
// Edge values by kind of column.
#include <map>

#include "tools/inputs.h"

namespace ptxvm_vectors {
namespace {

using Edges = std::vector<Edge>;

const Edges kI32 = {{0, "0"},
                    {1, "1"},
                    {0xffffffff, "all ones"},
                    {0x7fffffff, "largest signed"},
                    {0x80000000, "least signed"},
                    {0x80000001, "least signed + 1"},
                    {0x0000ffff, "16 ones"},
                    {2, "2"},
                    {0x55555555, "alternating"},
                    {0xaaaaaaaa, "alternating"},
                    {0x00ff00ff, "bytes"},
                    {0x7f80ff01, "bytes of both signs"},
                    {0x00ffffff, "24 ones"},
                    {0x01000000, "2^24"},
                    {0x00800000, "walking one"},
                    {0x00008000, "walking one"},
                    {0x00010000, "walking one"},
                    {0x00000080, "walking one"},
                    {0x40000000, "walking one"},
                    {0xffff8000, "-32768"},
                    {0xfffffffe, "-2"},
                    {31, "31"},
                    {32, "32"},
                    {0x12345678, "digits"}};

const Edges kI16 = {{0, "0"},
                    {1, "1"},
                    {0xffff, "all ones"},
                    {0x7fff, "largest signed"},
                    {0x8000, "least signed"},
                    {0x8001, "least signed + 1"},
                    {0x00ff, "8 ones"},
                    {2, "2"},
                    {0x5555, "alternating"},
                    {0x0080, "walking one"},
                    {0x0100, "walking one"},
                    {0x4000, "walking one"},
                    {0xff80, "-128"},
                    {0xfffe, "-2"},
                    {100, "100"},
                    {16, "16"}};

const Edges kI8 = {{0, "0"},
                   {1, "1"},
                   {0xff, "all ones in 8 bits"},
                   {0x7f, "largest signed in 8 bits"},
                   {0x80, "least signed in 8 bits"},
                   {0xffffff80, "sign already extended"},
                   {0xabcdef80, "high bits to be ignored"},
                   {0x12345600, "high bits to be ignored"},
                   {0x7fffff7f, "high bits to be ignored"},
                   {0x81, "-127"}};

const Edges kI64 = {{0, "0"},
                    {1, "1"},
                    {0xffffffffffffffff, "all ones"},
                    {0x7fffffffffffffff, "largest signed"},
                    {0x8000000000000000, "least signed"},
                    {0x8000000000000001, "least signed + 1"},
                    {0x00000000ffffffff, "32 ones"},
                    {0x0000000100000000, "2^32"},
                    {0xffffffff00000000, "-2^32"},
                    {0x0000000080000000, "2^31"},
                    {0x000000007fffffff, "2^31 - 1"},
                    {0xffffffff7fffffff, "-2^31 - 1"},
                    {0x5555555555555555, "alternating"},
                    {0x0020000000000001, "2^53 + 1"},
                    {0x0000000001000001, "2^24 + 1"},
                    {0x7fffff4000000000, "tie in f32"},
                    {0x7ffffffffffffe00, "tie in f64"},
                    {0xfffffffffffffffe, "-2"},
                    {0x0000800000000000, "walking one"},
                    {0x123456789abcdef0, "digits"}};

const Edges kCount = {
    {0, "0"},   {1, "1"},     {31, "31"},   {32, "32"},           {33, "33"},
    {63, "63"}, {64, "64"},   {8, "8"},     {65, "65"},           {16, "16"},
    {15, "15"}, {255, "255"}, {256, "256"}, {0x80000000, "2^31"}, {0xffffffff, "2^32 - 1"}};

const Edges kF32 = {{0x00000000, "+0"},
                    {0x80000000, "-0"},
                    {0x3f800000, "1"},
                    {0x00000001, "least subnormal"},
                    {0x007fffff, "largest subnormal"},
                    {0x00800000, "least normal"},
                    {0x7f7fffff, "largest"},
                    {0x7f800000, "inf"},
                    {0xff800000, "-inf"},
                    {0x7fc12345, "quiet NaN with payload"},
                    {0xff812345, "signalling NaN"},
                    {0xbf800000, "-1"},
                    {0x807fffff, "negative subnormal"},
                    {0x80800000, "negative least normal"},
                    {0xff7fffff, "lowest"},
                    {0x3f800001, "1 + ulp"},
                    {0x3f7fffff, "1 - ulp"},
                    {0x3f000000, "0.5, tie"},
                    {0xbf000000, "-0.5, tie"},
                    {0x3fc00000, "1.5, tie"},
                    {0x40200000, "2.5, tie"},
                    {0xc0200000, "-2.5, tie"},
                    {0x3effffff, "just under 0.5"},
                    {0x4b000001, "2^23 + 1"},
                    {0x4b7fffff, "2^24 - 1"},
                    {0x477fe000, "65504, largest f16"},
                    {0x477ff000, "65520, tie to f16 infinity"},
                    {0x477fefff, "just under the f16 overflow tie"},
                    {0x33800000, "2^-24, least f16"},
                    {0x33000000, "2^-25, tie to f16 zero"},
                    {0x33000001, "just over the tie to f16 zero"},
                    {0x387fc000, "largest f16 subnormal"},
                    {0x387fe000, "tie to least f16 normal"},
                    {0x3f801000, "tie in f16"},
                    {0x3f803000, "tie in f16, odd"},
                    {0x3f808000, "tie in bf16"},
                    {0x3f818000, "tie in bf16, odd"},
                    {0x7f7f8000, "tie to bf16 infinity"},
                    {0x3f801001, "tie in tf32 plus ulp"},
                    {0x42fe0000, "127"},
                    {0x437f0000, "255"},
                    {0x437f8000, "255.5"},
                    {0xc3008000, "-128.5"},
                    {0x477fff00, "65535"},
                    {0x4f000000, "2^31"},
                    {0x4effffff, "largest below 2^31"},
                    {0xcf000000, "-2^31"},
                    {0xcf000001, "below -2^31"},
                    {0x4f800000, "2^32"},
                    {0x5f000000, "2^63"},
                    {0xdf000000, "-2^63"},
                    {0x5f800000, "2^64"},
                    {0x42b17218, "88.72"},
                    {0x40490fdb, "pi"},
                    {0x3fc90fdb, "pi/2"},
                    {0x42fc0000, "126"},
                    {0xc3150000, "-149"},
                    {0x7e800000, "2^126"},
                    {0x7f000000, "2^127"}};

const Edges kF64 = {{0x0000000000000000, "+0"},
                    {0x8000000000000000, "-0"},
                    {0x3ff0000000000000, "1"},
                    {0x0000000000000001, "least subnormal"},
                    {0x000fffffffffffff, "largest subnormal"},
                    {0x0010000000000000, "least normal"},
                    {0x7fefffffffffffff, "largest"},
                    {0x7ff0000000000000, "inf"},
                    {0xfff0000000000000, "-inf"},
                    {0x7ff8000123456789, "quiet NaN with payload"},
                    {0xfff0000123456789, "signalling NaN"},
                    {0xbff0000000000000, "-1"},
                    {0xffefffffffffffff, "lowest"},
                    {0x3ff0000000000001, "1 + ulp"},
                    {0x3fefffffffffffff, "1 - ulp"},
                    {0x3fe0000000000000, "0.5, tie"},
                    {0xbfe0000000000000, "-0.5, tie"},
                    {0x4004000000000000, "2.5, tie"},
                    {0x3ff0000010000000, "tie in f32"},
                    {0x3ff0000030000000, "tie in f32, odd"},
                    {0x47efffffefffffff, "just under the f32 overflow tie"},
                    {0x47effffff0000000, "tie to f32 infinity"},
                    {0x3690000000000000, "tie to f32 zero"},
                    {0x3690000000000001, "just over the tie to f32 zero"},
                    {0x380fffffe0000000, "f32 subnormal, rounds to normal"},
                    {0x3800000000000000, "f32 subnormal"},
                    {0x40effdffffffffff, "just under the f16 overflow tie"},
                    {0x3e60000000000000, "tie to f16 zero"},
                    {0x3ff0020000000000, "tie in f16"},
                    {0x3ff0020000000001, "double rounding trap to f16"},
                    {0x41dfffffffffffff, "just under 2^31"},
                    {0x41e0000000000000, "2^31"},
                    {0xc1e0000000100000, "-2^31 - 0.5"},
                    {0x41f0000000000000, "2^32"},
                    {0x43e0000000000000, "2^63"},
                    {0xc3e0000000000000, "-2^63"},
                    {0x43f0000000000000, "2^64"},
                    {0x4340000000000001, "2^53 + 2"},
                    {0x405fe00000000000, "127.5"},
                    {0xc060100000000000, "-128.5"}};

const Edges kF16 = {{0x0000, "+0"},
                    {0x8000, "-0"},
                    {0x3c00, "1"},
                    {0x0001, "least subnormal"},
                    {0x03ff, "largest subnormal"},
                    {0x0400, "least normal"},
                    {0x7bff, "largest"},
                    {0x7c00, "inf"},
                    {0xfc00, "-inf"},
                    {0x7e12, "quiet NaN with payload"},
                    {0xfd12, "signalling NaN"},
                    {0xbc00, "-1"},
                    {0xfbff, "lowest"},
                    {0x83ff, "negative subnormal"},
                    {0x3c01, "1 + ulp"},
                    {0x3bff, "1 - ulp"},
                    {0x3800, "0.5, tie"},
                    {0xb800, "-0.5, tie"},
                    {0x3e00, "1.5, tie"},
                    {0x4100, "2.5, tie"},
                    {0x5bf8, "255"},
                    {0xd804, "-128.5"},
                    {0x4900, "10"},
                    {0xce40, "-25"},
                    {0x4b80, "15"}};

const Edges kBf16 = {{0x0000, "+0"},
                     {0x8000, "-0"},
                     {0x3f80, "1"},
                     {0x0001, "least subnormal"},
                     {0x007f, "largest subnormal"},
                     {0x0080, "least normal"},
                     {0x7f7f, "largest"},
                     {0x7f80, "inf"},
                     {0xff80, "-inf"},
                     {0x7fd2, "quiet NaN with payload"},
                     {0xff92, "signalling NaN"},
                     {0xbf80, "-1"},
                     {0xff7f, "lowest"},
                     {0x807f, "negative subnormal"},
                     {0x3f81, "1 + ulp"},
                     {0x3f7f, "1 - ulp"},
                     {0x3f00, "0.5"},
                     {0xbfc0, "-1.5"},
                     {0x4120, "10"},
                     {0xc2c8, "-100"},
                     {0x42fc, "126"},
                     {0xc316, "-150"}};

const Edges kPred = {{0, "false"}, {1, "true"}};

// Two halves of `bits` bits: every edge of the one with the next but some of the other.
Edges packed(const Edges& one, int bits = 16) {
  Edges out;
  for (size_t i = 0; i < one.size(); ++i) {
    const Edge& high = one[(i * 7 + 3) % one.size()];
    out.push_back({one[i].bits | high.bits << bits, one[i].label});
  }
  return out;
}

Edges without_zero(Edges e) {
  e.erase(e.begin());
  return e;
}

const std::map<std::string, Edges>& all() {
  static const std::map<std::string, Edges> table = {{"i8", kI8},
                                                     {"i16", kI16},
                                                     {"i32", kI32},
                                                     {"i64", kI64},
                                                     {"i16nonzero", without_zero(kI16)},
                                                     {"i32nonzero", without_zero(kI32)},
                                                     {"i64nonzero", without_zero(kI64)},
                                                     {"count", kCount},
                                                     {"carry", kPred},
                                                     {"pred", kPred},
                                                     {"f32", kF32},
                                                     {"f64", kF64},
                                                     {"f16", kF16},
                                                     {"bf16", kBf16},
                                                     {"f16x2", packed(kF16)},
                                                     {"bf16x2", packed(kBf16)},
                                                     {"f32x2", packed(kF32, 32)}};
  return table;
}

// Exponents near 1 half of the time, so that random operands meet.
uint64_t random_float(uint64_t r, int exponent_bits, int fraction_bits) {
  const uint64_t bias = (uint64_t{1} << (exponent_bits - 1)) - 1;
  const uint64_t fraction = r & ((uint64_t{1} << fraction_bits) - 1);
  const uint64_t spread = exponent_bits == 5 ? 6 : 12;
  uint64_t exponent = bias - spread + (r >> 54) % (2 * spread);
  if (r >> 53 & 1) exponent = (r >> 54) % (2 * bias + 1);
  return (r >> 52 & 1) << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction;
}

}  // namespace

const std::vector<Edge>& edges(const std::string& kind) {
  return all().at(kind);
}

size_t core_size(const std::string& kind) {
  if (kind == "pred" || kind == "carry") return 2;
  if (kind[0] == 'i') return 7;
  if (kind == "count") return 9;
  return 11;
}

uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t random_value(const std::string& kind, uint64_t& state) {
  const uint64_t r = next_random(state), s = next_random(state);
  if (kind == "pred" || kind == "carry") return r & 1;
  if (kind == "count") return r % 70;
  if (kind == "f32") return random_float(r, 8, 23);
  if (kind == "f64") return random_float(r, 11, 52);
  if (kind == "f16") return random_float(r, 5, 10);
  if (kind == "bf16") return random_float(r, 8, 7);
  if (kind == "f16x2") return random_float(r, 5, 10) | random_float(s, 5, 10) << 16;
  if (kind == "bf16x2") return random_float(r, 8, 7) | random_float(s, 8, 7) << 16;
  if (kind == "f32x2") return random_float(r, 8, 23) | random_float(s, 8, 23) << 32;
  // Integers of all lengths.
  const int width = kind.substr(0, 3) == "i64" ? 64 : kind.substr(0, 3) == "i16" ? 16 : 32;
  const uint64_t keep = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const uint64_t v = (r & keep) >> (s % 3 == 0 ? s / 3 % static_cast<uint64_t>(width) : 0);
  return v | (kind.size() > 3 && v == 0 ? 1 : 0);
}

}  // namespace ptxvm_vectors
