// SPDX-License-Identifier: MIT
// mma, wmma and wgmma with operands that are not 16 bits wide, against products of plain loops. The
// places of elements in fragments are written out as the PTX ISA has them.
#include <cmath>
#include <functional>

#include "catch.h"
#include "num/float8.h"
#include "run_ptx.h"

using namespace ptxvm_test;

namespace {

constexpr size_t kLaneBytes = 256;

int small(int i, int j) {
  return (i * 7 + j * 5) % 9 - 4;
}

struct Place {
  int row, column;
};

/// One mma: registers of the operands and what they hold.
struct Case {
  std::string opcode, input, sum;  // register types: b32 or f64, f32, b32 or f64
  int m, k;
  int a, b, c;   // registers
  int elements;  // of an operand's register
  std::function<uint64_t(int)> encode;
  double scale = 1;
};

// 9.7.14.5: with t = lane % 4, g = lane / 4.
Place place_a(const Case& t, int lane, int reg, int e) {
  const int halves = t.m / 8;
  return {lane / 4 + 8 * (reg % halves),
          (reg / halves) * 4 * t.elements + lane % 4 * t.elements + e};
}
Place place_b(const Case& t, int lane, int reg, int e) {
  return {reg * 4 * t.elements + lane % 4 * t.elements + e, lane / 4};
}
Place place_c(int lane, int reg) {
  return {lane / 4 + 8 * (reg / 2), lane % 4 * 2 + reg % 2};
}

double encoded_sum(const Case& t, const std::byte* at) {
  if (t.sum == "f64") {
    double v;
    std::memcpy(&v, at, 8);
    return v;
  }
  uint32_t bits;
  std::memcpy(&bits, at, 4);
  return t.sum == "f32" ? static_cast<double>(std::bit_cast<float>(bits))
                        : static_cast<double>(static_cast<int32_t>(bits));
}

void check(const Case& t) {
  INFO(t.opcode);
  const int sum_bytes = t.sum == "f64" ? 8 : 4;
  std::vector<std::byte> input(32 * kLaneBytes);
  for (int lane = 0; lane < 32; ++lane) {
    std::byte* at = input.data() + static_cast<size_t>(lane) * kLaneBytes;
    const auto put = [&](int reg, bool first) {
      uint64_t word = 0;
      for (int e = 0; e < t.elements; ++e) {
        const Place p = first ? place_a(t, lane, reg, e) : place_b(t, lane, reg, e);
        const int value = first ? small(p.row, p.column) : small(p.column + 3, p.row);
        word |= t.encode(value) << (t.elements == 1 ? 0 : 32 / t.elements * e);
      }
      std::memcpy(at + (first ? reg : t.a + reg) * 8, &word, 8);
    };
    for (int r = 0; r < t.a; ++r) put(r, true);
    for (int r = 0; r < t.b; ++r) put(r, false);
  }
  const auto list = [](const std::string& stem, int n) {
    std::string text = "{";
    for (int i = 0; i < n; ++i) text += (i ? ", " : "") + stem + std::to_string(i);
    return text + "}";
  };
  std::string body = "  .reg ." + t.input + " %a<8>, %b<4>; .reg ." + t.sum + " %c<4>;\n" +
                     "  .reg .b64 %at, %to; mad.wide.u32 %at, %lane, 256, %base;\n"
                     "  mad.wide.u32 %to, %lane, 32, %base;\n";
  for (int i = 0; i < t.a + t.b; ++i) {
    body += "  ld.global." + t.input +
            (i < t.a ? " %a" + std::to_string(i) : " %b" + std::to_string(i - t.a)) + ", [%at+" +
            std::to_string(65536 + i * 8) + "];\n";
  }
  const char* one = t.sum == "f64" ? "0d3FF0000000000000" : t.sum == "f32" ? "0f3F800000" : "1";
  for (int i = 0; i < t.c; ++i) {
    body += "  mov." + t.sum + " %c" + std::to_string(i) + ", " + one + ";\n";
  }
  body += "  " + t.opcode + " " + list("%c", t.c) + ", " + list("%a", t.a) + ", " +
          list("%b", t.b) + ", " + list("%c", t.c) + ";\n";
  for (int i = 0; i < t.c; ++i) {
    body += "  st.global." + t.sum + " [%to+" + std::to_string(i * sum_bytes) + "], %c" +
            std::to_string(i) + ";\n";
  }
  const Run r = run(kernel(body, "sm_90"), input);
  REQUIRE(!r.result.fault);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < t.c; ++i) {
      const Place p = place_c(lane, i);
      double expected = 1;
      for (int k = 0; k < t.k; ++k) expected += t.scale * small(p.row, k) * small(p.column + 3, k);
      const double got = encoded_sum(t, r.out.data() + lane * 32 + i * sum_bytes);
      CHECK(got == expected);
    }
  }
}

