// SPDX-License-Identifier: MIT
#include "tools/wgmma_case.h"

#include <algorithm>
#include <bit>

#include "num/float8.h"
#include "num/half.h"
#include "tools/inputs.h"

namespace ptxvm_vectors {
namespace {

using namespace ptxvm;

constexpr std::array kSwizzles = {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B};
constexpr std::array<const char*, 4> kSwizzleNames = {"none", "32B", "64B", "128B"};

// Bytes of a row of the swizzle pattern; without swizzle those of a core matrix.
uint32_t width(Swizzle s) {
  return s == Swizzle::k128B ? 128 : s == Swizzle::k64B ? 64 : s == Swizzle::k32B ? 32 : 16;
}

size_t index(Swizzle s) {
  return static_cast<size_t>(std::find(kSwizzles.begin(), kSwizzles.end(), s) - kSwizzles.begin());
}

// Types of operands and of the sum that go together, where elements have no 16 bits.
struct NarrowTypes {
  const char *a, *b, *sum;
};
std::vector<NarrowTypes> narrow_types() {
  std::vector<NarrowTypes> all = {{"tf32", "tf32", "f32"}};
  for (const char* sum : {"f32", "f16"}) {
    for (const char* a : {"e4m3", "e5m2"}) {
      for (const char* b : {"e4m3", "e5m2"}) all.push_back({a, b, sum});
    }
  }
  for (const char* a : {"s8", "u8"}) {
    for (const char* b : {"s8", "u8"}) all.push_back({a, b, "s32"});
  }
  return all;
}

// Whether A is in registers.
bool has_registers(const isa::Spelling& s) {
  return s.operands[1].kind == isa::OperandKind::kVector;
}

const isa::Spelling* find_narrow(const WgmmaCase& c) {
  const std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(c.n) + "k" +
                           std::to_string(c.depth()) + "." + c.sum_type() + "." + c.narrow_a + "." +
                           c.narrow_b + (c.satfinite ? ".satfinite" : "");
  for (const isa::Spelling* s = isa::find(text); s; s = s->overload) {
    if (has_registers(*s) == c.a_registers) return s;
  }
  return nullptr;
}

// Writes the list of cases.
class List {
 public:
  std::vector<WgmmaCase> cases;

  // The spelling of a shape with these types, A in registers or not.
  static const isa::Spelling* find(int n, bool a_registers, bool half_sums, bool bfloat) {
    const std::string in = bfloat ? "bf16" : "f16";
    const std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k16." +
                             (half_sums ? "f16." : "f32.") + in + "." + in;
    for (const isa::Spelling* s = isa::find(text); s; s = s->overload) {
      if (has_registers(*s) == a_registers) return s;
    }
    return nullptr;
  }

  // A case with packed operands.
  static WgmmaCase make(int n, bool a_registers, int types, Data data,
                        Swizzle swizzle = Swizzle::k128B, bool a_mn = false, bool b_mn = false) {
    WgmmaCase c;
    c.n = n;
    c.a_registers = a_registers;
    c.half_sums = types == 2;
    c.bfloat = types == 1;
    c.data = data;
    c.a = packed(swizzle, a_mn, kRows);
    c.b = packed(swizzle, b_mn, n);
    return c;
  }

  void add(WgmmaCase c, const std::string& why, const std::string& detail) {
    c.spelling =
        c.narrow_a.empty() ? find(c.n, c.a_registers, c.half_sums, c.bfloat) : find_narrow(c);
    c.why = why;
    c.name = std::string(ptxvm_vectors::name(c.data)) + ", A " +
             (c.a_registers ? "in registers" : describe(c.a)) + ", B " + describe(c.b) +
             (detail.empty() ? "" : ", " + detail);
    cases.push_back(std::move(c));
  }

  void every_spelling() {
    for (int types = 0; types < 3; ++types) {
      for (int n = 8; n <= kMostColumns; n += 8) {
        for (bool rs : {false, true}) add(make(n, rs, types, Data::kNormal), "every spelling", "");
      }
    }
  }

