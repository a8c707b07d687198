// SPDX-License-Identifier: MIT
// Rows written by hand. Five are known errors of other PTX simulators and stand here by name; a
// test demands them.
#include <map>

#include "tools/inputs.h"

namespace ptxvm_vectors {
namespace {

using Rows = std::vector<Row>;

const std::map<std::string, Rows>& table() {
  static const std::map<std::string, Rows> rows = {
      {"i32 i32 pred",
       {{{0x11111111, 0x22222222, 1}, "known error: negated predicate in selp"},
        {{0x11111111, 0x22222222, 0}, "known error: negated predicate in selp"}}},
      {"i32 count count",
       {{{0x87654321, 32, 8}, "known error: bfe with position 32 and more"},
        {{0x87654321, 33, 1}, "known error: bfe with position 32 and more"},
        {{0x87654321, 40, 32}, "known error: bfe with position 32 and more"},
        {{0x87654321, 255, 4}, "known error: bfe with position 32 and more"},
        {{0x87654321, 256, 4}, "only 8 bits of the position count"},
        {{0x87654321, 28, 8}, "the field leaves the register"},
        {{0x87654321, 0, 0}, "empty field"}}},
      {"i64 count count",
       {{{0x8765432112345678, 64, 8}, "known error: bfe with position 32 and more"},
        {{0x8765432112345678, 32, 16}, "known error: bfe with position 32 and more"},
        {{0x8765432112345678, 60, 8}, "the field leaves the register"}}},
      {"f32 f32",
       {{{0x3f800000, 0x33000000}, "known error: directed rounding, 1 + 2^-25"},
        {{0xbf800000, 0xb3000000}, "known error: directed rounding, -1 - 2^-25"},
        {{0x3f800000, 0xb3000000}, "known error: directed rounding, 1 - 2^-25"},
        {{0x3dcccccd, 0x3e4ccccd}, "known error: directed rounding, 0.1 and 0.2"},
        {{0x3f800000, 0x40400000}, "known error: directed rounding, 1 and 3"},
        {{0x3f800000, 0xbf800000}, "a sum of +0, or -0 when rounded down"},
        {{0x7f7fffff, 0x73000000}, "tie to infinity"},
        {{0x00800000, 0x3f000000}, "a product that is subnormal"},
        {{0x00800001, 0x3f7fffff}, "a product just under the normal range"},
        {{0x20000000, 0x1f800000}, "a product of the least subnormal size"},
        {{0x1a000000, 0x1a000000}, "a product that vanishes"},
        {{0x3fffffff, 0x3fffffff}, "a product of full width"}}},
      {"f64 f64",
       {{{0x3ff0000000000000, 0x3c90000000000000}, "known error: directed rounding, 1 + 2^-54"},
        {{0xbff0000000000000, 0xbc90000000000000}, "known error: directed rounding, -1 - 2^-54"},
        {{0x3ff0000000000000, 0x4008000000000000}, "known error: directed rounding, 1 and 3"},
        {{0x3fb999999999999a, 0x3fc999999999999a}, "known error: directed rounding, 0.1 and 0.2"},
        {{0x3ff0000000000000, 0xbff0000000000000}, "a sum of +0, or -0 when rounded down"},
        {{0x0010000000000000, 0x3fe0000000000000}, "a product that is subnormal"}}},
      {"f32 f32 f32",
       {{{0x3f800001, 0x3f800001, 0xbf800002}, "one rounding: the product's low half is left"},
        {{0x3f800001, 0x3f7fffff, 0xbf800000}, "one rounding: the product's low half is left"},
        {{0x4b000001, 0x3f800001, 0x3f000000}, "known error: directed rounding"},
        {{0x00000000, 0x7f800000, 0x3f800000}, "0 * inf"},
        {{0x7f7fffff, 0x40000000, 0xff7fffff}, "the product alone would overflow"},
        {{0x3f800000, 0x7f800000, 0xff800000}, "inf - inf"},
        {{0x3f800000, 0x3f800000, 0xbf800000}, "exact cancellation"},
        {{0x00800000, 0x3f000000, 0x00000001}, "subnormal result"},
        {{0x40000000, 0x3e000000, 0x3f400000}, "1 exactly: the edge of .sat"}}},
      {"f64 f64 f64",
       {{{0x3ff0000000000001, 0x3ff0000000000001, 0xbff0000000000002}, "one rounding"},
        {{0x7ff8000000000001, 0x7ff8000000000002, 0x7ff8000000000003}, "three NaN"},
        {{0x3ff0000000000000, 0x7ff8000000000002, 0x7ff8000000000003}, "two NaN"},
        {{0x7ff8000000000001, 0x3ff0000000000000, 0x7ff8000000000003}, "two NaN"},
        {{0x7ff0000000000000, 0x0000000000000000, 0x7ff8000000000003}, "inf * 0 + NaN"},
        {{0x0000000000000000, 0x7ff0000000000000, 0x3ff0000000000000}, "0 * inf"},
        {{0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000}, "inf - inf"},
        {{0x7fefffffffffffff, 0x4000000000000000, 0xffefffffffffffff}, "product overflows"}}},
      {"f32",
       {{{0x3fffffff}, "known error: cvt.rz, just under 2"},
        {{0xbfffffff}, "known error: cvt.rz, just above -2"},
        {{0x3f801fff}, "known error: cvt.rz, f16 would round up"},
        {{0x3f80ffff}, "known error: cvt.rz, bf16 would round up"},
        {{0x477fffff}, "known error: cvt.rz, f16 stays finite"},
        {{0x3fb504f3}, "sqrt 2"},
        {{0x40400000}, "3"},
        {{0x40800000}, "4"},
        {{0x42c80000}, "100"},
        {{0x461c4000}, "10000"}}},
      {"i64 i64 carry",
       {{{0xffffffffffffffff, 1, 0}, "known error: 64-bit carry"},
        {{0x00000000ffffffff, 1, 0}, "known error: 64-bit carry, out of the low word"},
        {{0xffffffffffffffff, 0, 1}, "known error: 64-bit carry, from the flag alone"},
        {{0xfffffffffffffffe, 1, 1}, "known error: 64-bit carry, to all but the edge"},
        {{0x0000000100000000, 1, 0}, "borrow out of the high word"},
        {{0, 0, 1}, "borrow from the flag alone"}}},
      {"i64 i64",
       {{{0xffffffffffffffff, 1}, "known error: 64-bit carry"},
        {{0x00000000ffffffff, 1}, "known error: 64-bit carry, out of the low word"},
        {{0x00000000ffffffff, 0x00000000ffffffff}, "products of low words carry"}}},
  };
  return rows;
}

}  // namespace

std::vector<Row> named_rows(const std::string& set) {
  const auto found = table().find(set);
  return found == table().end() ? Rows{} : found->second;
}

}  // namespace ptxvm_vectors