uint64_t as_single(int v) {
  return std::bit_cast<uint32_t>(static_cast<float>(v));
}
uint64_t as_double(int v) {
  return std::bit_cast<uint64_t>(static_cast<double>(v));
}
uint64_t as_byte(int v) {
  return static_cast<uint8_t>(v);
}
uint64_t as_nibble(int v) {
  return static_cast<uint64_t>(v) & 15;
}
uint64_t as_e4m3(int v) {
  return num::double_to_float8(v, num::Float8::kE4m3);
}
uint64_t as_e5m2(int v) {
  return num::double_to_float8(v, num::Float8::kE5m2);
}

}  // namespace

TEST_CASE("mma with tf32, f64, 8-bit and 4-bit operands") {
  const std::string mma = "mma.sync.aligned.";
  check({mma + "m16n8k4.row.col.f32.tf32.tf32.f32", "b32", "f32", 16, 4, 2, 1, 4, 1, as_single});
  check({mma + "m16n8k8.row.col.f32.tf32.tf32.f32", "b32", "f32", 16, 8, 4, 2, 4, 1, as_single});
  check({mma + "m8n8k16.row.col.s32.s8.s8.s32", "b32", "b32", 8, 16, 1, 1, 2, 4, as_byte});
  check({mma + "m16n8k16.row.col.s32.s8.s8.s32", "b32", "b32", 16, 16, 2, 1, 4, 4, as_byte});
  check({mma + "m16n8k32.row.col.s32.s8.s8.s32", "b32", "b32", 16, 32, 4, 2, 4, 4, as_byte});
  check({mma + "m16n8k32.row.col.s32.s4.s4.s32", "b32", "b32", 16, 32, 2, 1, 4, 8, as_nibble});
  check({mma + "m16n8k64.row.col.satfinite.s32.s4.s4.s32", "b32", "b32", 16, 64, 4, 2, 4, 8,
         as_nibble});
  check({mma + "m16n8k32.row.col.f32.e4m3.e4m3.f32", "b32", "f32", 16, 32, 4, 2, 4, 4, as_e4m3});
  check({mma + "m16n8k32.row.col.f32.e5m2.e5m2.f32", "b32", "f32", 16, 32, 4, 2, 4, 4, as_e5m2});
  check({mma + "m8n8k4.row.col.f64.f64.f64.f64", "f64", "f64", 8, 4, 1, 1, 2, 1, as_double});
  check({mma + "m16n8k8.row.col.f64.f64.f64.f64", "f64", "f64", 16, 8, 4, 2, 4, 1, as_double});
  check({mma + "m16n8k16.row.col.f64.f64.f64.f64", "f64", "f64", 16, 16, 8, 4, 4, 1, as_double});
}

TEST_CASE("sums of integers wrap, or stop at the ends of their range") {
  const std::string body =
      "  mov.b32 %r1, 0x7f7f7f7f; mov.b32 %r2, 0x7ffffff0;\n"
      "  mma.sync.aligned.m8n8k16.row.col[S].s32.s8.s8.s32 {%r3, %r4}, {%r1}, {%r1}, {%r2, %r2};\n"
      "  st.global.u32 [%out], %r3;";
  const auto result = [&](const std::string& how) {
    std::string text = body;
    text.replace(text.find("[S]"), 3, how);
    return run(kernel(text, "sm_80")).at<int32_t>(5);
  };
  CHECK(result("") == static_cast<int32_t>(0x7ffffff0u + 16 * 127 * 127));
  CHECK(result(".satfinite") == INT32_MAX);
}

