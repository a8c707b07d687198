// SPDX-License-Identifier: MIT
// wmma (PTX ISA 9.7.14.4). How a fragment spreads over the warp is not defined: sums stand as those
// of mma.sync do, A row by row, B column by column, repeated where there is room.
#include <algorithm>
#include <cmath>

#include "exec/access.h"
#include "exec/converge.h"
#include "exec/ops/lanes.h"
#include "exec/poison.h"
#include "num/half.h"
#include "num/rounding.h"
#include "num/single.h"

namespace ptxvm::ops {
namespace {

constexpr int kMost = 512;  // elements of a matrix

struct Shape {
  uint8_t m = 0, n = 0, k = 0;
};

// A matrix in the registers of a warp.
struct Fragment {
  Type type = Type::kNone;
  bool sum = false, by_columns = false;
  uint8_t rows = 0, columns = 0;
  uint8_t registers = 0;

  int size() const { return rows * columns; }
  int per_register() const {
    return type == Type::kF64 ? 1
                              : 32 / std::min(32, bits(type == Type::kTf32 ? Type::kF32 : type));
  }
  int slots() const { return registers * per_register(); }  // of a lane

  // The element (row * columns + column) of a lane's slot.
  int element(int lane, int slot) const {
    if (!sum) {
      const int at = (lane * slots() + slot) % size();
      return by_columns ? at % rows * columns + at / rows : at;
    }
    // Tiles of up to 16 x 8, as mma.sync has them.
    const int halves = rows >= 16 ? 2 : 1;
    const int tile = slot / (2 * halves), half = slot % (2 * halves) / 2;
    const int tiles_down = rows / (8 * halves);
    const int row = (tile % tiles_down * halves + half) * 8 + lane / 4;
    const int column = tile / tiles_down * 8 + lane % 4 * 2 + slot % 2;
    return row * columns + column;
  }
};

double read_slot(Warp& w, const Op& op, int first, const Fragment& f, int lane, int slot) {
  const int per = f.per_register();
  const Ref ref = op.list[first + slot / per];
  if (f.type == Type::kF64) return w.at<double>(ref)[lane];
  const uint32_t word = w.at<uint32_t>(ref)[lane] >> (32 / per * (slot % per));
  switch (f.type) {
    case Type::kF16:
      return static_cast<double>(num::half_to_float(static_cast<uint16_t>(word)));
    case Type::kBf16:
      return static_cast<double>(num::bfloat_to_float(static_cast<uint16_t>(word)));
    case Type::kTf32:
      return static_cast<double>(std::bit_cast<float>(word & ~0x1fffu));
    case Type::kS8:
      return static_cast<int8_t>(word);
    case Type::kU8:
      return static_cast<uint8_t>(word);
    case Type::kS32:
      return static_cast<int32_t>(word);
    default:
      return static_cast<double>(std::bit_cast<float>(word));
  }
}

void write_bits(Warp& w, const Op& op, int first, const Fragment& f, int lane, int slot,
                uint64_t bits) {
  const int per = f.per_register();
  const Ref ref = op.list[first + slot / per];
  if (f.type == Type::kF64) {
    w.at<uint64_t>(ref)[lane] = bits;
    return;
  }
  const int width = 32 / per, shift = width * (slot % per);
  const uint32_t keep = width == 32 ? 0 : ~(((1u << width) - 1) << shift);
  uint32_t& word = w.at<uint32_t>(ref)[lane];
  word = (word & keep) | static_cast<uint32_t>(bits) << shift;
}

struct Access {
  Fragment fragment;
  bool column_major = false;
  Space space = Space::kGeneric;
};

uint32_t element_bytes(Type t) {
  return t == Type::kTf32 ? 4 : static_cast<uint32_t>(bits(t) / 8);
}

template <bool kObserved, bool kStore>
Step move_matrix(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const auto access = op.aux.as<Access>();
  const Fragment& f = access.fragment;
  const int address = kStore ? 0 : f.registers, stride = kStore ? 2 + f.registers : address + 2;
  const int first = kStore ? 2 : 0;
  const uint32_t bytes = element_bytes(f.type);
  const uint32_t packed = access.column_major ? f.rows : f.columns;
  const uint32_t* strides = op.list[stride] == kNoRef ? nullptr : w.at<uint32_t>(op.list[stride]);
  uint64_t base[32];
  lane_addresses(w, op.list[address], op.list[address + 1], base);
  for (int slot = 0; slot < f.slots(); ++slot) {
    Request request;
    for (int lane = 0; lane < 32; ++lane) {
      const auto e = static_cast<uint32_t>(f.element(lane, slot));
      const uint32_t row = e / f.columns, column = e % f.columns;
      const uint64_t pitch = strides ? strides[lane] : packed;
      request.wide[lane] =
          base[lane] + bytes * (access.column_major ? column * pitch + row : row * pitch + column);
    }
    for_spaces(access.space, kAllLanes, request, [&](Space space, uint32_t lanes) {
      resolve(w, op, space, lanes, bytes, bytes, kStore, request);
      const Ref* value = op.list + first + slot / f.per_register();
      Unwritten unwritten;
      if (kStore && (w.checks & kCheckPoison)) [[unlikely]]
        unwritten = poison_stored(w, op, space, lanes, std::span(value, 1), bytes, request.narrow);
      if constexpr (kObserved) {
        report_access(w, op, space, kStore ? AccessKind::kStore : AccessKind::kLoad, lanes, bytes,
                      request, {}, kStore && unwritten.lanes == 0 ? nullptr : &unwritten);
        if (!kStore && unwritten.lanes != 0)
          set_poison(w, *value, 0, {0, 0, unwritten.lanes, op.instruction});
      }
      for_lanes(lanes, [&](int lane) {
        uint64_t bits = 0;
        if constexpr (kStore) {
          const int per = f.per_register();
          bits = f.type == Type::kF64 ? w.at<uint64_t>(*value)[lane]
                                      : w.at<uint32_t>(*value)[lane] >> (32 / per * (slot % per));
          std::memcpy(request.host[lane], &bits, bytes);
        } else {
          std::memcpy(&bits, request.host[lane], bytes);
          write_bits(w, op, first, f, lane, slot, bits);
        }
      });
    });
  }
  return Step::kNext;
}

struct Product {
  Shape shape;
  Type a = Type::kNone, b = Type::kNone, c = Type::kNone, d = Type::kNone;
  bool saturate = false;
};

uint64_t sum_bits(double sum, const Product& p) {
  if (p.d == Type::kF64) return std::bit_cast<uint64_t>(sum);
  if (p.d == Type::kS32) {
    const auto wide = static_cast<int64_t>(sum);
    return static_cast<uint32_t>(p.saturate ? std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX)
                                            : wide);
  }
  const float single = num::canonical(static_cast<float>(sum));
  return p.d == Type::kF16 ? num::float_to_half(single) : std::bit_cast<uint32_t>(single);
}

// One more product, rounded as the sums are.
double accumulate(double sum, double a, double b, Type type) {
  if (type == Type::kF64) return std::fma(a, b, sum);
  if (type == Type::kS32) return sum + a * b;
  return static_cast<double>(static_cast<float>(sum) + static_cast<float>(a * b));
}

// The sums of a row of A and a column of B depend on what stands there.
void follow_product(Warp& w, const Op& op, const Fragment& fd, const Fragment& fa,
                    const Fragment& fb, const Fragment& fc) {
  Poison any;
  bool poisoned[kMost] = {};
  const auto read = [&](const Fragment& f, int first, auto mark) {
    for (int slot = 0; slot < f.slots(); ++slot) {
      const Poison p = poison_of(w, op.list[first + slot / f.per_register()]);
      any.add(p);
      for_lanes(p.all(), [&](int lane) { mark(f.element(lane, slot)); });
    }
  };
  const int columns = fd.columns, first_a = fd.registers, first_b = first_a + fa.registers;
  read(fa, first_a, [&](int e) {
    for (int j = 0; j < columns; ++j) poisoned[e / fa.columns * columns + j] = true;
  });
  read(fb, first_b, [&](int e) {
    for (int i = 0; i < fd.rows; ++i) poisoned[i * columns + e % columns] = true;
  });
  read(fc, first_b + fb.registers, [&](int e) { poisoned[e] = true; });
  for (int r = 0; r < fd.registers; ++r) {
    uint32_t lanes = 0;
    for (int slot = r * fd.per_register(); slot < (r + 1) * fd.per_register(); ++slot) {
      for_lanes(kAllLanes, [&](int lane) {
        if (poisoned[fd.element(lane, slot)]) lanes |= 1u << lane;
      });
    }
    // Where shuffles and loads have a part in it, either is named.
    set_poison(
        w, op.list[r], kAllLanes,
        {any.lanes != 0 ? lanes : 0, any.instruction, any.unwritten != 0 ? lanes : 0, any.load});
  }
}

Step multiply_matrices(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const auto p = op.aux.as<Product>();
  const isa::Spelling& s = *w.cta->launch->program->spellings[op.instruction];
  const auto fragment = [&](Type t, bool sum, uint8_t rows, uint8_t columns, size_t operand) {
    const auto registers = static_cast<uint8_t>(s.operands[operand].count);
    return Fragment{t, sum, operand == 2, rows, columns, registers};
  };
  const Shape z = p.shape;
  const Fragment fd = fragment(p.d, true, z.m, z.n, 0), fa = fragment(p.a, false, z.m, z.k, 1);
  const Fragment fb = fragment(p.b, false, z.k, z.n, 2), fc = fragment(p.c, true, z.m, z.n, 3);
  if (w.checks & kCheckPoison) [[unlikely]]
    follow_product(w, op, fd, fa, fb, fc);
  double a[kMost], b[kMost], c[kMost];
  const auto read = [&](double* to, const Fragment& f, int first) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int slot = 0; slot < f.slots(); ++slot) {
        to[f.element(lane, slot)] = read_slot(w, op, first, f, lane, slot);
      }
    }
  };
  const int first_a = fd.registers, first_b = first_a + fa.registers;
  read(a, fa, first_a);
  read(b, fb, first_b);
  read(c, fc, first_b + fb.registers);
  for (int i = 0; i < z.m; ++i) {
    for (int j = 0; j < z.n; ++j) {
      double& sum = c[i * z.n + j];
      for (int k = 0; k < z.k; ++k) sum = accumulate(sum, a[i * z.k + k], b[k * z.n + j], p.c);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int slot = 0; slot < fd.slots(); ++slot) {
      write_bits(w, op, 0, fd, lane, slot, sum_bits(c[fd.element(lane, slot)], p));
    }
  }
  return Step::kNext;
}

