// SPDX-License-Identifier: MIT
#include "tools/tcgen05_case.h"

#include <algorithm>
#include <stdexcept>

namespace ptxvm_vectors {
namespace {

using namespace ptxvm;

constexpr uint32_t kShared = 48128;  // what fits beside two barriers; B begins at kRegionB
constexpr int kDepth = 16, kLanes = 128;
constexpr int kColumnsOfA = kDepth / 2;  // in tensor memory, behind D

// Sections of the inputs, in bytes.
constexpr uint32_t kHeader = kShared, kCells = kHeader + 64;

constexpr std::array kSwizzles = {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B};

const isa::Spelling* find_spelling(bool a_tensor, const std::string& collector) {
  const std::string text = "tcgen05.mma.cta_group::1.kind::f16" + collector;
  for (const isa::Spelling* s = isa::find(text); s; s = s->overload) {
    const bool masked = std::any_of(s->operands.begin(), s->operands.end(), [](const auto& o) {
      return o.kind == isa::OperandKind::kVector;
    });
    if (s->operands[1].tensor == a_tensor && !masked) return s;
  }
  return nullptr;
}

// Writes the list of cases.
class List {
 public:
  std::vector<WgmmaCase> cases;

  // Types: f16 or bf16 with sums in f32, or f16 with sums in f16.
  static WgmmaCase make(int m, int n, bool a_tensor, int types, Data data,
                        Swizzle swizzle = Swizzle::k128B, bool a_mn = false, bool b_mn = false) {
    WgmmaCase c;
    c.m = m;
    c.n = n;
    c.a_registers = a_tensor;
    c.half_sums = types == 2;
    c.bfloat = types == 1;
    c.data = data;
    c.a = packed(swizzle, a_mn, m);
    c.b = packed(swizzle, b_mn, n);
    return c;
  }

  void add(WgmmaCase c, const std::string& why, const std::string& detail,
           const std::string& collector = "") {
    c.spelling = find_spelling(c.a_registers, collector);
    c.why = why;
    c.name = "m" + std::to_string(c.m) + "n" + std::to_string(c.n) + "k16." + c.sum_type() + "." +
             c.a_type() + ", " + ptxvm_vectors::name(c.data) + ", A " +
             (c.a_registers ? "in tensor memory" : describe(c.a)) + ", B " + describe(c.b) +
             (detail.empty() ? "" : ", " + detail);
    cases.push_back(std::move(c));
  }

  void shapes() {
    for (int types = 0; types < 3; ++types) {
      for (bool a_tensor : {false, true}) {
        for (int m : {64, 128}) {
          for (int n : {16, 80, 240})
            add(make(m, n, a_tensor, types, Data::kNormal), "types and shapes", "");
          add(make(m, 256, a_tensor, types, Data::kNormal, Swizzle::k64B), "the largest N", "");
        }
        add(make(64, 8, a_tensor, types, Data::kNormal), "the smallest N", "");
      }
    }
  }

  void layouts() {
    for (int m : {64, 128}) {
      for (Swizzle swizzle : kSwizzles) {
        for (int bits = 0; bits < 6; ++bits) {
          const bool a_tensor = bits >= 4, a_mn = !a_tensor && (bits & 2), b_mn = bits & 1;
          for (int types = 0; types < (m == 128 ? 3 : 1); ++types) {
            add(make(m, 64, a_tensor, types, Data::kSmall, swizzle, a_mn, b_mn),
                "swizzle and major of both operands", "");
          }
        }
      }
    }
    for (uint32_t step = 32; step < 128; step += 32) {
      WgmmaCase c = make(128, 64, false, 0, Data::kSmall);
      c.a.start = c.b.start = step;
      add(c, "a later step of k in a panel", "start " + std::to_string(step));
    }
  }

  void signs() {
    for (int types = 0; types < 3; ++types) {
      for (int bits = 0; bits < 16; ++bits) {
        for (Data data : {Data::kSmall, Data::kNormal}) {
          WgmmaCase c = make(128, 16, bits & 1, types, data);
          c.accumulate = bits & 2;
          c.scale_a = bits & 4 ? -1 : 1;
          c.scale_b = bits & 8 ? -1 : 1;
          add(c, "scale-d and the signs",
              "scale-d " + std::to_string(c.accumulate) + ", A times " + std::to_string(c.scale_a) +
                  ", B times " + std::to_string(c.scale_b));
        }
      }
    }
  }

