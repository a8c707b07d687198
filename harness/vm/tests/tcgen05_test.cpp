// SPDX-License-Identifier: MIT
// Tensor memory and tcgen05: where elements stand, which descriptors mean what, and what the
// checkers find. Elements are small integers, whose products and sums are exact.
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstring>
#include <functional>

#include "catch.h"
#include "memory/tensor_copy.h"
#include "num/float8.h"
#include "num/half.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

// kPacked is e2m1 without gaps.
enum class Type { kHalf, kBfloat, kTf32, kE4m3, kE5m2, kE2m3, kE3m2, kE2m1, kPacked, kU8, kS8 };

int size_of(Type t) {
  return t == Type::kTf32 ? 4 : t <= Type::kBfloat ? 2 : 1;
}
uint32_t bits_of(Type t) {
  if (t == Type::kE2m3 || t == Type::kE3m2) return 6;
  return t == Type::kE2m1 || t == Type::kPacked ? 4 : static_cast<uint32_t>(size_of(t)) * 8;
}
// As the instruction descriptor names it.
uint32_t code_of(Type t) {
  constexpr uint32_t kCodes[] = {0, 1, 2, 0, 1, 3, 4, 5, 1, 0, 1};
  return kCodes[static_cast<size_t>(t)];
}

struct Setup {
  int m = 128, n = 64;
  int blocks = 1;  // .cta_group
  bool a_tensor = false, a_mn = false, b_mn = false;
  Swizzle swizzle = Swizzle::k128B;
  int step = 0;  // of k within the panel, for K-major with swizzle
  Type a = Type::kHalf, b = Type::kHalf;
  bool half_sums = false, negate_a = false, negate_b = false;
  int accumulate = -1;  // scale-input-d; below 0 the sums begin at 0
  bool masks = false;   // lanes 3 and 40 of each block are not written
  int lane = 0;         // where D begins
  int base = 0;         // added to what D holds, of integers
  bool saturate = false;
  std::string scaled;    // the kind and its modifiers, where A and B have scales
  int scales = 0;        // of a row
  uint32_t a_first = 0;  // the first byte of the scales in their cells
  uint32_t b_first = 0;
  bool exponents = true;    // ue8m0, else ue4m3
  bool stationary = false;  // .ws
  bool shifts = false;      // .ashift
  std::string collector;
  uint64_t zero_columns = 0;  // the zero-column mask descriptor
  uint32_t most_shift = 0;    // its code in the instruction descriptor

  int rows() const { return m / blocks; }
  int columns() const { return n / blocks; }
  // Sets of lanes with columns of their own.
  int banks() const { return stationary || blocks == 2 ? 128 / rows() : 1; }
  int bank(int column) const { return column / (n / banks()); }
  int shift() const { return static_cast<int>(zero_columns >> 56); }
  // Of B, with those that only a shift reaches.
  int b_rows() const { return columns() + (shift() + 15) / 16 * 16; }
  int depth() const { return a == Type::kPacked ? 64 : 32 / size_of(a); }
  bool integers() const { return a >= Type::kU8; }
};

uint32_t width(Swizzle s) {
  return s == Swizzle::k128B ? 128 : s == Swizzle::k64B ? 64 : s == Swizzle::k32B ? 32 : 16;
}

// An operand of rows x 32 bytes as it stands in shared memory.
struct Operand {
  bool mn;
  Swizzle swizzle;
  int extent, step;
  Type type = Type::kHalf;

  uint32_t size() const { return static_cast<uint32_t>(size_of(type)); }
  // MN-major, 128 bytes of 32 elements, four rows of k, atoms of 32 bytes.
  bool wide() const { return mn && type == Type::kTf32; }
  uint32_t panels() const { return (static_cast<uint32_t>(extent) + 31) / 32 * 512; }
  // Puts an element to its place.
  void put(std::byte* operand, int row, int k, uint32_t value) const {
    const uint32_t bits = bits_of(type);
    const int each = type == Type::kPacked ? 32 : static_cast<int>(16 / size());  // of a chunk
    const uint32_t chunk =
        place(mn ? row / each * each : row, mn ? k : k / each * (16 / static_cast<int>(size())));
    const uint32_t at = static_cast<uint32_t>((mn ? row : k) % each) * bits;
    uint64_t word;
    std::memcpy(&word, operand + chunk + at / 32 * 4, sizeof word);
    word |= uint64_t{value} << at % 32;
    std::memcpy(operand + chunk + at / 32 * 4, &word, sizeof word);
  }
  uint32_t place(int row, int k) const {
    const auto r = static_cast<uint32_t>(row), c = static_cast<uint32_t>(k);
    const uint32_t w = width(swizzle), e = static_cast<uint32_t>(extent);
    const uint32_t s = size(), depth = 32 / s, chunk = 16 / s;
    uint32_t at = 0;
    if (wide()) {
      at = r / 32 * 512 + c / 4 * panels() + c % 4 * 128 + r % 32 * 4;
      return at ^ (at >> 7 & 3) << 5;
    }
    if (swizzle == Swizzle::kNone && mn) {
      at = r / chunk * 128 + c / 8 * (e / chunk * 128) + c % 8 * 16 + r % chunk * s;
    } else if (swizzle == Swizzle::kNone) {
      at = r / 8 * 128 + c / chunk * (e / 8 * 128) + r % 8 * 16 + c % chunk * s;
    } else if (mn) {
      at = r / (w / s) * (depth * w) + c * w + r % (w / s) * s;
    } else {
      at = r * w + static_cast<uint32_t>(step) * 32 + c * s;
    }
    return at ^ (at >> 7 & (w / 16 - 1)) << 4;
  }

  uint64_t descriptor(uint32_t base) const {
    const uint32_t w = width(swizzle), e = static_cast<uint32_t>(extent);
    uint64_t leading = mn ? 32 / size() * w : 0, stride = 8 * w;
    if (swizzle == Swizzle::kNone) {
      leading = (mn ? e * size() / 16 : e / 8) * 128;
      stride = 128;
    }
    if (wide()) {
      leading = 512;
      stride = panels();
    }
    constexpr uint64_t kModes[] = {0, 6, 4, 2};
    const uint64_t start = base + static_cast<uint32_t>(step) * 32;
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | uint64_t{1} << 46 |
           (wide() ? 1 : kModes[static_cast<size_t>(swizzle)]) << 61;
  }
};

constexpr uint32_t kSharedBytes = 49152, kB = 32768;  // of each block; where B begins
constexpr uint32_t kBase = 1024;                      // the first shared address

Operand a_of(const Setup& s) {
  return {s.a_mn, s.swizzle, s.rows(), s.step, s.a};
}
Operand b_of(const Setup& s) {
  return {s.b_mn, s.swizzle, s.b_rows(), s.step, s.b};
}