// Operands of 4 bits and 1 bit: a lane has the word that the fragment of mma.sync gives it. Strides
// count elements.
struct BitsAccess {
  Space space;
  uint8_t element_bits;
};

template <bool kObserved>
Step load_bits(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const auto access = op.aux.as<BitsAccess>();
  const uint32_t* strides = op.r[3] == kNoRef ? nullptr : w.at<uint32_t>(op.r[3]);
  Request request;
  lane_addresses(w, op.r[1], op.r[2], request.wide);
  for (uint64_t lane = 0; lane < 32; ++lane) {
    const uint64_t pitch = strides ? uint64_t{strides[lane]} * access.element_bits / 8 : 16;
    request.wide[lane] += lane / 4 * pitch + lane % 4 * 4;
  }
  for_spaces(access.space, kAllLanes, request, [&](Space each, uint32_t lanes) {
    resolve(w, op, each, lanes, 4, 4, false, request);
    if constexpr (kObserved) {
      Unwritten unwritten;
      report_access(w, op, each, AccessKind::kLoad, lanes, 4, request, {}, &unwritten);
      if (unwritten.lanes != 0) set_poison(w, op.r[0], 0, {0, 0, unwritten.lanes, op.instruction});
    }
    for_lanes(lanes, [&](int lane) {
      std::memcpy(w.at<uint32_t>(op.r[0]) + lane, request.host[lane], 4);
    });
  });
  return Step::kNext;
}