TEST_CASE("wmma: loaded, multiplied and stored as a plain product") {
  struct Wmma {
    std::string shape, type, sum;  // of the elements in memory
    int m, n, k, a, b, c;
    bool a_columns, b_columns;
  };
  for (const Wmma& t : {Wmma{"m16n16k16", "f16", "f32", 16, 16, 16, 8, 8, 8, false, false},
                        Wmma{"m8n32k16", "f16", "f32", 8, 32, 16, 8, 8, 8, true, false},
                        Wmma{"m32n8k16", "f16", "f32", 32, 8, 16, 8, 8, 8, false, true},
                        Wmma{"m16n16k16", "bf16", "f32", 16, 16, 16, 4, 4, 8, false, true},
                        Wmma{"m16n16k8", "tf32", "f32", 16, 16, 8, 4, 4, 8, false, true},
                        Wmma{"m16n16k16", "s8", "s32", 16, 16, 16, 2, 2, 8, true, true},
                        Wmma{"m8n8k4", "f64", "f64", 8, 8, 4, 1, 1, 2, false, true}}) {
    INFO(t.shape << " " << t.type);
    const size_t bytes = t.type == "f64" ? 8 : t.type == "tf32" ? 4 : t.type == "s8" ? 1 : 2;
    std::vector<std::byte> input(16384);
    const auto put = [&](size_t base, int index, int value) {
      const uint64_t bits = t.type == "f64"    ? as_double(value)
                            : t.type == "tf32" ? as_single(value)
                            : t.type == "bf16" ? as_single(value) >> 16
                            : t.type == "s8"   ? as_byte(value)
                                               : num::float_to_half(static_cast<float>(value));
      std::memcpy(input.data() + base + static_cast<size_t>(index) * bytes, &bits, bytes);
    };
    for (int i = 0; i < t.m; ++i) {
      for (int k = 0; k < t.k; ++k) put(0, t.a_columns ? k * t.m + i : i * t.k + k, small(i, k));
    }
    for (int k = 0; k < t.k; ++k) {
      for (int j = 0; j < t.n; ++j) put(8192, t.b_columns ? j * t.k + k : k * t.n + j, small(k, j));
    }
    const std::string in = t.type == "f64" ? "f64" : "b32";
    const std::string sum = t.sum == "f32" ? "f32" : t.sum == "f64" ? "f64" : "b32";
    const auto list = [](const std::string& stem, int n) {
      std::string text = "{";
      for (int i = 0; i < n; ++i) text += (i ? ", " : "") + stem + std::to_string(i);
      return text + "}";
    };
    const std::string a_layout = t.a_columns ? "col" : "row",
                      b_layout = t.b_columns ? "col" : "row";
    const std::string types =
        t.type == "f16" ? ".f32.f32" : "." + t.sum + "." + t.type + "." + t.type + "." + t.sum;
    const std::string body =
        "  .reg ." + in + " %a<8>, %b<8>; .reg ." + sum +
        " %c<8>; .reg .b64 %x, %y;\n"
        "  add.u64 %x, %base, 65536; add.u64 %y, %base, 73728;\n"
        "  wmma.load.a.sync.aligned." +
        a_layout + "." + t.shape + ".global." + t.type + " " + list("%a", t.a) +
        ", [%x];\n"
        "  wmma.load.b.sync.aligned." +
        b_layout + "." + t.shape + "." + t.type + " " + list("%b", t.b) + ", [%y], " +
        std::to_string(t.b_columns ? t.k : t.n) +
        ";\n"
        "  wmma.load.c.sync.aligned.row." +
        t.shape + ".global." + t.sum + " " + list("%c", t.c) + ", [%base], " + std::to_string(t.n) +
        ";\n"
        "  wmma.mma.sync.aligned." +
        a_layout + "." + b_layout + "." + t.shape + types + " " + list("%c", t.c) + ", " +
        list("%a", t.a) + ", " + list("%b", t.b) + ", " + list("%c", t.c) +
        ";\n"
        "  wmma.store.d.sync.aligned.row." +
        t.shape + ".global." + t.sum + " [%base], " + list("%c", t.c) + ", " + std::to_string(t.n) +
        ";\n";
    const Run r = run(kernel(body, "sm_80"), input);
    REQUIRE(!r.result.fault);
    for (int i = 0; i < t.m; ++i) {
      for (int j = 0; j < t.n; ++j) {
        double expected = 0;
        for (int k = 0; k < t.k; ++k) expected += small(i, k) * small(k, j);
        const int at = i * t.n + j;
        const std::byte* p = r.out.data();
        double got = 0;
        if (t.sum == "f64") std::memcpy(&got, p + at * 8, 8);
        if (t.sum == "f32") {
          float v;
          std::memcpy(&v, p + at * 4, 4);
          got = static_cast<double>(v);
        }
        if (t.sum == "s32") {
          int32_t v;
          std::memcpy(&v, p + at * 4, 4);
          got = v;
        }
        CHECK(got == expected);
      }
    }
  }
}