uint32_t instruction(const Setup& s) {
  const auto bit = [](bool value, int at) { return static_cast<uint32_t>(value) << at; };
  const uint32_t common = code_of(s.a) << 7 | code_of(s.b) << 10 | bit(s.negate_a, 13) |
                          bit(s.negate_b, 14) | bit(s.a_mn, 15) | bit(s.b_mn, 16) |
                          static_cast<uint32_t>(s.n / 8) << 17;
  if (s.scales != 0) {
    return common | s.b_first << 4 | bit(s.exponents, 23) | static_cast<uint32_t>(s.m / 128) << 27 |
           s.a_first << 29;
  }
  return common | (s.integers() ? 2u << 4 : bit(!s.half_sums, 4)) | bit(s.saturate, 3) |
         static_cast<uint32_t>(s.m / 16) << 24 | s.most_shift << 30;
}

int a_value(int row, int k) {
  return (row * 3 + k * 5) % 7 - 3;
}
int b_value(int column, int k) {
  return (column * 2 + k * 3) % 5 - 2;
}
int d_value(int row, int column) {
  return (row + 2 * column) % 9 * 8 - 32;
}
// What is multiplied in place of a value that the type does not have.
int seen(int value, Type type) {
  return type == Type::kU8 ? value + 200 : value;
}
// A scale of A (0) or B (1), and its byte.
int factor_index(int operand, int row, int k) {
  return (row * (operand + 1) + row / 32 + k) % 3;
}
float factor(int operand, int row, int k) {
  return std::ldexp(0.5f, factor_index(operand, row, k));
}
uint32_t factor_byte(const Setup& s, int operand, int row, int k) {
  const auto index = static_cast<uint32_t>(factor_index(operand, row, k));
  return s.exponents ? 126 + index : 0x30 + 8 * index;
}

// Of tf32 the low 13 bits do not count: they are set.
uint32_t encode(int value, Type type) {
  const auto v = static_cast<float>(value);
  const auto size = static_cast<uint32_t>(std::abs(value));  // up to 3
  switch (type) {
    case Type::kE2m3:  // a sign, and eighths from 0 on
      return (size < 2 ? 8 * size : 16 + (size - 2) * 4) | (value < 0 ? 32u : 0u);
    case Type::kE3m2:
      return (size == 0 ? 0 : size == 1 ? 12 : 16 + (size - 2) * 2) | (value < 0 ? 32u : 0u);
    case Type::kE2m1:
    case Type::kPacked:
      return (size < 2 ? 2 * size : 2 + size) | (value < 0 ? 8u : 0u);
    case Type::kU8:
    case Type::kS8:
      return static_cast<uint8_t>(seen(value, type));
    case Type::kHalf:
      return num::float_to_half(v);
    case Type::kBfloat:
      return num::float_to_bfloat(v);
    case Type::kTf32:
      return std::bit_cast<uint32_t>(v) | 0x1fff;
    case Type::kE4m3:
      return num::double_to_float8(value, num::Float8::kE4m3);
    case Type::kE5m2:
      break;
  }
  return num::double_to_float8(value, num::Float8::kE5m2);
}

// Lane and column of an element of D in the tensor memory of its block (PTX ISA 9.7.16.10.5).
struct Cell {
  int block, lane, column;
};
Cell cell_of(const Setup& s, int row, int column) {
  const int block = row / s.rows(), r = row % s.rows();
  if (s.rows() == 128) return {block, r, column};
  if (s.banks() != 1) return {block, r + s.bank(column) * s.rows(), column % (s.n / s.banks())};
  return {block, r % 16 + r / 16 * 32 + s.lane, column};
}
// A row of A; in tensor memory each bank has other ones.
int a_row(const Setup& s, int row, int column) {
  return s.a_tensor ? row + s.bank(column) : row;
}

// Whether columns are taken as zeros: the spans of a bank's mask one after the other.
std::vector<bool> zeros_of(uint64_t descriptor, int n, int banks) {
  std::vector<bool> out;
  for (int bank = 0; bank < banks; ++bank) {
    const int spans[] = {static_cast<int>(descriptor >> 48 & 0xff) + 1,
                         static_cast<int>(descriptor >> 40 & 0xff) + 1};
    bool ones = descriptor >> (32 + bank) & 1;
    int left = spans[ones] - static_cast<int>(descriptor >> (8 * bank) & 0xff);
    for (int column = 0; column < n / banks; ++column) {
      out.push_back(ones && (descriptor >> 39 & 1));
      if (--left > 0) continue;
      ones = !ones;
      left = spans[ones];
    }
  }
  return out;
}

// What stands in shared memory and, at first, in tensor memory: its columns one after the other.
struct Image {
  std::vector<std::byte> shared;
  std::vector<uint32_t> cells = std::vector<uint32_t>(128 * 256, 0xdeadbeef);
};

constexpr int kA = 128;                 // the column of A
constexpr int kFactors[] = {240, 244};  // and of scales

Image image(const Setup& s, int block) {
  Image out;
  out.shared.resize(kSharedBytes);
  for (int k = 0; k < s.depth(); ++k) {
    for (int r = 0; r < s.rows(); ++r) {
      const uint32_t v = encode(a_value(block * s.rows() + r, k), s.a);
      a_of(s).put(out.shared.data(), r, k, v);
      const uint32_t at = static_cast<uint32_t>(k) * bits_of(s.a);
      for (int bank = 0; bank < s.banks(); ++bank) {
        const int column = bank * (s.n / s.banks());
        const auto lane = static_cast<uint32_t>(cell_of(s, r, column).lane);
        uint32_t& cell = out.cells[(kA + at / 32) * 128 + lane];
        if (at % 32 == 0) cell = 0;
        cell |= encode(a_value(block * s.rows() + r + bank, k), s.a) << at % 32;
      }
    }
    for (int c = 0; c < s.b_rows(); ++c) {
      const uint32_t v = encode(b_value(block * s.columns() + c, k), s.b);
      b_of(s).put(out.shared.data() + kB, c, k, v);
    }
  }
  for (int r = 0; r < s.m; ++r) {
    for (int c = 0; c < s.n; ++c) {
      const Cell at = cell_of(s, r, c);
      if (at.block != block) continue;
      const auto d = static_cast<float>(d_value(r, c));
      out.cells[static_cast<size_t>(at.column * 128 + at.lane)] =
          s.half_sums    ? num::float_to_half(d)
          : s.integers() ? static_cast<uint32_t>(d_value(r, c) + s.base)
                         : std::bit_cast<uint32_t>(d);
    }
  }
  for (int operand = 0; s.scales != 0 && operand < 2; ++operand) {
    const int first = static_cast<int>(operand == 0 ? s.a_first : s.b_first);
    for (int r = 0; r < (operand == 0 ? s.rows() : s.n); ++r) {
      uint32_t cell = 0x55555555;
      for (int k = 0; k < s.scales; ++k) {
        const int row = r + (operand == 0 ? block * s.rows() : 0);
        reinterpret_cast<uint8_t*>(&cell)[first + k] =
            static_cast<uint8_t>(factor_byte(s, operand, row, k));
      }
      for (int copy = 0; copy < 128; copy += 32)
        out.cells[static_cast<size_t>((kFactors[operand] + r / 32) * 128 + copy + r % 32)] = cell;
    }
  }
  return out;
}