  // Integers have not every N.
  void add_narrow(const NarrowTypes& types, WgmmaCase c, const std::string& why,
                  const std::string& detail) {
    c.narrow_a = types.a;
    c.narrow_b = types.b;
    c.half_sums = types.sum == std::string("f16");
    for (const bool satfinite : {false, true}) {
      c.satfinite = satfinite;
      if (find_narrow(c)) add(c, why, detail);
    }
  }

  void narrow() {
    for (const NarrowTypes& types : narrow_types()) {
      const bool integers = types.sum == std::string("s32");
      for (bool rs : {false, true}) {
        for (int n = 8; n <= kMostColumns; n += 8)
          add_narrow(types, make(n, rs, 0, Data::kSmall), "every spelling", "");
        for (Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B}) {
          add_narrow(types, make(32, rs, 0, Data::kSmall, swizzle), "swizzle of both operands", "");
        }
        for (const bool accumulate : {false, true}) {
          WgmmaCase c = make(24, rs, 0, integers ? Data::kSpecial : Data::kNormal);
          c.accumulate = accumulate;
          const std::string scale = "scale-d " + std::to_string(accumulate);
          add_narrow(types, c, integers ? "ends of the range" : "data of any size", scale);
          if (integers || !accumulate) continue;
          c.scale_a = -1;
          add_narrow(types, c, "data of any size", scale + ", scale-a -1");
        }
        WgmmaCase twice = make(16, rs, 0, Data::kSmall);
        twice.issues = 2;
        add_narrow(types, twice, "several on the same accumulators, in one group", "2 times");
      }
    }
  }

  void layouts() {
    for (int n : {8, 16, 24, 64, 80, 128, 192, 256}) {
      for (Swizzle swizzle : kSwizzles) {
        for (int bits = 0; bits < 6; ++bits) {
          const bool rs = bits >= 4, a_mn = !rs && (bits & 2), b_mn = bits & 1;
          for (int types = 0; types < 3; ++types) {
            // One type for every N, all for two.
            if (types > 0 && n != 24 && n != 64) continue;
            add(make(n, rs, types, Data::kSmall, swizzle, a_mn, b_mn),
                "swizzle and major of both operands", "");
          }
        }
      }
    }
  }

  void scales() {
    for (int types = 0; types < 3; ++types) {
      for (int bits = 0; bits < 16; ++bits) {
        for (Data data : {Data::kSmall, Data::kNormal}) {
          WgmmaCase c = make(16, bits & 1, types, data);
          c.accumulate = bits & 2;
          c.scale_a = bits & 4 ? -1 : 1;
          c.scale_b = bits & 8 ? -1 : 1;
          add(c, "scale-d and the signs",
              "scale-d " + std::to_string(c.accumulate) + ", scale-a " + std::to_string(c.scale_a) +
                  ", scale-b " + std::to_string(c.scale_b));
        }
      }
    }
    for (bool rs : {false, true}) {
      for (char guard : {'@', '!'}) {
        WgmmaCase c = make(8, rs, 0, Data::kSmall);
        c.accumulate = true;
        c.guard = guard;
        add(c, "a guard that is the same for all threads",
            guard == '@' ? "guard true" : "guard false");
      }
      for (int issues : {2, 4}) {
        for (int types = 0; types < 3; ++types) {
          for (Data data : {Data::kSmall, Data::kNormal}) {
            WgmmaCase c = make(16, rs, types, data);
            c.issues = issues;
            add(c, "several on the same accumulators, in one group",
                std::to_string(issues) + " times");
          }
        }
      }
    }
  }

