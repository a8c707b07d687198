// SPDX-License-Identifier: MIT
// Tensor memory as warps use it (PTX ISA 9.7.16): they allocate it, and load and store at once;
// their registers may be used after the wait.
#include <algorithm>
#include <bit>
#include <cstring>

#include "exec/access.h"
#include "exec/async.h"
#include "exec/converge.h"
#include "exec/ops/lanes.h"
#include "exec/ops/tensor_work.h"
#include "exec/poison.h"

namespace ptxvm {
namespace {

void report_range(const Warp& w, const Op& op, TensorAction action, uint32_t column,
                  uint32_t columns) {
  const TensorRange range{w.cta->rank, 0xff, static_cast<uint16_t>(column),
                          static_cast<uint16_t>(columns)};
  TensorEvent e;
  e.writes = {&range, 1};
  report(w, e, op, action);
}

// --- allocation

uint32_t read_columns(Warp& w, const Op& op, Ref ref) {
  const uint32_t columns = uniform<uint32_t>(w, op, ref, "the number of columns");
  if (columns < TensorMemory::kUnit || columns > TensorMemory::kColumns ||
      !std::has_single_bit(columns)) {
    invalid(w, op, "tensor memory is allocated by 32, 64, 128, 256 or 512 columns, not ",
            number(columns));
  }
  return columns;
}

struct AllocateForm {
  uint8_t blocks = 1;
  Space space = Space::kGeneric;
};

// Operands: [where the address goes], columns.
template <bool kObserved>
Step allocate(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  TensorMemory& t = w.cta->async.tensor;
  const auto form = op.aux.as<AllocateForm>();
  require_pairs(w, op, form.blocks);
  const uint32_t columns = read_columns(w, op, op.r[2]);
  if (t.relinquished) {
    invalid(w, op,
            "the block has given the permit to allocate back with "
            "tcgen05.relinquish_alloc_permit");
  }
  const auto column = t.find_free(columns);
  if (!column) return Step::kRetry;
  const auto after = std::find_if(t.allocations.begin(), t.allocations.end(),
                                  [&](const auto& a) { return a.column > *column; });
  t.allocations.insert(after, {*column, columns, op.instruction});
  t.cells.resize(size_t{TensorMemory::kLanes} * TensorMemory::kColumns);
  std::fill_n(t.at(*column, 0), size_t{columns} * TensorMemory::kLanes, ~0u);

  Request request;
  lane_addresses(w, op.r[0], op.r[1], request.wide);
  for_spaces(form.space, 1, request, [&](Space space, uint32_t lanes) {
    if (space != Space::kShared && space != Space::kSharedCluster) {
      invalid(w, op, "the address of the allocation goes to shared memory, not to ",
              std::string(name(space)), " memory");
    }
    resolve(w, op, space, lanes, 4, 4, true, request);
    if constexpr (kObserved) {
      report_range(w, op, TensorAction::kAllocate, *column, columns);
      report_access(w, op, space, AccessKind::kStore, lanes, 4, request);
    }
    std::memcpy(request.host[0], &*column, 4);
  });
  return Step::kNext;
}

Step deallocate(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  TensorMemory& t = w.cta->async.tensor;
  require_pairs(w, op, op.aux.as<uint32_t>());
  const uint32_t address = uniform<uint32_t>(w, op, op.r[0], "the address"),
                 columns = read_columns(w, op, op.r[1]);
  const auto* a = t.find(TensorMemory::column(address));
  if (!a || TensorMemory::lane(address) != 0 || a->columns != columns) {
    invalid(w, op, "no ", number(columns), " columns of tensor memory have been allocated at ",
            hex(address, 8),
            a ? "; there are " + number(a->columns) + " at this column" : std::string());
  }
  report_range(w, op, TensorAction::kFree, a->column, columns);
  t.allocations.erase(t.allocations.begin() + (a - t.allocations.data()));
  return Step::kNext;
}

Step relinquish(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  require_pairs(w, op, op.aux.as<uint32_t>());
  w.cta->async.tensor.relinquished = true;
  return Step::kNext;
}

// --- loads and stores

enum class Shape : uint8_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };

struct Form {
  Shape shape = Shape::k32x32b;
  uint8_t registers = 1;
  bool stores = false, packs = false;
};

struct Place {
  uint32_t lane, column;
};

// Where a thread's register stands: lane from that of the address, and column before packing.
Place place_of(Shape shape, uint32_t thread, uint32_t reg) {
  switch (shape) {
    case Shape::k16x64b:
      return {thread / 4 + thread % 2 * 8, reg * 2 + thread / 2 % 2};
    case Shape::k16x128b:
      return {thread / 4 + reg % 2 * 8, reg / 2 * 4 + thread % 4};
    case Shape::k16x256b:
      return {thread / 4 + reg / 2 % 2 * 8, reg / 4 * 8 + thread % 4 * 2 + reg % 2};
    case Shape::k16x32bx2:
      return {thread % 16, reg};
    case Shape::k32x32b:
      break;
  }
  return {thread, reg};
}

// What one request of a warp reaches: one range of columns, or two of the same length.
struct Reach {
  uint32_t lane = 0, column = 0, columns = 0;
  uint32_t split = 0;  // from the first range to the second
  TensorNaming naming = TensorNaming::kPlain;
};

Reach reach_of(Warp& w, const Op& op, const Form& form, Ref ref, uint32_t offset, uint32_t split) {
  const uint32_t* const given = w.at<uint32_t>(ref);
  const uint32_t address = given[0] + offset, own = w.index % 4u * 32;
  Reach r;
  r.lane = TensorMemory::lane(address) % TensorMemory::kLanes;
  if (TensorMemory::lane(address) >= TensorMemory::kLanes) r.naming = TensorNaming::kAbove;
  // Cards know a warp's lanes without the address, and take it from the first thread.
  if (own != 0 && r.lane < 32) {
    r.naming = TensorNaming::kFirstWarp;
    r.lane += own;
  }
  if (!std::all_of(given, given + 32, [&](uint32_t each) { return each == given[0]; }))
    r.naming = TensorNaming::kDiffers;
  r.column = TensorMemory::column(address);
  const bool narrow = form.shape == Shape::k32x32b || form.shape == Shape::k16x32bx2;
  r.columns = form.registers * (narrow ? 1u : 2u) * (form.packs ? 2u : 1u);
  r.split = split;
  if (r.lane != own && (form.shape == Shape::k32x32b || r.lane != own + kGroup)) {
    invalid(w, op, "warp ", number(w.index), " reaches lanes ", number(own), " to ",
            number(own + 31), " of tensor memory, and may begin at lane ", number(own),
            form.shape == Shape::k32x32b ? "" : " or " + number(own + kGroup),
            "; the address names lane ", number(TensorMemory::lane(address)));
  }
  require_columns(w, op, *w.cta, r.column, r.columns);
  if (form.shape == Shape::k16x32bx2) require_columns(w, op, *w.cta, r.column + r.split, r.columns);
  return r;
}

void report_reach(const Warp& w, const Op& op, const Form& form, const Reach& r,
                  uint32_t* unwritten) {
  const uint32_t first = r.lane / kGroup;
  const auto groups = static_cast<uint8_t>((form.shape == Shape::k32x32b ? 3u : 1u) << first);
  TensorRange ranges[2];
  for (uint32_t i = 0; i < 2; ++i) {
    ranges[i] = {w.cta->rank, groups, static_cast<uint16_t>(r.column + i * r.split),
                 static_cast<uint16_t>(r.columns)};
  }
  const size_t count = form.shape == Shape::k16x32bx2 ? 2 : 1;
  TensorEvent e;
  e.naming = r.naming;
  e.unwritten = unwritten;
  (form.stores ? e.writes : e.reads) = {ranges, count};
  report(w, e, op, form.stores ? TensorAction::kStore : TensorAction::kLoad);
}

void move_register(TensorMemory& t, const Form& form, const Reach& r, uint32_t reg,
                   uint32_t* values) {
  if (form.shape == Shape::k32x32b && !form.packs) {
    uint32_t* const cells = t.at(r.column + reg, r.lane);
    std::memcpy(form.stores ? cells : values, form.stores ? values : cells, 128);
    return;
  }
  for (uint32_t thread = 0; thread < 32; ++thread) {
    const Place p = place_of(form.shape, thread, reg);
    const uint32_t base = r.column + (form.shape == Shape::k16x32bx2 ? thread / 16 * r.split : 0);
    uint32_t& value = values[thread];
    if (form.packs) {  // two columns hold 16 bits each
      uint32_t* const low = t.at(base + 2 * p.column, r.lane + p.lane);
      uint32_t* const high = low + TensorMemory::kLanes;
      if (form.stores) {
        *low = value & 0xffff;
        *high = value >> 16;
      } else {
        value = (*low & 0xffff) | *high << 16;
      }
    } else {
      uint32_t& cell = *t.at(base + p.column, r.lane + p.lane);
      (form.stores ? cell : value) = form.stores ? value : cell;
    }
  }
}

// Operands: registers, [address], and between the halves of 16x32bx2 so many columns.
template <bool kObserved>
Step load(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const auto form = op.aux.as<Form>();
  const uint32_t* const a = op.list + form.registers;
  const Reach r = reach_of(w, op, form, a[0], a[1], form.shape == Shape::k16x32bx2 ? a[2] : 0);
  std::array<uint32_t, 128> unwritten{};
  const bool by_lane = form.shape == Shape::k32x32b && !form.packs;
  if constexpr (kObserved) report_reach(w, op, form, r, by_lane ? unwritten.data() : nullptr);
  w.checks |= kCheckBusy;
  for (uint32_t i = 0; i < form.registers; ++i) {
    move_register(w.cta->async.tensor, form, r, i, w.at<uint32_t>(op.list[i]));
    w.busy[op.list[i] / kRegisterLine] = kUseLoaded;
    if (unwritten[i] != 0) set_poison(w, op.list[i], 0, {0, 0, unwritten[i], op.instruction});
  }
  return Step::kNext;
}

template <bool kObserved>
Step store(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const auto form = op.aux.as<Form>();
  const bool halves = form.shape == Shape::k16x32bx2;
  const Reach r = reach_of(w, op, form, op.list[0], op.list[1], halves ? op.list[2] : 0);
  if constexpr (kObserved) report_reach(w, op, form, r, nullptr);
  for (uint32_t i = 0; i < form.registers; ++i) {
    move_register(w.cta->async.tensor, form, r, i, w.at<uint32_t>(op.list[i + (halves ? 3 : 2)]));
  }
  return Step::kNext;
}

Step wait(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  const auto action = op.aux.as<TensorAction>();
  report(w, {}, op, action);
  if (action == TensorAction::kWaitLoad && (w.checks & kCheckBusy)) finish_loads(w);
  return Step::kNext;
}

Step fence(Warp& w, const Op& op) {
  report(w, {}, op, op.aux.as<TensorAction>());
  return Step::kNext;
}

// --- binders

Bound move(Modifiers& m, bool stores) {
  Form f;
  f.stores = stores;
  f.shape = static_cast<Shape>(m.choice({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"}));
  f.packs = m.choice({"pack::16b", "unpack::16b"}) >= 0;
  m.choice({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  for (const isa::OperandSpec& o : m.spelling().operands) {
    if (o.kind == isa::OperandKind::kVector) f.registers = static_cast<uint8_t>(o.count);
  }
  if (stores) return {store<false>, store<true>, f};
  return {load<false>, load<true>, f};
}

}  // namespace

namespace ops {

Bound tcgen05_alloc(Modifiers& m) {
  AllocateForm f;
  f.blocks = blocks_of(m);
  if (m.flag("shared::cta")) f.space = Space::kShared;
  return {allocate<false>, allocate<true>, f};
}
Bound tcgen05_dealloc(Modifiers& m) {
  return code(deallocate, uint32_t{blocks_of(m)});
}
Bound tcgen05_relinquish(Modifiers& m) {
  return code(relinquish, uint32_t{blocks_of(m)});
}
Bound tcgen05_fence(Modifiers& m) {
  return code(fence, m.choice({"fence::before_thread_sync", "fence::after_thread_sync"}) == 0
                         ? TensorAction::kFenceBefore
                         : TensorAction::kFenceAfter);
}
Bound tcgen05_wait(Modifiers& m) {
  return code(wait, m.choice({"wait::ld", "wait::st"}) == 0 ? TensorAction::kWaitLoad
                                                            : TensorAction::kWaitStore);
}
Bound tcgen05_ld(Modifiers& m) {
  return move(m, false);
}
Bound tcgen05_st(Modifiers& m) {
  return move(m, true);
}

}  // namespace ops
}  // namespace ptxvm