std::string registers(int count, const char* name = "%v") {
  std::string s = "{";
  for (int i = 0; i < count; ++i) s += (i ? ", " : "") + std::string(name) + std::to_string(i);
  return s + "}";
}

std::string number(uint64_t v) {
  return std::to_string(v);
}

// The head of a kernel of 128 threads: %in and %out are those of the block, 256 KiB each, and
// shared memory and 256 columns of tensor memory are filled from %in.
std::string begin(int blocks) {
  const std::string group = ".cta_group::" + number(static_cast<uint64_t>(blocks));
  std::string text =
      ".version 9.0\n.target sm_100a\n.address_size 64\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      "  .shared .align 1024 .b8 area[49152]; .shared .align 8 .b8 bar[8], where[8];\n"
      "  .reg .b64 %in, %out, %at, %d<8>; .reg .b32 %tid, %warp, %rank, %t, %lanes, %r<16>;\n"
      "  .reg .b32 %v<128>, %m<8>; .reg .pred %first, %zero, %p, %accumulate;\n"
      "  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %tid, %tid.x;\n"
      "  mov.u32 %rank, %cluster_ctarank; mad.wide.u32 %in, %rank, 262144, %in;\n"
      "  mad.wide.u32 %out, %rank, 262144, %out;\n"
      "  shr.u32 %warp, %tid, 5; setp.eq.u32 %first, %tid, 0; setp.eq.u32 %zero, %warp, 0;\n"
      "  shl.b32 %r0, %tid, 4; mad.wide.u32 %at, %tid, 16, %in; mov.u32 %r1, area;\n"
      "  add.u32 %r1, %r1, %r0; mov.u32 %r2, 0;\n"
      "$copy:\n"
      "  ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%at]; st.shared.v4.b32 [%r1], {%v0, %v1, %v2, "
      "%v3};\n"
      "  add.u64 %at, %at, 2048; add.u32 %r1, %r1, 2048; add.u32 %r2, %r2, 1;\n"
      "  setp.lt.u32 %p, %r2, 24; @%p bra $copy;\n"
      "  fence.proxy.async.shared::cta;\n"
      "  @%first mbarrier.init.shared.b64 [bar], 1;\n"
      "  @%first fence.mbarrier_init.release.cluster;\n"
      "  @!%zero bra $others;\n"
      "  tcgen05.alloc" +
      group +
      ".sync.aligned.shared::cta.b32 [where], 256;\n"
      "$others:\n  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
      "  ld.shared.b32 %t, [where]; shl.b32 %lanes, %warp, 21; add.u32 %lanes, %lanes, %t;\n"
      "  mad.wide.u32 %at, %tid, 4, %in; add.u64 %at, %at, 65536;\n";
  for (int c = 0; c < 256; c += 64) {
    for (int i = 0; i < 64; ++i)
      text += "  ld.global.b32 %v" + number(static_cast<uint64_t>(i)) + ", [%at+" +
              number(static_cast<uint64_t>((c + i) * 512)) + "];\n";
    text += "  add.u32 %r3, %lanes, " + number(static_cast<uint64_t>(c)) +
            "; tcgen05.st.sync.aligned.32x32b.x64.b32 [%r3], " + registers(64) + ";\n";
  }
  return text +
         "  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n"
         "  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
         "  tcgen05.fence::after_thread_sync;\n";
}

// Waits for the mbarrier, and stores tensor memory.
std::string end(int blocks) {
  const std::string group = ".cta_group::" + number(static_cast<uint64_t>(blocks));
  std::string text =
      "$wait:\n  mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra $wait;\n"
      "  tcgen05.fence::after_thread_sync;\n  mad.wide.u32 %at, %tid, 4, %out;\n";
  for (int c = 0; c < 256; c += 64) {
    text += "  add.u32 %r3, %lanes, " + number(static_cast<uint64_t>(c)) +
            "; tcgen05.ld.sync.aligned.32x32b.x64.b32 " + registers(64) +
            ", [%r3]; tcgen05.wait::ld.sync.aligned;\n";
    for (int i = 0; i < 64; ++i)
      text += "  st.global.b32 [%at+" + number(static_cast<uint64_t>((c + i) * 512)) + "], %v" +
              number(static_cast<uint64_t>(i)) + ";\n";
  }
  return text +
         "  tcgen05.fence::before_thread_sync;\n"
         "  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n  @!%zero bra $end;\n"
         "  tcgen05.dealloc" +
         group +
         ".sync.aligned.b32 %t, 256;\n"
         "  tcgen05.relinquish_alloc_permit" +
         group + ".sync.aligned;\n$end:\n  ret;\n}\n";
}

std::string product(const Setup& s) {
  const auto blocks = static_cast<uint64_t>(s.blocks);
  std::string text = "  mov.b64 %d0, " + number(a_of(s).descriptor(kBase)) + "; mov.b64 %d1, " +
                     number(b_of(s).descriptor(kBase + kB)) + "; mov.b32 %r4, " +
                     number(instruction(s)) + "; add.u32 %r5, %t, " +
                     number(kA + (static_cast<uint64_t>(s.lane) << 16)) + "; add.u32 %r6, %t, " +
                     number(static_cast<uint64_t>(s.lane) << 16) + "; mov.b64 %d2, " +
                     number(s.zero_columns) + ";\n  setp.ge.s32 %accumulate, " +
                     std::to_string(s.accumulate) + ", 0;\n";
  for (uint64_t i = 0; i < 4 * blocks; ++i)
    text += "  mov.b32 %m" + number(i) + ", " +
            (i % 4 == 0   ? "8"
             : i % 4 == 1 ? "256"
                          : "0") +
            ";\n";
  text +=
      "  setp.eq.u32 %p, %rank, 0; and.pred %p, %p, %first; @!%p bra $issued;\n"
      "  tcgen05.mma" +
      std::string(s.stationary ? ".ws" : "") + ".cta_group::" + number(blocks) +
      (s.scales != 0          ? s.scaled
       : s.a == Type::kTf32   ? ".kind::tf32"
       : s.a <= Type::kBfloat ? ".kind::f16"
       : s.integers()         ? ".kind::i8"
                              : ".kind::f8f6f4") +
      (s.shifts ? ".ashift" : "") + s.collector + " [%r6], " + (s.a_tensor ? "[%r5]" : "%d0") +
      ", %d1, %r4, ";
  if (s.masks) text += registers(s.blocks * 4, "%m") + ", ";
  for (int operand = 0; s.scales != 0 && operand < 2; ++operand)
    text += "[%t+" + std::to_string(kFactors[operand]) + "], ";
  text += "%accumulate";
  if (s.accumulate > 0) text += ", " + std::to_string(s.accumulate);
  if (s.zero_columns != 0) text += ", %d2";
  text +=
      ";\n  tcgen05.commit.cta_group::" + number(blocks) + ".mbarrier::arrive::one.shared::cluster";
  text += s.blocks == 2 ? ".multicast::cluster.b64 [bar], %h;\n" : ".b64 [bar];\n";
  text += "$issued:\n";
  if (s.blocks == 2) text = "  .reg .b16 %h; mov.b16 %h, 3;\n" + text;
  return text;
}