  void starts() {
    for (Swizzle swizzle : {Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
      for (int bits = 0; bits < 6; ++bits) {
        const bool rs = bits >= 4, a_mn = !rs && (bits & 2), b_mn = bits & 1;
        const WgmmaCase base = make(64, rs, 0, Data::kSmall, swizzle, a_mn, b_mn);
        for (uint32_t rows = 1; rows < 8; rows += 2) {
          for (bool said : {false, true}) {
            WgmmaCase c = base;
            c.a.start = c.b.start = rows * 128;
            c.a.base_offset = c.b.base_offset = said ? rows : 0;
            add(c, "operands that begin within the pattern of the swizzle",
                "start " + std::to_string(rows * 128) + ", base offset " +
                    std::to_string(c.a.base_offset));
          }
        }
        // Along k within the panel, as a kernel steps through head_dim.
        if (a_mn || b_mn) continue;
        for (uint32_t step = 32; step < width(swizzle); step += 32) {
          WgmmaCase c = base;
          c.a.start = c.b.start = step;
          add(c, "a later step of k in a panel", "start " + std::to_string(step));
        }
      }
    }
  }

  void offsets() {
    const auto both = [&](WgmmaCase c, uint32_t leading, uint32_t stride, const std::string& why) {
      c.a.leading = c.b.leading = leading;
      c.a.stride = c.b.stride = stride;
      add(c, why, "LBO " + std::to_string(leading) + ", SBO " + std::to_string(stride));
    };
    for (bool rs : {false, true}) {
      for (Swizzle swizzle : {Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
        const uint32_t w = width(swizzle);
        const WgmmaCase k = make(64, rs, 0, Data::kSmall, swizzle);
        for (uint32_t leading : {0x3fff0u, 0x10u})
          both(k, leading, 8 * w, "K-major with swizzle has no use for LBO");
        both(k, 0, 16 * w, "groups of eight rows apart");
        const WgmmaCase mn = make(64, rs, 0, Data::kSmall, swizzle, !rs, true);
        both(mn, 32 * w, 8 * w, "panels apart");
        both(mn, 2048, 1024, "panels apart");
        both(mn, 8 * w, 8 * w * (128 / w), "the halves of k behind all panels");
        if (w == 128) both(mn, 0x3fff0, 8 * w, "one panel has no use for LBO");
      }
      for (bool major : {false, true}) {
        const WgmmaCase c = make(64, rs, 0, Data::kSmall, Swizzle::kNone, !rs && major, major);
        both(c, 128, 256, "the halves of k next to each other");
        both(c, 2048, 144, "core matrices apart, not by a multiple of 128");
        both(c, 144, 512, "core matrices apart, not by a multiple of 128");
      }
    }
  }

  void special() {
    for (int types = 0; types < 3; ++types) {
      for (bool rs : {false, true}) {
        for (bool accumulate : {false, true}) {
          WgmmaCase c = make(16, rs, types, Data::kSpecial);
          c.accumulate = accumulate;
          add(c, "infinities, NaN, zeros, subnormals, cancellation",
              "scale-d " + std::to_string(accumulate));
        }
      }
    }
  }
};

// Sums of twelve uniform numbers: the same bits with every library.
float normal(uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(next_random(state) >> 32) * 0x1p-32;
  return static_cast<float>(sum);
}

// Bits worth testing of a type.
struct Edges {
  uint64_t one, infinity, quiet, signalling, largest, subnormal, sign;
};
Edges edges_of(const std::string& type) {
  if (type == "f16") return {0x3c00, 0x7c00, 0x7e01, 0x7c01, 0x7bff, 1, 0x8000};
  // The largest product must stay in the range of f32.
  if (type == "bf16") return {0x3f80, 0x7f80, 0x7fc1, 0x7f81, 0x5e7f, 1, 0x8000};
  return {0x3f800000, 0x7f800000, 0x7fc00001, 0x7f800001, 0x4f000000, 1, 0x80000000};
}

uint64_t special_value(char operand, int row, int k, const std::string& type) {
  const Edges e = edges_of(type);
  const uint64_t sign = k % 2 ? e.sign : 0;
  if (operand == 'c') {
    const std::array<uint64_t, 8> values = {0,       e.sign,    e.infinity,  e.infinity | e.sign,
                                            e.quiet, e.largest, e.subnormal, e.one};
    return values[static_cast<size_t>((row + k) % 8)];
  }
  if (operand == 'b') {
    switch (row % 4) {
      case 0:
        return e.one;
      case 1:
        return e.one | sign;
      case 2:
        return k == 3 ? e.infinity : 0;
      default:
        return static_cast<uint64_t>(k % 5) * e.subnormal;
    }
  }
  switch (row % 8) {
    case 0:
      return static_cast<uint64_t>(k + 1) * e.subnormal;
    case 1:
      return e.largest | sign;  // cancels
    case 2:
      return k == 5 ? e.infinity : e.one;
    case 3:
      return k < 2 ? e.infinity | sign : e.one;
    case 4:
      return k == 7 ? e.quiet : k == 8 ? e.signalling : e.one;
    case 5:
      return e.sign;
    case 6:
      return k == 0 ? e.largest : e.subnormal;
    default:
      return k < 8 ? e.one : e.one | e.sign;
  }
}

// The ends of the range of an integer.
uint64_t integer_end(char operand, int row, int k, const std::string& type) {
  const bool first = (row + k) % 3 == 0;
  if (operand == 'c') return first ? 0x80000000 : (row + k) % 3 == 1 ? 0x7fffffff : 0;
  return type == "s8" ? (first ? 0x80 : 0x7f) : (first ? 0 : 0xff);
}

int rows_of(char operand) {
  return operand == 'b' ? kMostColumns : kRows;
}

std::string registers(int count, const char* name) {
  std::string s = "{";
  for (int i = 0; i < count; ++i) s += (i ? ", " : "") + std::string(name) + std::to_string(i);
  return s + "}";
}

int sums_of(const WgmmaCase& c) {
  return c.n / (c.half_sums ? 4 : 2);
}

// Where the element is among a thread's accumulators.
struct Home {
  int thread, reg, half;
};
Home home(const WgmmaCase& c, int row, int column) {
  const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2, lower = row % 16 / 8;
  if (c.half_sums) return {thread, column / 8 * 2 + lower, column % 2};
  return {thread, column / 8 * 4 + lower * 2 + column % 2, 0};
}

// Signs, where there are any, and majors of operands of 16 bits.
std::string constants(const WgmmaCase& c) {
  if (c.integers()) return "";
  std::string text = ", " + std::to_string(c.scale_a) + ", " + std::to_string(c.scale_b);
  if (!c.narrow_a.empty()) return text;
  if (!c.a_registers) text += c.a.mn ? ", 1" : ", 0";
  return text + (c.b.mn ? ", 1" : ", 0");
}

// Sections of the inputs, in bytes.
constexpr uint32_t kHeader = kRegionBytes, kFragments = kHeader + 64, kSums = kFragments + 128 * 16;

}  // namespace

std::string header_field(uint32_t header, uint32_t field) {
  return "[%in+" + std::to_string(header + 8 * field) + "]";
}

std::string load_descriptors(uint32_t header) {
  std::string text;
  const auto line = [&](const std::string& s) { text += "  " + s + ";\n"; };
  // The start address goes into the descriptor in units of 16 bytes.
  const auto load = [&](const std::string& reg, uint32_t field) {
    line("ld.global.b64 " + reg + ", " + header_field(header, field));
    line("ld.global.b64 %part, " + header_field(header, field + 1));
    line("cvt.u32.u64 %start, %part");
    line("add.u32 %start, %start, %region");
    line("bfe.u32 %start, %start, 4, 14");
    line("cvt.u64.u32 %part, %start");
    line("or.b64 " + reg + ", " + reg + ", %part");
  };
  load("%a_descriptor", 0);
  load("%b_descriptor", 2);
  return text;
}

const char* name(Data data) {
  return data == Data::kSmall ? "small" : data == Data::kNormal ? "normal" : "special";
}

uint64_t encode(float x, const std::string& type) {
  if (type == "f16") return num::float_to_half(x);
  if (type == "bf16") return num::float_to_bfloat(x);
  if (type == "tf32") return std::bit_cast<uint32_t>(x) & ~0x1fffu;
  if (type == "e4m3") return num::double_to_float8(static_cast<double>(x), num::Float8::kE4m3);
  if (type == "e5m2") return num::double_to_float8(static_cast<double>(x), num::Float8::kE5m2);
  if (type == "s8" || type == "u8") return static_cast<uint8_t>(static_cast<int>(x));
  if (type == "s32") return static_cast<uint32_t>(static_cast<int>(x));
  return std::bit_cast<uint32_t>(x);
}

uint32_t Placement::place(int row, int k, int element_bytes) const {
  const auto r = static_cast<uint32_t>(row), c = static_cast<uint32_t>(k);
  const uint32_t byte = c * static_cast<uint32_t>(element_bytes);
  const uint32_t w = width(swizzle);
  uint32_t at = start;
  if (swizzle == Swizzle::kNone) {
    at += r / 8 * stride + byte / 16 * leading +
          (mn ? c % 8 * 16 + r % 8 * 2 : r % 8 * 16 + byte % 16);
  } else if (mn) {
    at += r / (w / 2) * leading + c / 8 * stride + c % 8 * w + r % (w / 2) * 2;
  } else {
    at += r / 8 * stride + r % 8 * w + byte;
  }
  return at ^ (((at >> 7) - base_offset) & (w / 16 - 1)) << 4;
}

uint64_t Placement::descriptor() const {
  constexpr std::array<uint64_t, 4> modes = {0, 3, 2, 1};
  return uint64_t{leading} >> 4 << 16 | uint64_t{stride} >> 4 << 32 | uint64_t{base_offset} << 49 |
         modes[index(swizzle)] << 62;
}

std::string describe(const Placement& p) {
  return std::string(kSwizzleNames[index(p.swizzle)]) + (p.mn ? " MN-major" : " K-major");
}

Placement packed(Swizzle swizzle, bool mn, int extent) {
  const uint32_t w = width(swizzle), groups = static_cast<uint32_t>(extent) / 8;
  Placement p;
  p.swizzle = swizzle;
  p.mn = mn;
  p.stride = swizzle == Swizzle::kNone ? 128 : 8 * w;
  p.leading = swizzle == Swizzle::kNone ? groups * 128 : mn ? 16 * w : 0;
  return p;
}

Matrix make_matrix(char operand, const std::string& type, Data data, int rows, int columns) {
  Matrix m;
  m.columns = columns;
  const bool integers = type == "s8" || type == "u8" || type == "s32";
  uint64_t state = kSeed;
  for (char x : std::string(1, operand) + (data == Data::kNormal ? type : "")) {
    state = state * 131 + static_cast<unsigned char>(x);
  }
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < columns; ++k) {
      if (data == Data::kSpecial) {
        m.bits.push_back(integers ? integer_end(operand, row, k, type)
                                  : special_value(operand, row, k, type));
      } else {
        float x = data == Data::kNormal
                      ? normal(state)
                      : static_cast<float>(static_cast<int>(next_random(state) % 9) - 4);
        if (type == "u8") x += 4;
        m.bits.push_back(encode(x, type));
      }
    }
  }
  return m;
}