  void several() {
    for (bool a_tensor : {false, true}) {
      for (Data data : {Data::kSmall, Data::kNormal}) {
        WgmmaCase c = make(128, 16, a_tensor, 0, data);
        c.issues = 3;
        add(c, "several on the same accumulators", "3 times");
        add(c, "the collector keeps A", "3 times", ".collector::a::fill");
        c.issues = 1;
        add(c, "the collector drops A", "", ".collector::a::discard");
      }
    }
  }

  void special() {
    for (int types = 0; types < 3; ++types) {
      for (bool accumulate : {false, true}) {
        WgmmaCase c = make(64, 16, false, types, Data::kSpecial);
        c.accumulate = accumulate;
        add(c, "infinities, NaN, zeros, subnormals, cancellation",
            "scale-d " + std::to_string(accumulate));
      }
    }
  }
};

// The matrix descriptor without its start address (PTX ISA 9.7.16.4.1).
uint64_t matrix_descriptor(const Placement& p) {
  constexpr std::array<uint64_t, 4> kModes = {0, 6, 4, 2};
  const auto at = std::find(kSwizzles.begin(), kSwizzles.end(), p.swizzle) - kSwizzles.begin();
  return uint64_t{p.leading} >> 4 << 16 | uint64_t{p.stride} >> 4 << 32 | uint64_t{1} << 46 |
         uint64_t{p.base_offset} << 49 | kModes[static_cast<size_t>(at)] << 61;
}

// The instruction descriptor of kind::f16 (PTX ISA 9.7.16.4.2).
uint32_t instruction_descriptor(const WgmmaCase& c) {
  const auto bit = [](bool value, int at) { return static_cast<uint32_t>(value) << at; };
  return bit(!c.half_sums, 4) | bit(c.bfloat, 7) | bit(c.bfloat, 10) | bit(c.scale_a < 0, 13) |
         bit(c.scale_b < 0, 14) | bit(!c.a_registers && c.a.mn, 15) | bit(c.b.mn, 16) |
         static_cast<uint32_t>(c.n / 8) << 17 | static_cast<uint32_t>(c.m / 16) << 24;
}

// The lane of tensor memory that holds a row (PTX ISA 9.7.16.10.5).
int lane_of(const WgmmaCase& c, int row) {
  return c.m == kLanes ? row : row % 16 + row / 16 * 32;
}

size_t cell(int column, int lane) {
  return static_cast<size_t>(column * kLanes + lane);
}

// Columns of tensor memory at first. What no operand covers would be seen.
std::vector<uint32_t> cells_of(const WgmmaCase& c, const std::map<std::string, Matrix>& m) {
  std::vector<uint32_t> cells(cell(c.n + kColumnsOfA, 0), 0xeeeeeeee);
  const Matrix& a = m.at(matrix_name('a', c));
  for (int row = 0; row < c.m; ++row) {
    const int lane = lane_of(c, row);
    for (int column = 0; column < c.n; ++column)
      cells[cell(column, lane)] = static_cast<uint32_t>(initial(m, c, row, column));
    for (int pair = 0; pair < kColumnsOfA && c.a_registers; ++pair) {
      const auto k = static_cast<size_t>(row * kDepth + 2 * pair);
      cells[cell(c.n + pair, lane)] = static_cast<uint32_t>(a.bits[k] | a.bits[k + 1] << 16);
    }
  }
  return cells;
}

// Shared memory as bytes, then the header.
std::vector<unsigned char> image_of(const WgmmaCase& c, const std::map<std::string, Matrix>& m) {
  std::vector<unsigned char> image(kCells, 0xee);
  const auto put = [&](uint32_t at, uint64_t bits, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i)
      image[at + i] = static_cast<unsigned char>(bits >> (8 * i));
  };
  const Matrix& a = m.at(matrix_name('a', c));
  const Matrix& b = m.at(matrix_name('b', c));
  const auto element = [](const Matrix& x, int row, int k) {
    return x.bits[static_cast<size_t>(row * kDepth + k)];
  };
  for (int k = 0; k < kDepth; ++k) {
    for (int row = 0; row < c.m && !c.a_registers; ++row)
      put(c.a.place(row, k), element(a, row, k), 2);
    for (int row = 0; row < c.n; ++row) put(kRegionB + c.b.place(row, k), element(b, row, k), 2);
  }
  const std::array<uint64_t, 7> header = {
      matrix_descriptor(c.a),    c.a.start,    matrix_descriptor(c.b),    kRegionB + c.b.start,
      instruction_descriptor(c), c.accumulate, static_cast<uint64_t>(c.n)};
  for (uint32_t i = 0; i < header.size(); ++i) put(kHeader + 8 * i, header[i], 8);
  return image;
}

// The first product fills the collector, the last one is the last that uses it.
std::string spelling_of(const WgmmaCase& c, int issue) {
  std::string text = c.spelling->text;
  const size_t fill = text.find("fill");
  if (issue > 0 && fill != text.npos)
    text.replace(fill, 4, issue + 1 == c.issues ? "lastuse" : "use");
  return text;
}

// Shared memory is filled, tensor memory allocated and filled.
std::string prepare() {
  return R"(  .reg .b64 %in, %out, %at, %part, %a_descriptor, %b_descriptor;
  .reg .b32 %thread, %warp, %region, %i, %start, %tensor, %lanes, %a, %instruction;
  .reg .b32 %n, %column, %columns, %v<8>;
  .reg .pred %more, %scale, %next, %first, %allocates, %done;
  ld.param.u64 %in, [inputs];
  ld.param.u64 %out, [results];
  mov.u32 %thread, %tid.x;
  shr.u32 %warp, %thread, 5;
  setp.eq.u32 %first, %thread, 0;
  setp.eq.u32 %allocates, %warp, 0;
  mov.u32 %region, region;
  shl.b32 %i, %thread, 4;
$fill:
  cvt.u64.u32 %at, %i;
  add.u64 %at, %at, %in;
  ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%at];
  add.u32 %start, %region, %i;
  st.shared.v4.b32 [%start], {%v0, %v1, %v2, %v3};
  add.u32 %i, %i, 2048;
  setp.lt.u32 %more, %i, )" +
         std::to_string(kShared) + R"(;
  @%more bra $fill;
  fence.proxy.async.shared::cta;
  @%first mbarrier.init.shared.b64 [complete], 1;
  @%first fence.mbarrier_init.release.cluster;
  @!%allocates bra $allocated;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 512;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