struct Outcome {
  std::string found, fault;
  std::vector<uint32_t> cells;  // of the blocks one after the other, by column
};

Outcome run_text(const std::string& text, const std::vector<Image>& images, Order order) {
  constexpr size_t kEach = 262144;
  std::vector<std::byte> in(kEach * images.size());
  for (size_t b = 0; b < images.size(); ++b) {
    std::copy(images[b].shared.begin(), images[b].shared.end(),
              in.begin() + static_cast<long>(b * kEach));
    std::memcpy(&in[b * kEach + 65536], images[b].cells.data(), images[b].cells.size() * 4);
  }
  const Module module = Module::parse(text, "test.ptx");
  Memory memory;
  const Address from = memory.upload("in", std::span<const std::byte>(in));
  const Address to = memory.allocate("out", in.size());
  LaunchConfig config;
  config.grid = config.cluster = {static_cast<uint32_t>(images.size()), 1, 1};
  config.block = {128, 1, 1};
  config.arguments = {Argument::pointer(from), Argument::pointer(to)};
  Races races;
  Options options;
  options.warp_order = order;
  options.observers = {&races};
  const LaunchResult r = launch(module, "k", config, memory, options);
  Outcome out;
  out.found = found(r, module.kernel("k"));
  if (r.fault) out.fault = r.fault->message;
  UNSCOPED_INFO(out.found << out.fault);
  for (const Finding& f : r.findings) UNSCOPED_INFO(format(f));
  const auto bytes = memory.bytes(to);
  for (size_t b = 0; b < images.size(); ++b) {
    std::vector<uint32_t> part(128 * 256);
    std::memcpy(part.data(), &bytes[b * kEach], part.size() * 4);
    out.cells.insert(out.cells.end(), part.begin(), part.end());
  }
  return out;
}

// What a shift leaves of eight columns, in one of the blocks whose cells follow each other.
void shift_lanes(std::vector<uint32_t>& cells, int block, int first) {
  for (int column = first; column < first + 8; ++column) {
    for (int lane = 0; lane < 128; ++lane) {
      const auto at = static_cast<size_t>((block * 256 + column) * 128 + lane);
      if (lane % 32 != 31) cells[at] = cells[at + 1];
    }
  }
}

// Elements of D that are not what the definition of the product says, and cells that the product
// has no right to touch and that have changed.
int wrong_cells(const Setup& s) {
  std::vector<Image> images;
  for (int b = 0; b < s.blocks; ++b) images.push_back(image(s, b));
  const std::string text = begin(s.blocks) + product(s) + end(s.blocks);
  const Outcome got = run_text(text, images, Order::kForward);
  CHECK(got.found.empty());
  std::vector<uint32_t> want;
  for (const Image& i : images) want.insert(want.end(), i.cells.begin(), i.cells.end());
  for (int b = 0; s.shifts && b < s.blocks; ++b) shift_lanes(want, b, kA);
  const std::vector<bool> zeros = zeros_of(s.zero_columns, s.n, s.banks());
  for (int row = 0; row < s.m; ++row) {
    for (int column = 0; column < s.n; ++column) {
      const Cell at = cell_of(s, row, column);
      if (s.masks && (at.lane == 3 || at.lane == 40)) continue;
      float sum = 0;  // exact
      for (int k = 0; k < s.depth(); ++k) {
        const int part = k * s.scales / s.depth();
        const float scale = s.scales == 0 ? 1 : factor(0, row, part) * factor(1, column, part);
        if (zeros[static_cast<size_t>(column)]) continue;
        sum += static_cast<float>(seen(a_value(a_row(s, row, column), k), s.a) *
                                  seen(b_value(column + s.shift(), k), s.b)) *
               scale;
      }
      if (s.negate_a != s.negate_b) sum = -sum;
      if (s.integers()) {
        int64_t all = static_cast<int64_t>(sum);
        if (s.accumulate >= 0) all += d_value(row, column) + s.base;
        if (s.saturate) all = std::clamp<int64_t>(all, INT32_MIN, INT32_MAX);
        want[static_cast<size_t>((at.block * 256 + at.column) * 128 + at.lane)] =
            static_cast<uint32_t>(all);
        continue;
      }
      if (s.accumulate >= 0) sum += static_cast<float>(d_value(row, column) >> s.accumulate);
      const float value = sum;
      want[static_cast<size_t>((at.block * 256 + at.column) * 128 + at.lane)] =
          s.half_sums ? num::float_to_half(value) : std::bit_cast<uint32_t>(value);
    }
  }
  int wrong = 0;
  for (size_t i = 0; i < want.size(); ++i) wrong += want[i] != got.cells[i];
  return wrong;
}

}  // namespace

TEST_CASE("tcgen05.mma reads operands of both majors under every swizzle") {
  for (Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    for (int bits = 0; bits < 4; ++bits) {
      Setup s;
      s.swizzle = swizzle;
      s.a_mn = bits & 1;
      s.b_mn = bits & 2;
      INFO(static_cast<int>(swizzle) << " " << bits);
      CHECK(wrong_cells(s) == 0);
    }
  }
  for (int step = 0; step < 4; ++step) {
    Setup s;
    s.step = step;
    CHECK(wrong_cells(s) == 0);
  }
}