std::vector<WgmmaCase> wgmma_cases() {
  List list;
  list.every_spelling();
  list.layouts();
  list.scales();
  list.starts();
  list.offsets();
  list.special();
  return std::move(list.cases);
}

std::vector<WgmmaCase> wgmma_narrow_cases() {
  List list;
  list.narrow();
  return std::move(list.cases);
}

std::map<std::string, Matrix> make_narrow_matrices() {
  std::map<std::string, Matrix> all;
  for (const WgmmaCase& c : wgmma_narrow_cases()) {
    for (char operand : {'a', 'b', 'c'}) {
      const std::string type = operand == 'a'   ? c.a_type()
                               : operand == 'b' ? c.b_type()
                                                : c.sum_type();
      auto& found = all[matrix_name(operand, c)];
      if (found.bits.empty())
        found =
            make_matrix(operand, type, c.data, rows_of(operand), operand == 'c' ? 16 : c.depth());
    }
  }
  return all;
}

std::map<std::string, Matrix> make_matrices() {
  std::map<std::string, Matrix> all;
  for (Data data : {Data::kSmall, Data::kNormal, Data::kSpecial}) {
    for (const char* type : {"f16", "bf16", "f32"}) {
      for (char operand : {'a', 'b', 'c'}) {
        const std::string t = type;
        if (operand == 'c' ? t == "bf16" : t == "f32") continue;
        all[std::string(1, operand) + " " + t + " " + name(data)] =
            make_matrix(operand, t, data, rows_of(operand), 16);
      }
    }
  }
  return all;
}

