// SPDX-License-Identifier: MIT
// Warpgroup matrix instructions (PTX ISA 9.7.15). The four warps of a warpgroup issue an
// mma_async one after the other; it runs when they have met in the wait_group that asks for it.
#include <bit>

#include "exec/access.h"
#include "exec/async.h"
#include "exec/converge.h"
#include "exec/ops/lanes.h"
#include "exec/ops/matrix_operand.h"
#include "exec/ops/tensor_kind.h"
#include "num/half.h"
#include "num/tile.h"

namespace ptxvm {
namespace {

struct Product {
  uint8_t tiles = 0;  // of 8 columns
  bool bfloat : 1 = false, a_in_registers : 1 = false;
  bool other : 1 = false;  // operands are not 16 bits wide: `kind` says what they are
  num::TensorKind kind;

  bool half_sums() const { return kind.sum == num::Sum::kF16; }
};

// Where operands stand in the list.
struct Layout {
  uint32_t columns, sums, b, predicate, scale_a, scale_b;
  bool a_in_registers;
  Major a_major, b_major;

  explicit Layout(const Op& op) {
    const auto product = op.aux.as<Product>();
    columns = product.tiles * 8u;
    sums = columns / (product.half_sums() ? 4 : 2);
    a_in_registers = product.a_in_registers;
    b = sums + (a_in_registers ? 4 : 1);
    predicate = b + 1;
    scale_a = b + 2;
    scale_b = b + 3;
    // Only 16-bit operands may be transposed.
    auto major = [&](uint32_t at) {
      if (product.other) return Major::kK;
      return op.list[at] != 0 ? Major::kMn : Major::kK;
    };
    a_major = a_in_registers ? Major::kK : major(b + 4);
    b_major = major(a_in_registers ? b + 4 : b + 5);
  }
};

Warpgroup& warpgroup(Warp& w, const Op& op) {
  auto& all = w.cta->async.warpgroups;
  if (w.index / 4u >= all.size()) {
    raise(w, op, FaultKind::kDivergence, -1,
          "a warpgroup is four warps, the first a multiple of four; warp " +
              std::to_string(w.index) + " belongs to none, as the block has " +
              std::to_string(w.cta->warps.size()));
  }
  return all[w.index / 4u];
}

WgmmaEvent event(const Warp& w, uint32_t instruction, WgmmaAction action, uint64_t group) {
  WgmmaEvent e;
  e.warp = id_of(w);
  e.instruction = instruction;
  e.action = action;
  e.warpgroup = w.index / 4u;
  e.group = group;
  return e;
}

void report(const Warp& w, const WgmmaEvent& e) {
  notify(w, [&](Probe& p) { p.wgmma(e); });
}

// An issue or execution with the operands that it has in shared memory.
void report_operands(Warp& w, WgmmaEvent e, const PendingMma& mma) {
  const Layout l(*mma.op);
  std::vector<SharedRange> ranges;
  auto add = [&](uint64_t bits, Major major, uint32_t extent) {
    for (SharedRange r : find_footprint(*w.cta, bits, major, extent).ranges) {
      r.address += origin(bits);
      ranges.push_back(r);
    }
  };
  if (!l.a_in_registers) add(mma.descriptor[0], l.a_major, 64);
  add(mma.descriptor[1], l.b_major, l.columns);
  e.shared = ranges;
  report(w, e);
}

// The 8x8 matrix of an operand: rows 8 `group` to 8 `group` + 7, half of k.
void load_tile(const std::byte* origin, const MatrixFootprint& f, Major major, uint32_t group,
               uint32_t half, uint32_t* out) {
  num::Row rows[8];
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t chunk =
        major == Major::kK ? 2 * (8 * group + i) + half : 16 * group + 8 * half + i;
    std::memcpy(&rows[i], origin + f.chunks[chunk], 16);
  }
  if (major == Major::kMn) num::transpose(rows);
  std::memcpy(out, rows, sizeof rows);
}

void negate(const Product& product, uint32_t* registers, size_t count) {
  uint32_t signs = 0x80008000u;
  if (product.other) signs = product.kind.a == num::Element::kTf32 ? 0x80000000u : 0x80808080u;
  for (size_t i = 0; i < count; ++i) registers[i] ^= signs;
}

// The same with operands that are not 16 bits wide.
void multiply_other(const Op& op, bool accumulate, Warp& w, uint32_t tile, const uint32_t* const* a,
                    const uint32_t* const* b) {
  const num::TensorKind kind = op.aux.as<Product>().kind;
  const uint32_t words = kind.sum == num::Sum::kF16 ? 2 : 4;
  uint32_t* d[4] = {};
  for (uint32_t i = 0; i < words; ++i) d[i] = w.at<uint32_t>(op.list[words * tile + i]);
  alignas(64) const uint32_t zeros[32] = {};
  const uint32_t* const nothing[4] = {zeros, zeros, zeros, zeros};
  num::multiply_fragments(kind, 16, 2, d, a, b, accumulate ? d : nothing);
}

// One 16x8 tile of the result, in the registers of one warp.
void multiply(const num::Kernels& kernels, const Op& op, bool accumulate, Warp& w, uint32_t tile,
              const uint32_t* const* a, const uint32_t* const* b) {
  const auto product = op.aux.as<Product>();
  if (product.other) return multiply_other(op, accumulate, w, tile, a, b);
  alignas(64) uint32_t wide[4][32] = {};
  uint32_t* sums[4] = {wide[0], wide[1], wide[2], wide[3]};
  if (product.half_sums()) {
    uint32_t* d[2] = {w.at<uint32_t>(op.list[2 * tile]), w.at<uint32_t>(op.list[2 * tile + 1])};
    if (accumulate) {
      for (int i = 0; i < 64; ++i) {
        const uint32_t pair = d[i / 32][i % 32];
        wide[i / 32 * 2][i % 32] =
            std::bit_cast<uint32_t>(num::half_to_float(static_cast<uint16_t>(pair)));
        wide[i / 32 * 2 + 1][i % 32] =
            std::bit_cast<uint32_t>(num::half_to_float(static_cast<uint16_t>(pair >> 16)));
      }
    }
    kernels.mma_f16(sums, a, b, sums, 2);
    for (int i = 0; i < 64; ++i) {
      const uint32_t low = num::float_to_half(std::bit_cast<float>(wide[i / 32 * 2][i % 32]));
      const uint32_t high = num::float_to_half(std::bit_cast<float>(wide[i / 32 * 2 + 1][i % 32]));
      d[i / 32][i % 32] = low | high << 16;
    }
    return;
  }
  uint32_t* d[4];
  for (uint32_t i = 0; i < 4; ++i) d[i] = w.at<uint32_t>(op.list[4 * tile + i]);
  (product.bfloat ? kernels.mma_bf16 : kernels.mma_f16)(d, a, b, accumulate ? d : sums, 2);
}

void execute(Cta& cta, uint32_t first_warp, PendingMma& mma) {
  const Op& op = *mma.op;
  const Layout l(op);
  const std::byte* shared = cta.shared - cta.shared_base;
  const uint32_t tiles = l.columns / 8;
  alignas(64) uint32_t b[32][2][32];
  const MatrixFootprint& fb = find_footprint(cta, mma.descriptor[1], l.b_major, l.columns);
  for (uint32_t t = 0; t < tiles; ++t) {
    for (uint32_t half = 0; half < 2; ++half) {
      load_tile(shared + origin(mma.descriptor[1]), fb, l.b_major, t, half, b[t][half]);
    }
  }
  const auto product = op.aux.as<Product>();
  const bool scaled = product.kind.sum != num::Sum::kS32;
  if (scaled && static_cast<int32_t>(op.list[l.scale_b]) < 0)
    negate(product, b[0][0], size_t{tiles} * 64);
  for (uint32_t i = 0; i < 4; ++i) {
    auto& a = mma.a[i];
    if (!l.a_in_registers) {
      const MatrixFootprint& fa = find_footprint(cta, mma.descriptor[0], l.a_major, 64);
      for (uint32_t r = 0; r < 4; ++r) {
        load_tile(shared + origin(mma.descriptor[0]), fa, l.a_major, 2 * i + r % 2, r / 2,
                  a[r].data());
      }
    }
    if (scaled && static_cast<int32_t>(op.list[l.scale_a]) < 0) negate(product, a[0].data(), 128);
    const uint32_t* const fragments[4] = {a[0].data(), a[1].data(), a[2].data(), a[3].data()};
    Warp& w = cta.warps[first_warp + i];
    for (uint32_t t = 0; t < tiles; ++t) {
      const uint32_t* const columns[2] = {b[t][0], b[t][1]};
      multiply(*cta.launch->kernels, op, mma.accumulate, w, t, fragments, columns);
    }
  }
}

// Registers that another wgmma in flight uses: only the same accumulators may be used again.
void check_registers(Warp& w, const Op& op, const Layout& l) {
  if (!(w.checks & kCheckBusy)) return;
  const uint32_t allowed = accumulator_use(op, l.sums);
  for (uint32_t i = 0; i < l.sums + (l.a_in_registers ? 4 : 0); ++i) {
    if (op.list[i] & kRefPool) continue;
    const uint32_t use = w.busy[op.list[i] / kRegisterLine];
    if (i < l.sums ? use == 0 || use == allowed : use <= kUseA) continue;
    raise(w, op, FaultKind::kInvalid, -1,
          std::string(i < l.sums ? "an accumulator" : "a register of A") +
              " is in use by another wgmma that has not been waited for");
  }
}

[[noreturn]] void not_together(Warp& w, const Op& op, const Op& other, const char* what) {
  const Kernel kernel(w.cta->launch->program);
  raise(w, op, FaultKind::kDivergence, -1,
        "the warps of warpgroup " + std::to_string(w.index / 4) + " do not " + what +
            " together: another one is at line " +
            std::to_string(kernel.instructions()[other.instruction].line));
}

template <bool kObserved>
Step issue(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  Warpgroup& g = warpgroup(w, op);
  const Layout l(op);
  const uint32_t self = w.index % 4u;
  check_registers(w, op, l);
  uint64_t descriptor[2] = {0, uniform<uint64_t>(w, op, op.list[l.b], "the descriptor of B")};
  if (!l.a_in_registers) {
    descriptor[0] = uniform<uint64_t>(w, op, op.list[l.sums], "the descriptor of A");
    check_operand(w, op, *w.cta, descriptor[0], l.a_major, 64);
  }
  check_operand(w, op, *w.cta, descriptor[1], l.b_major, l.columns);
  const uint32_t scale = w.predicate(op.list[l.predicate]);
  if (scale != 0 && scale != kAllLanes) {
    raise(w, op, FaultKind::kInvalid, -1, "scale-d differs between lanes");
  }
  const uint64_t sequence = g.issued[self]++;
  const size_t at = static_cast<size_t>(sequence - g.executed);
  if (at == g.pending.size()) {
    PendingMma& mma = g.pending.emplace_back();
    mma.op = &op;
    mma.group = g.committed[self];
    mma.descriptor[0] = descriptor[0];
    mma.descriptor[1] = descriptor[1];
    mma.accumulate = scale != 0;
  }
  PendingMma& mma = g.pending[at];
  if (mma.op != &op || mma.group != g.committed[self]) not_together(w, op, *mma.op, "issue wgmma");
  if (mma.descriptor[0] != descriptor[0] || mma.descriptor[1] != descriptor[1]) {
    raise(w, op, FaultKind::kInvalid, -1, "a descriptor differs between warps of the warpgroup");
  }
  if (mma.accumulate != (scale != 0)) {
    raise(w, op, FaultKind::kInvalid, -1, "scale-d differs between warps of the warpgroup");
  }
  mma.issued |= 1u << self;
  if (l.a_in_registers) {
    for (uint32_t r = 0; r < 4; ++r) {
      std::memcpy(mma.a[self][r].data(), w.at<uint32_t>(op.list[l.sums + r]), 128);
    }
  }
  mark_registers(w, op, l.sums, l.a_in_registers);
  if constexpr (kObserved) {
    if (w.cta->launch->program->unfenced[op.instruction]) {
      report(w, event(w, op.instruction, WgmmaAction::kUnfenced, mma.group));
    }
    WgmmaEvent e = event(w, op.instruction, WgmmaAction::kIssue, mma.group);
    e.sequence = sequence;
    report_operands(w, e, mma);
  }
  return Step::kNext;
}

template <bool kObserved>
Step fence(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  warpgroup(w, op);
  if constexpr (kObserved) report(w, event(w, op.instruction, WgmmaAction::kFence, 0));
  return Step::kNext;
}

template <bool kObserved>
Step commit(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const uint64_t group = warpgroup(w, op).committed[w.index % 4u]++;
  if constexpr (kObserved) report(w, event(w, op.instruction, WgmmaAction::kCommit, group));
  return Step::kNext;
}

// All four warps are there: runs what they wait for.
void complete(Warp& w, const Op& op, Warpgroup& g) {
  Cta& cta = *w.cta;
  const uint32_t first = w.index / 4u * 4u;
  while (!g.pending.empty() && g.pending.front().group < g.target) {
    PendingMma& mma = g.pending.front();
    if (mma.issued != 0xf) not_together(w, op, *mma.op, "issue wgmma");
    if (cta.launch->observed) {
      WgmmaEvent e = event(w, mma.op->instruction, WgmmaAction::kExecute, mma.group);
      e.sequence = g.executed;
      report_operands(w, e, mma);
    }
    execute(cta, first, mma);
    g.pending.pop_front();
    ++g.executed;
  }
  for (uint32_t i = 0; i < 4; ++i) mark_busy_registers(cta.warps[first + i]);
  if (cta.launch->observed) {
    report(w, event(w, op.instruction, WgmmaAction::kComplete, g.target));
  }
  g.released = 0xf;
  g.arrived = 0;
}

template <bool kObserved>
Step wait(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  Warpgroup& g = warpgroup(w, op);
  const uint32_t bit = 1u << w.index % 4u;
  if (!w.waiting) {
    const uint64_t committed = g.committed[w.index % 4u];
    const uint64_t target = committed - std::min<uint64_t>(committed, op.r[0]);
    if (g.arrived == 0) {
      g.wait = &op;
      g.target = target;
    }
    if (g.wait != &op || g.target != target) not_together(w, op, *g.wait, "wait");
    if constexpr (kObserved) report(w, event(w, op.instruction, WgmmaAction::kWait, op.r[0]));
    w.waiting = true;
    g.arrived |= bit;
    if (g.arrived == 0xf) complete(w, op, g);
  }
  if (!(g.released & bit)) return Step::kRetry;
  g.released &= ~bit;
  w.waiting = false;
  return Step::kNext;
}

Product product_of(Modifiers& m) {
  Product p;
  for (int tiles = 1; tiles <= 32; ++tiles) {
    for (const char* depth : {"k16", "k8", "k32"}) {
      if (m.flag("m64n" + std::to_string(8 * tiles) + depth)) p.tiles = static_cast<uint8_t>(tiles);
    }
  }
  p.a_in_registers = m.spelling().operands[1].kind == isa::OperandKind::kVector;
  return p;
}

}  // namespace

namespace ops {

Bound wgmma(Modifiers& m) {
  Product p = product_of(m);
  if (m.spelling().tokens[5].text == "f16") p.kind.sum = num::Sum::kF16;
  m.flag("f16");
  p.bfloat = m.flag("bf16");
  return {issue<false>, issue<true>, p};
}
Bound wgmma_any(Modifiers& m) {
  Product p = product_of(m);
  p.other = true;
  p.kind = tensor_kind_of(m);
  return {issue<false>, issue<true>, p};
}
Bound wgmma_fence(Modifiers&) {
  return {fence<false>, fence<true>};
}
Bound wgmma_commit(Modifiers&) {
  return {commit<false>, commit<true>};
}
Bound wgmma_wait(Modifiers&) {
  return {wait<false>, wait<true>};
}

}  // namespace ops
}  // namespace ptxvm