TEST_CASE("tcgen05.mma writes the accumulators of each M where the PTX ISA says") {
  for (const auto& [m, n, blocks, lane] : {std::array{64, 8, 1, 0},
                                           {64, 120, 1, 16},
                                           {128, 16, 1, 0},
                                           {128, 128, 1, 0},
                                           {128, 32, 2, 0},
                                           {128, 96, 2, 0},
                                           {256, 32, 2, 0},
                                           {256, 128, 2, 0}}) {
    Setup s;
    s.m = m;
    s.n = n;
    s.blocks = blocks;
    s.lane = lane;
    INFO(m << " " << n << " " << blocks);
    CHECK(wrong_cells(s) == 0);
    s.accumulate = 0;
    CHECK(wrong_cells(s) == 0);
    s.masks = true;
    CHECK(wrong_cells(s) == 0);
  }
}

TEST_CASE("tcgen05.mma takes A from tensor memory, both types, signs and scales") {
  for (int bits = 0; bits < 16; ++bits) {
    Setup s;
    s.a_tensor = bits & 1;
    s.a = s.b = bits & 2 ? Type::kBfloat : Type::kHalf;
    s.negate_a = bits & 4;
    s.negate_b = bits & 8;
    INFO(bits);
    CHECK(wrong_cells(s) == 0);
    s.accumulate = 3;
    CHECK(wrong_cells(s) == 0);
    s.accumulate = 0;
    s.half_sums = s.a == Type::kHalf;
    CHECK(wrong_cells(s) == 0);
  }
  Setup s;
  s.a_tensor = true;
  s.m = 256;
  s.blocks = 2;
  CHECK(wrong_cells(s) == 0);
  s.m = 128;
  CHECK(wrong_cells(s) == 0);
  s.m = 64;
  s.blocks = 1;
  for (s.lane = 0; s.lane <= 16; s.lane += 16) CHECK(wrong_cells(s) == 0);
}

TEST_CASE("tcgen05.mma of tf32 and of 8-bit floats") {
  constexpr Type kTypes[][2] = {{Type::kTf32, Type::kTf32},
                                {Type::kE4m3, Type::kE4m3},
                                {Type::kE4m3, Type::kE5m2},
                                {Type::kE5m2, Type::kE4m3}};
  for (const auto& [a, b] : kTypes) {
    INFO(static_cast<int>(a) << " " << static_cast<int>(b));
    Setup s;
    s.a = a;
    s.b = b;
    for (Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
      s.swizzle = swizzle;
      for (int bits = 0; bits < 4; ++bits) {
        s.a_mn = bits & 1;
        s.b_mn = bits & 2;
        INFO(static_cast<int>(swizzle) << " " << bits);
        CHECK(wrong_cells(s) == 0);
      }
      s.a_mn = s.b_mn = false;
    }
    for (s.step = 0; s.step < 4; ++s.step) CHECK(wrong_cells(s) == 0);
    s.step = 0;
    s.accumulate = 0;
    for (const auto& [m, n, blocks] :
         {std::array{64, 24, 1}, {128, 96, 1}, {128, 64, 2}, {256, 128, 2}}) {
      s.m = m;
      s.n = n;
      s.blocks = blocks;
      INFO(m << " " << n << " " << blocks);
      s.a_tensor = false;
      CHECK(wrong_cells(s) == 0);
      s.a_tensor = true;
      CHECK(wrong_cells(s) == 0);
    }
    s.negate_a = s.masks = true;
    CHECK(wrong_cells(s) == 0);
    if (a == Type::kTf32) {
      s.accumulate = 3;
    } else {
      s.half_sums = true;
    }
    CHECK(wrong_cells(s) == 0);
  }
}

TEST_CASE("tcgen05.mma of floats of 4 and 6 bits, and of integers") {
  constexpr Type kTypes[][2] = {{Type::kE2m3, Type::kE2m3}, {Type::kE3m2, Type::kE2m1},
                                {Type::kE2m1, Type::kE4m3}, {Type::kE5m2, Type::kE3m2},
                                {Type::kS8, Type::kS8},     {Type::kU8, Type::kS8},
                                {Type::kS8, Type::kU8},     {Type::kU8, Type::kU8}};
  for (const auto& [a, b] : kTypes) {
    INFO(static_cast<int>(a) << " " << static_cast<int>(b));
    for (Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k128B}) {
      Setup s;
      s.a = a;
      s.b = b;
      s.swizzle = swizzle;
      for (int bits = 0; bits < 4; ++bits) {
        s.a_mn = bits & 1;
        s.b_mn = bits & 2;
        INFO(static_cast<int>(swizzle) << " " << bits);
        CHECK(wrong_cells(s) == 0);
      }
    }
    for (const auto& [m, n, blocks] : {std::array{64, 24, 1}, {128, 96, 1}, {256, 128, 2}}) {
      Setup s;
      s.a = a;
      s.b = b;
      s.m = m;
      s.n = n;
      s.blocks = blocks;
      s.accumulate = 0;
      s.masks = true;
      INFO(m << " " << n << " " << blocks);
      CHECK(wrong_cells(s) == 0);
      if (!s.integers()) continue;
      s.a_tensor = true;
      for (const int base : {INT32_MAX - 40, INT32_MIN + 40}) {
        s.base = base;
        s.saturate = !s.saturate;
        CHECK(wrong_cells(s) == 0);
      }
    }
  }
}

TEST_CASE("tcgen05.mma multiplies A and B by scales of blocks of k") {
  struct Form {
    std::string kind;
    int scales;
    Type a, b;
    bool exponents = true;
  };
  for (const Form& f :
       {Form{"mxf8f6f4.block_scale", 1, Type::kE4m3, Type::kE5m2},
        Form{"mxf8f6f4.block_scale.block32", 1, Type::kE2m1, Type::kE3m2},
        Form{"mxf8f6f4.block_scale.scale_vec::1X", 1, Type::kE2m3, Type::kE4m3},
        Form{"mxf4.block_scale", 2, Type::kPacked, Type::kPacked},
        Form{"mxf4.block_scale.block32", 2, Type::kPacked, Type::kPacked},
        Form{"mxf4nvf4.block_scale.scale_vec::2X", 2, Type::kPacked, Type::kPacked},
        Form{"mxf4nvf4.block_scale.block16", 4, Type::kPacked, Type::kPacked},
        Form{"mxf4nvf4.block_scale.scale_vec::4X", 4, Type::kPacked, Type::kPacked, false}}) {
    Setup s;
    s.scaled = ".kind::" + f.kind;
    s.scales = f.scales;
    s.a = f.a;
    s.b = f.b;
    s.exponents = f.exponents;
    for (const auto& [m, n, blocks] : {std::array{128, 8, 1}, {128, 104, 1}, {256, 112, 2}}) {
      s.m = m;
      s.n = n;
      s.blocks = blocks;
      for (uint32_t first = 0; first < 4; first += static_cast<uint32_t>(f.scales)) {
        s.a_first = first;
        s.b_first = 4 - static_cast<uint32_t>(f.scales) - first;
        s.accumulate = first == 0 ? 0 : -1;
        s.negate_a = first == 0;
        INFO(f.kind << " " << m << " " << n << " " << first);
        CHECK(wrong_cells(s) == 0);
      }
    }
    if (f.a != Type::kPacked && f.a != Type::kE4m3) continue;
    s.a_tensor = true;
    CHECK(wrong_cells(s) == 0);
  }
}