std::string matrix_name(char operand, const WgmmaCase& c) {
  const std::string type = operand == 'c' ? c.sum_type() : operand == 'a' ? c.a_type() : c.b_type();
  return std::string(1, operand) + " " + type + " " + name(c.data);
}

uint64_t initial(const std::map<std::string, Matrix>& matrices, const WgmmaCase& c, int row,
                 int column) {
  const Matrix& m = matrices.at(matrix_name('c', c));
  return m.bits[static_cast<size_t>(row * m.columns + column % m.columns)];
}

std::vector<uint64_t> wgmma_inputs(const WgmmaCase& c, const std::map<std::string, Matrix>& m) {
  const uint32_t bytes = kSums + static_cast<uint32_t>(sums_of(c)) * 512;
  // What no operand covers would be seen.
  std::vector<unsigned char> image(bytes, 0xee);
  const auto put16 = [&](uint32_t at, uint64_t bits) {
    image[at] = static_cast<unsigned char>(bits);
    image[at + 1] = static_cast<unsigned char>(bits >> 8);
  };
  const auto put64 = [&](uint32_t at, uint64_t bits) {
    for (uint32_t i = 0; i < 8; i += 2) put16(at + i, bits >> (8 * i));
  };
  const Matrix& a = m.at(matrix_name('a', c));
  const Matrix& b = m.at(matrix_name('b', c));
  const int size = c.element_bytes(), depth = c.depth();
  const auto put = [&](uint32_t at, uint64_t bits) {
    for (int i = 0; i < size; ++i)
      image[at + static_cast<uint32_t>(i)] = static_cast<unsigned char>(bits >> (8 * i));
  };
  for (int k = 0; k < depth; ++k) {
    for (int r = 0; r < c.n; ++r) {
      put(kRegionB + c.b.place(r, k, size), b.bits[static_cast<size_t>(r * depth + k)]);
    }
    for (int r = 0; r < kRows; ++r) {
      const uint64_t bits = a.bits[static_cast<size_t>(r * depth + k)];
      const int word = k * size / 4, reg = word / 4 * 2 + r % 16 / 8;
      const int thread = r / 16 * 32 + r % 8 * 4 + word % 4;
      if (c.a_registers)
        put(kFragments + static_cast<uint32_t>(thread * 16 + reg * 4 + k * size % 4), bits);
      else
        put(c.a.place(r, k, size), bits);
    }
  }
  put64(kHeader, c.a.descriptor());
  put64(kHeader + 8, c.a.start);
  put64(kHeader + 16, c.b.descriptor());
  put64(kHeader + 24, kRegionB + c.b.start);
  put64(kHeader + 32, c.accumulate);
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < c.n; ++column) {
      const Home h = home(c, row, column);
      const auto at = kSums + static_cast<uint32_t>(h.reg * 512 + h.thread * 4 + h.half * 2);
      const uint64_t bits = initial(m, c, row, column);
      put16(at, bits);
      if (!c.half_sums) put16(at + 2, bits >> 16);
    }
  }
  std::vector<uint64_t> words(bytes / 8);
  for (size_t i = 0; i < bytes; ++i) words[i / 8] |= uint64_t{image[i]} << (i % 8 * 8);
  return words;
}