Space space_of_matrix(Modifiers& m) {
  const int space = m.choice({"global", "shared", "shared::cta"});
  return space < 0 ? Space::kGeneric : space == 0 ? Space::kGlobal : Space::kShared;
}

Shape shape_of(Modifiers& m) {
  if (m.choice({"m8n8k32", "m8n8k128"}) >= 0) return {8, 8, 32};  // of sums only
  switch (m.choice({"m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4"})) {
    case 1:
      return {8, 32, 16};
    case 2:
      return {32, 8, 16};
    case 3:
      return {16, 16, 8};
    case 4:
      return {8, 8, 4};
    default:
      break;
  }
  // Not a choice where the row names one shape.
  for (const isa::Token& t : m.spelling().tokens) {
    if (t.text == "m16n16k8") return {16, 16, 8};
    if (t.text == "m8n8k4") return {8, 8, 4};
  }
  return {16, 16, 16};
}

Access access_of(Modifiers& m, const isa::OperandSpec& registers) {
  const Shape z = shape_of(m);
  Access access;
  access.column_major = m.choice({"row", "col"}) == 1;
  access.space = space_of_matrix(m);
  Fragment& f = access.fragment;
  f.registers = static_cast<uint8_t>(registers.count);
  const std::string_view which = m.spelling().tokens[2].text;
  m.choice({"a", "b"});
  f.sum = which == "c" || which == "d";
  f.by_columns = which == "b";
  f.rows = which == "b" ? z.k : z.m;
  f.columns = which == "a" ? z.k : z.n;
  f.type = m.type();
  return access;
}

}  // namespace

Bound wmma_load(Modifiers& m) {
  const Access access = access_of(m, m.spelling().operands[0]);
  return {move_matrix<false, false>, move_matrix<true, false>, access};
}

Bound wmma_load_bits(Modifiers& m) {
  const uint8_t bits = m.flag("b1") ? 1 : 4;
  m.choice({"s4", "u4"});
  return {load_bits<false>, load_bits<true>, BitsAccess{space_of_matrix(m), bits}};
}

Bound wmma_store(Modifiers& m) {
  const Access access = access_of(m, m.spelling().operands[1]);
  return {move_matrix<false, true>, move_matrix<true, true>, access};
}

Bound wmma_mma(Modifiers& m) {
  Product p;
  p.shape = shape_of(m);
  m.flag("row");
  m.flag("col");
  p.saturate = m.flag("satfinite");
  m.flag("rn");
  p.d = m.type();
  const Type second = m.type(), third = m.type();
  if (third == Type::kNone) {  // f16 operands are not named
    p.a = p.b = Type::kF16;
    // Both types may be the same word.
    p.c = second == Type::kNone ? p.d : second;
  } else {
    p.a = second;
    p.b = third;
    p.c = p.d;
    m.type();
  }
  return code(multiply_matrices, p);
}

}  // namespace ptxvm::ops