TEST_CASE("tcgen05.mma.ws multiplies 32, 64 or 128 rows, of all kinds") {
  constexpr Type kTypes[][2] = {{Type::kHalf, Type::kHalf}, {Type::kBfloat, Type::kBfloat},
                                {Type::kTf32, Type::kTf32}, {Type::kE4m3, Type::kE5m2},
                                {Type::kE2m1, Type::kE3m2}, {Type::kU8, Type::kS8}};
  int turn = 0;
  for (const auto& [a, b] : kTypes) {
    for (const int m : {32, 64, 128}) {
      for (const int n : {64, 128, 256}) {
        Setup s;
        s.stationary = true;
        s.a = a;
        s.b = b;
        s.m = m;
        s.n = n;
        if (n == 256) s.swizzle = Swizzle::k32B;
        s.a_mn = turn & 1;
        s.b_mn = turn & 2;
        s.accumulate = turn & 4 ? 0 : -1;
        const char* const operations[] = {"fill", "use", "lastuse", "discard"};
        if (turn % 5 != 0) {
          s.collector =
              ".collector::b" + std::to_string(turn % 4) + "::" + operations[turn / 4 % 4];
        }
        INFO(static_cast<int>(a) << " " << m << " " << n << " " << ++turn);
        CHECK(wrong_cells(s) == 0);
        if (a == Type::kE2m1 || n == 256) continue;
        s.a_tensor = true;
        s.a_mn = false;
        CHECK(wrong_cells(s) == 0);
        s.half_sums = a == Type::kHalf;
        s.negate_a = !s.integers();
        s.accumulate = 0;
        CHECK(wrong_cells(s) == 0);
      }
    }
  }
}

namespace {

// The zero-column mask descriptor: skip span, use span and shift as its fields have them.
uint64_t columns_of(std::array<uint64_t, 4> starts, uint64_t first, uint64_t skip, uint64_t use,
                    uint64_t shift) {
  uint64_t bits = first << 32 | uint64_t{1} << 39 | skip << 40 | use << 48 | shift << 56;
  for (size_t i = 0; i < 4; ++i) bits |= starts[i] << 8 * i;
  return bits;
}

// As the PTX ISA writes a mask, column 0 last.
std::string mask_of(uint64_t descriptor, int bank, int columns) {
  std::string text;
  const std::vector<bool> zeros = zeros_of(descriptor, 128, 4);
  for (int c = columns; c-- > 0;) text += zeros[static_cast<size_t>(bank * 32 + c)] ? '1' : '0';
  return text;
}

}  // namespace

TEST_CASE("tcgen05.mma.ws takes columns as zeros and moves them, as its last operand says") {
  // The examples of PTX ISA 9.7.16.4.3.
  CHECK(mask_of(columns_of({}, 0, 2, 3, 0), 0, 14) == "11100001110000");
  CHECK(mask_of(columns_of({}, 1, 2, 3, 0), 0, 17) == "11100001110000111");
  const uint64_t four = columns_of({0, 1, 2, 1}, 3, 2, 3, 2);
  CHECK(mask_of(four, 0, 14) == "00001110000111");
  CHECK(mask_of(four, 1, 13) == "0000111000011");
  CHECK(mask_of(four, 2, 12) == "111000011100");
  CHECK(mask_of(four, 3, 13) == "1110000111000");
  for (const uint64_t columns :
       {columns_of({}, 0, 2, 3, 0), four, columns_of({8, 6, 3, 5}, 10, 6, 8, 16),
        columns_of({}, 5, 255, 255, 0), uint64_t{9} << 56,
        columns_of({}, 0, 0, 0, 0) ^ uint64_t{1} << 39}) {
    for (const int m : {32, 64, 128}) {
      for (const Type type : {Type::kHalf, Type::kTf32, Type::kE4m3}) {
        for (const bool mn : {false, true}) {
          Setup s;
          s.stationary = true;
          s.a = s.b = type;
          s.m = m;
          s.b_mn = mn;
          s.zero_columns = columns;
          s.most_shift = 2;
          INFO(columns << " " << m << " " << static_cast<int>(type) << " " << mn);
          CHECK(wrong_cells(s) == 0);
        }
      }
    }
  }
  Setup s;
  s.stationary = true;
  s.zero_columns = columns_of({}, 1, 3, 11, 32);
  s.most_shift = 3;
  s.accumulate = 0;
  CHECK(wrong_cells(s) == 0);
}

TEST_CASE("tcgen05.mma with .ashift shifts A in tensor memory when it has multiplied") {
  constexpr Type kTypes[][2] = {{Type::kHalf, Type::kHalf},
                                {Type::kTf32, Type::kTf32},
                                {Type::kE4m3, Type::kE5m2},
                                {Type::kS8, Type::kU8}};
  for (const auto& [a, b] : kTypes) {
    for (const auto& [m, blocks] : {std::array{128, 1}, {128, 2}, {256, 2}}) {
      Setup s;
      s.shifts = s.a_tensor = true;
      s.a = a;
      s.b = b;
      s.m = m;
      s.blocks = blocks;
      s.masks = m == 256;
      s.collector = m == 256      ? ""
                    : blocks == 2 ? ".collector::a::discard"
                                  : ".collector::a::lastuse";
      INFO(static_cast<int>(a) << " " << m << " " << blocks);
      CHECK(wrong_cells(s) == 0);
    }
  }
}