size_t wgmma_output_words(const WgmmaCase& c) {
  return static_cast<size_t>(sums_of(c)) * 64;
}

std::string wgmma_module(const WgmmaCase& c, const std::string& name) {
  const int sums = sums_of(c);
  const std::string type = c.half_sums || c.integers() ? "b32" : "f32",
                    size = std::to_string(kRegionBytes);
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 region[" + size +
      "];\n.visible .entry " + name +
      "(.param .u64 inputs, .param .u64 results)\n.maxntid 128, 1, 1\n{\n"
      "  .reg .b64 %in, %out, %at, %part, %bits, %a_descriptor, %b_descriptor;\n"
      "  .reg .b32 %thread, %region, %i, %word, %start, %a<4>;\n"
      "  .reg .pred %more, %scale, %next, %guard;\n  .reg ." +
      type + " %d<" + std::to_string(sums) +
      ">;\n  ld.param.u64 %in, [inputs];\n  ld.param.u64 %out, [results];\n"
      "  mov.u32 %thread, %tid.x;\n  mov.u32 %region, region;\n  shl.b32 %i, %thread, 2;\n"
      "$fill:\n  cvt.u64.u32 %at, %i;\n  add.u64 %at, %at, %in;\n  ld.global.b32 %word, [%at];\n"
      "  add.u32 %start, %region, %i;\n  st.shared.b32 [%start], %word;\n  add.u32 %i, %i, 512;\n"
      "  setp.lt.u32 %more, %i, " +
      size + ";\n  @%more bra $fill;\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n";
  const auto line = [&](const std::string& s) { text += "  " + s + ";\n"; };
  text += load_descriptors(kHeader);
  line("ld.global.b64 %bits, " + header_field(kHeader, 4));
  line("setp.ne.u64 %scale, %bits, 0");
  line("setp.eq.u64 %next, %in, %in");
  line("setp.ne.u64 %guard, %in, 0");
  line("mad.wide.u32 %at, %thread, 16, %in");
  line("ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%at+" + std::to_string(kFragments) + "]");
  line("mad.wide.u32 %at, %thread, 4, %in");
  for (int i = 0; i < sums; ++i) {
    line("ld.global." + type + " %d" + std::to_string(i) + ", [%at+" +
         std::to_string(kSums + static_cast<uint32_t>(i) * 512) + "]");
  }
  line("wgmma.fence.sync.aligned");
  for (int i = 0; i < c.issues; ++i) {
    line((c.guard == '@'   ? "@%guard "
          : c.guard == '!' ? "@!%guard "
                           : "") +
         c.spelling->text + " " + registers(sums, "%d") + ", " +
         (c.a_registers ? registers(4, "%a") : "%a_descriptor") + ", %b_descriptor, " +
         (i ? "%next" : "%scale") + constants(c));
  }
  line("wgmma.commit_group.sync.aligned");
  line("wgmma.wait_group.sync.aligned 0");
  line("mad.wide.u32 %at, %thread, 4, %out");
  for (int i = 0; i < sums; ++i) {
    line("st.global." + type + " [%at+" + std::to_string(i * 512) + "], %d" + std::to_string(i));
  }
  return text + "  ret;\n}\n";
}

std::vector<std::vector<uint64_t>> wgmma_columns(const WgmmaCase& c,
                                                 const std::vector<uint64_t>& words) {
  std::vector<std::vector<uint64_t>> columns(static_cast<size_t>(c.n));
  for (int column = 0; column < c.n; ++column) {
    for (int row = 0; row < kRows; ++row) {
      const Home h = home(c, row, column);
      const auto at = static_cast<size_t>(h.reg * 128 + h.thread);
      const uint64_t word = words[at / 2] >> (at % 2 * 32);
      columns[static_cast<size_t>(column)].push_back(c.half_sums ? word >> (h.half * 16) & 0xffff
                                                                 : word & 0xffffffff);
    }
  }
  return columns;
}

}  // namespace ptxvm_vectors