TEST_CASE("wgmma with tf32 and 8-bit operands, A in shared memory and in registers") {
  struct Wgmma {
    const char *types, *sum;
    int k, bytes;
    uint64_t (*encode)(int);
    const char* tail;
  };
  for (const Wgmma& t : {Wgmma{"m64n8k8.f32.tf32.tf32", "f32", 8, 4, as_single, ", 1, -1"},
                         Wgmma{"m64n8k32.f32.e4m3.e4m3", "f32", 32, 1, as_e4m3, ", 1, -1"},
                         Wgmma{"m64n8k32.s32.s8.s8", "b32", 32, 1, as_byte, ""}}) {
    for (bool registers : {false, true}) {
      INFO(t.types << (registers ? ", registers" : ", shared"));
      // No swizzle: 8 rows of 16 bytes are one after the other; halves of k 128 bytes apart, groups
      // of eight rows 256.
      std::vector<std::byte> input(4096);
      const auto put = [&](int base, int row, int k, int value) {
        const int byte = k * t.bytes;
        const uint64_t bits = t.encode(value);
        std::memcpy(
            input.data() + base + row / 8 * 256 + byte / 16 * 128 + row % 8 * 16 + byte % 16, &bits,
            static_cast<size_t>(t.bytes));
      };
      for (int k = 0; k < t.k; ++k) {
        for (int i = 0; i < 64; ++i) put(0, i, k, small(i, k));
        for (int j = 0; j < 8; ++j) put(2048, j, k, small(k, j));
      }
      // Lane l of warp w holds row 16 w + l / 4 of the first register, as for mma.
      const std::string fragment =
          "  shr.u32 %r1, %lane, 5; shl.b32 %r1, %r1, 9; and.b32 %r2, %lane, 31;\n"
          "  mad.lo.u32 %r1, %r2, 4, %r1; add.u32 %r1, %r1, %r20;\n"
          "  ld.shared.b32 %r4, [%r1]; ld.shared.b32 %r5, [%r1+256];\n"
          "  ld.shared.b32 %r6, [%r1+128]; ld.shared.b32 %r7, [%r1+384];\n";
      const std::string sum = t.sum;
      const std::string body =
          "  .shared .align 128 .b8 tile[4096]; .reg ." + sum +
          " %c<4>;\n"
          "  mov.u32 %r20, tile; mad.lo.u32 %r21, %lane, 32, %r20; add.u64 %d1, %base, 65536;\n"
          "  mad.wide.u32 %d1, %lane, 32, %d1;\n"
          "  ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%d1];\n"
          "  st.shared.v4.b32 [%r21], {%r8, %r9, %r10, %r11};\n"
          "  ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%d1+16];\n"
          "  st.shared.v4.b32 [%r21+16], {%r8, %r9, %r10, %r11};\n"
          "  fence.proxy.async; bar.sync 0;\n" +
          fragment +
          "  shr.u32 %r12, %r20, 4; cvt.u64.u32 %d2, %r12; or.b64 %d2, %d2, 0x1000080000;\n"
          "  add.u64 %d3, %d2, 128;\n"
          "  wgmma.fence.sync.aligned;\n  wgmma.mma_async.sync.aligned." +
          std::string(t.types) + " {%c0, %c1, %c2, %c3}, " +
          (registers ? "{%r4, %r5, %r6, %r7}" : "%d2") + ", %d3, 0" + t.tail +
          ";\n"
          "  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
          "  st.global.v4." +
          sum + " [%out], {%c0, %c1, %c2, %c3};";
      const Run r = run(kernel(body, "sm_90a"), input, 128);
      REQUIRE(!r.result.fault);
      const double sign = t.tail[0] != '\0' ? -1 : 1;
      for (int thread = 0; thread < 128; ++thread) {
        for (int i = 0; i < 4; ++i) {
          const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2);
          const int column = thread % 4 * 2 + i % 2;
          double expected = 0;
          for (int k = 0; k < t.k; ++k) expected += sign * small(row, k) * small(k, column);
          const double got = sum == "f32" ? static_cast<double>(r.at<float>(thread, i))
                                          : static_cast<double>(r.at<int32_t>(thread, i));
          CHECK(got == expected);
        }
      }
    }
  }
}