TEST_CASE("tcgen05.shift moves eight columns by a lane within the lanes of each warp") {
  for (const int blocks : {1, 2}) {
    const std::string group = ".cta_group::" + std::to_string(blocks);
    std::vector<Image> images(static_cast<size_t>(blocks));
    std::vector<uint32_t> want;
    for (Image& image : images) {
      image.shared.resize(kSharedBytes);
      for (size_t i = 0; i < image.cells.size(); ++i)
        image.cells[i] = static_cast<uint32_t>(i * 77 + want.size());
      want.insert(want.end(), image.cells.begin(), image.cells.end());
    }
    for (int b = 0; b < blocks; ++b) shift_lanes(want, b, 13);
    const auto text = [&](int lane) {
      return begin(blocks) + "  .reg .b16 %h; mov.b16 %h, 3; add.u32 %r4, %t, " +
             number(static_cast<uint64_t>(lane) << 16 | 9) +
             ";\n  setp.eq.u32 %p, %rank, 0; and.pred %p, %p, %first; @!%p bra $issued;\n"
             "  tcgen05.shift" +
             group + ".down [%r4+4];\n  tcgen05.commit" + group +
             ".mbarrier::arrive::one.shared::cluster" +
             (blocks == 2 ? ".multicast::cluster.b64 [bar], %h;\n" : ".b64 [bar];\n") +
             "$issued:\n" + end(blocks);
    };
    for (const Order order : {Order::kForward, Order::kReversed}) {
      const Outcome got = run_text(text(0), images, order);
      CHECK(got.found.empty());
      CHECK((got.cells == want));  // too many to print
    }
    CHECK(run_text(text(16), images, Order::kForward).fault ==
          "a shift begins at a multiple of 32 lanes, and is modelled from lane 0 on, not from 16");
  }
}

TEST_CASE("scales that are not the same in the lanes of all four warps are an error") {
  Setup s;
  s.scaled = ".kind::mxf8f6f4.block_scale";
  s.scales = 1;
  s.a = s.b = Type::kE4m3;
  Image one = image(s, 0);
  one.cells[static_cast<size_t>((kFactors[1] + 1) * 128 + 64 + 5)] ^= 1;  // row 37 of B
  const std::string text = begin(1) + product(s) + end(1);
  CHECK(run_text(text, {one}, Order::kForward).fault.find("the scale factors of row 37") !=
        std::string::npos);
  one.cells[static_cast<size_t>((kFactors[1] + 1) * 128 + 64 + 5)] ^= 0x101;  // another byte
  CHECK(run_text(text, {one}, Order::kForward).fault.empty());
}

TEST_CASE("tcgen05.mma refuses types that are none of its kind") {
  const auto fault = [](const Setup& s, uint32_t bits) {
    const std::string right = "mov.b32 %r4, ", text = begin(1) + product(s) + end(1);
    const size_t at = text.find(right) + right.size();
    std::string wrong = text;
    wrong.replace(at, text.find(';', at) - at, number(bits));
    return run_text(wrong, {image(s, 0)}, Order::kForward).fault;
  };
  Setup s;
  CHECK(fault(s, instruction(s) | 2 << 7).find("2; 0 (f16) and 1 (bf16)") != std::string::npos);
  s.a = s.b = Type::kTf32;
  CHECK(fault(s, instruction(s) & ~(7u << 10)).find("0; 2 (tf32)") != std::string::npos);
  CHECK(fault(s, instruction(s) & ~(1u << 4)).find("tf32 are f32") != std::string::npos);
  CHECK(fault(s, instruction(s) | 1 << 16).find("has swizzle 2; MN-major operands of tf32") !=
        std::string::npos);
  s.a = s.b = Type::kE4m3;
  CHECK(fault(s, instruction(s) | 2 << 7).find("2; 0 (e4m3), 1") != std::string::npos);
  s.a = s.b = Type::kS8;
  CHECK(fault(s, instruction(s) ^ 3 << 4).find("1; 2 (s32)") != std::string::npos);
  CHECK(fault(s, instruction(s) | 1 << 13).find("leaves zero: 0x00002000") != std::string::npos);
  s.a = s.b = Type::kPacked;
  s.scaled = ".kind::mxf4.block_scale";
  s.scales = 2;
  CHECK(fault(s, instruction(s) | 1 << 4).find("byte 1; they begin at a multiple of 2") !=
        std::string::npos);
  CHECK(fault(s, instruction(s) & ~(1u << 23)).find("type of the scales 0") != std::string::npos);
}

TEST_CASE("tcgen05.mma refuses what .ws and .ashift do not have") {
  const auto says = [](const Setup& s, const std::string& words) {
    const std::string text = begin(s.blocks) + product(s) + end(s.blocks);
    const Outcome got =
        run_text(text, std::vector(static_cast<size_t>(s.blocks), image(s, 0)), Order::kForward);
    INFO(words);
    CHECK(got.fault.find(words) != std::string::npos);
  };
  Setup s;
  s.stationary = true;
  s.n = 96;
  says(s, "says N = 96; 64, 128 and 256 are allowed with .ws");
  s.n = 64;
  s.m = 16;
  says(s, "says M = 16; 32, 64 and 128 are allowed with .ws");
  s.m = 64;
  s.lane = 16;
  says(s, "the accumulators of M = 64 begin at lane 0 of tensor memory, not at 16");
  s.lane = 0;
  s.zero_columns = columns_of({}, 0, 1, 1, 9);
  s.most_shift = 1;
  says(s, "shifts columns by 9; the instruction descriptor and M = 64 allow 8");
  s.m = 32;
  s.zero_columns = columns_of({}, 0, 1, 1, 17);
  s.most_shift = 3;
  says(s, "shifts columns by 17; the instruction descriptor and M = 32 allow 16");
  s.zero_columns = columns_of({0, 4, 5, 0}, 0, 3, 4, 0);
  says(s, "skips 5 columns of a first span of 5; one must be left");
  s.zero_columns = columns_of({}, 0, 3, 4, 0) | uint64_t{1} << 36;
  says(s, "has reserved bits");
  s = {};
  s.most_shift = 1;
  says(s, "leaves zero: 0x40000000");
  s = {};
  s.a_tensor = s.shifts = true;
  s.m = 64;
  says(s, "says M = 64; 128 and 256 are allowed with .ashift");
  s = {};
  s.a_tensor = s.a_mn = true;
  says(s, "A in tensor memory is K-major, not MN-major");
  s = {};
  std::string atoms = begin(1) + product(s) + end(1);
  const std::string right = number(b_of(s).descriptor(kBase + kB));
  atoms.replace(atoms.find(right), right.size(),
                number(b_of(s).descriptor(kBase + kB) ^ uint64_t{3} << 61));
  CHECK(run_text(atoms, {image(s, 0)}, Order::kForward)
            .fault.find("has swizzle 1; 0, 2, 4 and 6 are modelled where tf32 is not MN-major") !=
        std::string::npos);
}

namespace {

// Where the registers of tcgen05.ld stand, as the figures of PTX ISA 9.7.16.2.3 have them: lane and
// column, without packing.
std::pair<int, int> place(const std::string& shape, int thread, int reg, int split) {
  if (shape == "16x64b") return {thread / 4 + (thread % 2) * 8, reg * 2 + thread % 4 / 2};
  if (shape == "16x128b") return {thread / 4 + (reg % 2) * 8, reg / 2 * 4 + thread % 4};
  if (shape == "16x256b")
    return {thread / 4 + (reg % 4 / 2) * 8, reg / 4 * 8 + thread % 4 * 2 + reg % 2};
  if (shape == "16x32bx2") return {thread % 16, reg + (thread / 16) * split};
  return {thread, reg};
}

}  // namespace