$allocated:
  bar.sync 0;
  ld.shared.b32 %tensor, [where];
  shl.b32 %lanes, %warp, 21;
  add.u32 %lanes, %lanes, %tensor;
  ld.global.b64 %part, [%in+)" +
         std::to_string(kHeader + 48) + R"(];
  cvt.u32.u64 %n, %part;
  add.u32 %a, %tensor, %n;
  add.u32 %columns, %n, )" +
         std::to_string(kColumnsOfA) + ";\n";
}

// Moves all columns of tensor memory by eight. `%at` is where the thread's first word stands.
std::string move_columns(const std::string& label, bool load) {
  const std::string list = "{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}";
  std::string global;
  for (int i = 0; i < 8; ++i) {
    const std::string word = "%v" + std::to_string(i),
                      place = "[%at+" + std::to_string(i * 4 * kLanes) + "]";
    global += load ? "  st.global.b32 " + place + ", " + word + ";\n"
                   : "  ld.global.b32 " + word + ", " + place + ";\n";
  }
  return "  mov.u32 %column, 0;\n" + label + ":\n  add.u32 %start, %lanes, %column;\n" +
         (load ? "  tcgen05.ld.sync.aligned.32x32b.x8.b32 " + list +
                     ", [%start];\n  tcgen05.wait::ld.sync.aligned;\n" + global
               : global + "  tcgen05.st.sync.aligned.32x32b.x8.b32 [%start], " + list + ";\n") +
         "  add.u64 %at, %at, " + std::to_string(8 * 4 * kLanes) +
         ";\n  add.u32 %column, %column, 8;\n  setp.lt.u32 %more, %column, %columns;\n  @%more "
         "bra " +
         label + ";\n";
}

// One thread multiplies, and lets the barrier say when that is done.
std::string multiply(const WgmmaCase& c) {
  std::string text = "  @!%first bra $issued;\n";
  const auto line = [&](const std::string& s) { text += "  " + s + ";\n"; };
  text += load_descriptors(kHeader);
  line("ld.global.b64 %part, " + header_field(kHeader, 4));
  line("cvt.u32.u64 %instruction, %part");
  line("ld.global.b64 %part, " + header_field(kHeader, 5));
  line("setp.ne.u64 %scale, %part, 0");
  line("setp.eq.u32 %next, %tensor, %tensor");
  for (int i = 0; i < c.issues; ++i) {
    line(spelling_of(c, i) + " [%tensor], " + (c.a_registers ? "[%a]" : "%a_descriptor") +
         ", %b_descriptor, %instruction, " + (i ? "%next" : "%scale"));
  }
  line("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [complete]");
  return text + "$issued:\n";
}

}  // namespace