TEST_CASE("wmma with operands of 4 bits and of 1 bit") {
  const auto product = [](const std::string& type, const std::string& operation, int k) {
    std::vector<std::byte> input(32 * 64);
    const auto word = [](int matrix, int i) {
      return 0x9e3779b9u * (2654435761u * (7 * matrix + i));
    };
    for (int i = 0; i < 64; ++i) {
      const uint32_t v = word(i / 32, i % 32);
      std::memcpy(&input[static_cast<size_t>(i) * 4], &v, 4);
    }
    const std::string shape = k == 32 ? "m8n8k32" : "m8n8k128";
    const std::string load = ".sync.aligned.", from = shape + ".global." + type;
    const Run r =
        run(kernel("add.u64 %d1, %base, 65536; mov.u32 %r1, " + std::to_string(k) +
                   ";\n"
                   "wmma.load.a" +
                   load + "row." + from +
                   " {%r2}, [%d1], %r1;\n"
                   "wmma.load.b" +
                   load + "col." + from +
                   " {%r3}, [%d1+128], %r1;\n"
                   "mov.u32 %r4, 5;\n"
                   "wmma.mma" +
                   operation + ".sync.aligned.row.col." + shape + ".s32." + type + "." + type +
                   ".s32 {%r5, %r6}, {%r2}, {%r3}, {%r4, %r4};\n"
                   "wmma.store.d.sync.aligned.row." +
                   shape + ".global.s32 [%base], {%r5, %r6}, 8;"),
            input);
    if (r.result.fault) FAIL(r.result.fault->format());
    const int bits = 128 / k;
    const auto element = [&](int matrix, int row, int i) {
      const int at = i * bits;
      int v = static_cast<int>(word(matrix, row * 4 + at / 32) >> (at % 32) & ((1u << bits) - 1));
      return type == "s4" && v >= 8 ? v - 16 : v;
    };
    for (int i = 0; i < 64; ++i) {
      int32_t sum = 5, got = 0;
      for (int n = 0; n < k; ++n) {
        const int a = element(0, i / 8, n), b = element(1, i % 8, n);
        sum += operation.starts_with(".xor") ? a ^ b : a * b;
      }
      std::memcpy(&got, r.out.data() + i * 4, 4);
      CHECK(got == sum);
    }
  };
  product("s4", "", 32);
  product("u4", "", 32);
  product("b1", ".and.popc", 128);
  product("b1", ".xor.popc", 128);
}