TEST_CASE("tcgen05.ld and st move what each shape names") {
  struct Form {
    const char* shape;
    int repeat, registers;
  };
  for (const Form& f : {Form{"32x32b", 1, 1},
                        {"32x32b", 64, 64},
                        {"16x64b", 1, 1},
                        {"16x64b", 32, 32},
                        {"16x128b", 1, 2},
                        {"16x128b", 8, 16},
                        {"16x256b", 1, 4},
                        {"16x256b", 8, 32},
                        {"16x32bx2", 1, 1},
                        {"16x32bx2", 16, 16}}) {
    for (const bool packs : {false, true}) {
      const std::string shape = f.shape;
      const bool halves = shape == "16x32bx2", lower = shape != "32x32b";
      const int split = 40, lane = lower ? 16 : 0;
      const std::string name = "sync.aligned." + shape + ".x" + std::to_string(f.repeat);
      const std::string by = halves ? ", " + std::to_string(split) : "";
      // Loads from column 5 on and stores from column 5 on of the other half of the columns.
      std::string text =
          begin(1) + "  add.u32 %r4, %lanes, " + number((lane << 16) + 5) +
          "; add.u32 %r5, %lanes, " + number((lane << 16) + 128) + ";\n" + "  tcgen05.ld." + name +
          (packs ? ".pack::16b" : "") + ".b32 " + registers(f.registers) + ", [%r4]" + by +
          ";\n  tcgen05.wait::ld.sync.aligned;\n  tcgen05.st." + name +
          (packs ? ".unpack::16b" : "") + ".b32 [%r5]" + by + ", " + registers(f.registers) +
          ";\n  tcgen05.wait::st.sync.aligned; bar.sync 0;\n"
          "  @%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%at];\n";
      text.insert(text.find("  @%first tcgen05.commit"),
                  "  mov.u64 %at, bar; cvta.shared.u64 %at, %at;\n");
      text += end(1);
      Image image;
      image.shared.resize(kSharedBytes);
      for (size_t i = 0; i < image.cells.size(); ++i)
        image.cells[i] = static_cast<uint32_t>(i * 77);
      const Outcome got = run_text(text, {image}, Order::kForward);
      INFO(name << " " << packs);
      CHECK(got.found.empty());
      std::vector<uint32_t> want = image.cells;
      const auto cell = [](int column, int at) { return static_cast<size_t>(column * 128 + at); };
      for (int warp = 0; warp < 4; ++warp) {
        for (int thread = 0; thread < 32; ++thread) {
          for (int r = 0; r < f.registers; ++r) {
            const int second = halves ? thread / 16 * split : 0;
            auto [l, c] = place(shape, thread, r, 0);
            l += warp * 32 + lane;
            if (packs) {
              for (int i = 0; i < 2; ++i)
                want[cell(128 + second + 2 * c + i, l)] =
                    image.cells[cell(5 + second + 2 * c + i, l)] & 0xffff;
            } else {
              want[cell(128 + second + c, l)] = image.cells[cell(5 + second + c, l)];
            }
          }
        }
      }
      CHECK(want == got.cells);
    }
  }
}

TEST_CASE("tcgen05.cp copies rows to the lanes of one warp or of several") {
  struct Form {
    const char* shape;
    int rows, words;
    std::function<std::vector<int>(int)> lanes;
  };
  const auto one = [](int r) { return std::vector<int>{r}; };
  for (const Form& f :
       {Form{"128x256b", 128, 8, one}, Form{"128x128b", 128, 4, one},
        Form{"64x128b.warpx2::02_13", 64, 4,
             [](int r) {
               return std::vector<int>{r, r + 64};
             }},
        Form{"64x128b.warpx2::01_23", 64, 4,
             [](int r) {
               return std::vector<int>{r % 32 + r / 32 * 64, r % 32 + r / 32 * 64 + 32};
             }},
        Form{"32x128b.warpx4", 32, 4, [](int r) {
               return std::vector<int>{r, r + 32, r + 64, r + 96};
             }}}) {
    const Operand source{false, Swizzle::kNone, f.rows, 0};
    Image image;
    image.shared.resize(kSharedBytes);
    for (uint32_t i = 0; i < kSharedBytes / 4; ++i) std::memcpy(&image.shared[i * 4], &i, 4);
    const std::string text = begin(1) + "  add.u32 %r4, %t, 9; mov.b64 %d0, " +
                             number(source.descriptor(kBase)) +
                             ";\n  @%first tcgen05.cp.cta_group::1." + f.shape +
                             " [%r4], %d0;\n  @%first tcgen05.commit.cta_group::1"
                             ".mbarrier::arrive::one.shared::cluster.b64 [bar];\n" +
                             end(1);
    const Outcome got = run_text(text, {image}, Order::kForward);
    INFO(f.shape);
    CHECK(got.found.empty());
    std::vector<uint32_t> want = image.cells;
    for (int row = 0; row < f.rows; ++row) {
      for (int word = 0; word < f.words; ++word) {
        uint32_t value;
        std::memcpy(&value, &image.shared[source.place(row, word * 2)], 4);
        for (int lane : f.lanes(row)) want[static_cast<size_t>((9 + word) * 128 + lane)] = value;
      }
    }
    CHECK(want == got.cells);
  }
}

TEST_CASE("a commit that arrives at a block that has exited") {
  // It lands when the first block waits; the second one has nothing to wait for.
  const std::string text =
      ".version 9.0\n.target sm_100a\n.address_size 64\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      "  .shared .align 8 .b8 bar[8];\n"
      "  .reg .b32 %tid, %rank; .reg .b16 %h; .reg .pred %p, %first;\n"
      "  mov.u32 %tid, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.b16 %h, 3;\n"
      "  setp.eq.u32 %first, %tid, 0; @%first mbarrier.init.shared.b64 [bar], 1;\n"
      "  @%first fence.mbarrier_init.release.cluster;\n"
      "  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
      "  setp.ne.u32 %p, %rank, 0; @%p bra $end;\n"
      "  @%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster"
      ".multicast::cluster.b64 [bar], %h;\n"
      "$wait:\n  mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra $wait;\n"
      "$end:\n  ret;\n}\n";
  for (const Order order : {Order::kForward, Order::kReversed}) {
    const Outcome got = run_text(text, {Image{}, Image{}}, order);
    CHECK(got.fault == "");
    CHECK(got.found.starts_with("cluster "));
  }
}