std::vector<WgmmaCase> tcgen05_cases() {
  List list;
  list.shapes();
  list.layouts();
  list.signs();
  list.several();
  list.special();
  return std::move(list.cases);
}

std::map<std::string, Matrix> make_tcgen05_matrices() {
  std::map<std::string, Matrix> all;
  for (const WgmmaCase& c : tcgen05_cases()) {
    for (char operand : {'a', 'b', 'c'}) {
      auto& found = all[matrix_name(operand, c)];
      if (!found.bits.empty()) continue;
      found = make_matrix(operand, operand == 'c' ? c.sum_type() : c.a_type(), c.data,
                          operand == 'b' ? kMostColumns : kLanes, kDepth);
    }
  }
  return all;
}

std::vector<uint64_t> tcgen05_inputs(const WgmmaCase& c, const std::map<std::string, Matrix>& m) {
  const std::vector<unsigned char> image = image_of(c, m);
  const std::vector<uint32_t> cells = cells_of(c, m);
  std::vector<uint64_t> words((image.size() + cells.size() * 4) / 8);
  for (size_t i = 0; i < image.size(); ++i) words[i / 8] |= uint64_t{image[i]} << (i % 8 * 8);
  for (size_t i = 0; i < cells.size(); ++i)
    words[kCells / 8 + i / 2] |= uint64_t{cells[i]} << (i % 2 * 32);
  return words;
}

size_t tcgen05_output_words(const WgmmaCase& c) {
  return cell(c.n + kColumnsOfA, 0) / 2;
}

std::string tcgen05_module(const WgmmaCase& c, const std::string& name) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n.shared .align 1024 .b8 region[" +
         std::to_string(kShared) +
         "];\n.shared .align 8 .b8 complete[8], where[8];\n.visible .entry " + name +
         "(.param .u64 inputs, .param .u64 results)\n.maxntid 128, 1, 1\n{\n" + prepare() +
         "  mad.wide.u32 %at, %thread, 4, %in;\n  add.u64 %at, %at, " + std::to_string(kCells) +
         ";\n" + move_columns("$store", false) +
         "  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n"
         "  bar.sync 0;\n  tcgen05.fence::after_thread_sync;\n" +
         multiply(c) +
         "$wait:\n  mbarrier.try_wait.parity.shared.b64 %done, [complete], 0;\n"
         "  @!%done bra $wait;\n  tcgen05.fence::after_thread_sync;\n"
         "  mad.wide.u32 %at, %thread, 4, %out;\n" +
         move_columns("$load", true) +
         "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  @!%allocates bra $freed;\n"
         "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tensor, 512;\n$freed:\n  ret;\n}\n";
}

std::vector<std::vector<uint64_t>> tcgen05_columns(const WgmmaCase& c,
                                                   const std::vector<uint64_t>& inputs,
                                                   const std::vector<uint64_t>& words) {
  const auto read = [](const std::vector<uint64_t>& from, size_t at) {
    return static_cast<uint32_t>(from[at / 2] >> (at % 2 * 32));
  };
  std::vector<bool> of_d(kLanes);
  for (int row = 0; row < c.m; ++row) of_d[static_cast<size_t>(lane_of(c, row))] = true;
  std::vector<std::vector<uint64_t>> columns(static_cast<size_t>(c.n));
  for (int column = 0; column < c.n + kColumnsOfA; ++column) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const size_t at = cell(column, lane);
      const uint32_t bits = read(words, at);
      if (column < c.n && of_d[static_cast<size_t>(lane)]) {
        // Rows stand in the order of their lanes.
        columns[static_cast<size_t>(column)].push_back(c.half_sums ? bits & 0xffff : bits);
      } else if (bits != read(inputs, kCells / 4 + at)) {
        throw std::runtime_error("tensor memory beside D has changed: column " +
                                 std::to_string(column) + ", lane " + std::to_string(lane));
      }
    }
  }
  return columns;
}

}  // namespace ptxvm_vectors
