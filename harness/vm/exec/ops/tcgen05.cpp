// SPDX-License-Identifier: MIT
// Tensor memory and the tensor cores that work on it (PTX ISA 9.7.16). A warp loads and stores at
// once, and its registers may be used after the wait; products and copies run, in the order of
// their issue, when a commit asks for them.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "exec/access.h"
#include "exec/async.h"
#include "exec/converge.h"
#include "exec/ops/lanes.h"
#include "exec/ops/matrix_operand.h"
#include "exec/ops/tensor_instruction.h"
#include "exec/poison.h"
#include "num/half.h"
#include "num/single.h"

namespace ptxvm {
namespace {

constexpr uint32_t kGroup = 16;         // lanes of a TensorRange's groups
constexpr uint32_t kOperandBytes = 32;  // of k in a row of an operand
constexpr uint32_t kMostDepth = 64;     // k of a product

void report(const Warp& w, TensorEvent e, const Op& op, TensorAction action) {
  if (!w.cta->launch->observed) return;
  e.warp = id_of(w);
  e.instruction = op.instruction;
  e.action = action;
  notify(w, [&](Probe& p) { p.tensor(e); });
}

void report_range(const Warp& w, const Op& op, TensorAction action, uint32_t column,
                  uint32_t columns) {
  const TensorRange range{w.cta->rank, 0xff, static_cast<uint16_t>(column),
                          static_cast<uint16_t>(columns)};
  TensorEvent e;
  e.writes = {&range, 1};
  report(w, e, op, action);
}

// The same in all lanes.
uint32_t uniform(Warp& w, const Op& op, Ref ref, const char* what) {
  const uint32_t* v = w.at<uint32_t>(ref);
  for (int lane = 1; lane < 32; ++lane) {
    if (v[lane] != v[0]) {
      raise(w, op, FaultKind::kInvalid, lane, std::string(what) + " differs between lanes");
    }
  }
  return v[0];
}

void require_pairs(const Warp& w, const Op& op, uint32_t blocks) {
  const size_t all = w.cta->cluster->blocks.size();
  if (all % blocks != 0) {
    invalid(w, op, ".cta_group::2 needs clusters of an even number of blocks, not of ",
            number(all));
  }
}

void require_columns(const Warp& w, const Op& op, const Cta& cta, uint32_t column,
                     uint32_t columns) {
  const TensorMemory& t = cta.async.tensor;
  if (t.holds(column, columns)) return;
  std::string have;
  for (const auto& a : t.allocations) {
    have +=
        (have.empty() ? "" : ", ") + number(a.column) + " to " + number(a.column + a.columns - 1);
  }
  raise(w, op, FaultKind::kOutOfBounds, -1,
        "columns " + number(column) + " to " + number(uint64_t{column} + columns - 1) +
            " of tensor memory" + (cta.rank == w.cta->rank ? "" : " of block " + number(cta.rank)) +
            " do not lie in what is allocated: " + (have.empty() ? "nothing" : have));
}

// --- allocation

uint32_t read_columns(Warp& w, const Op& op, Ref ref) {
  const uint32_t columns = uniform(w, op, ref, "the number of columns");
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
  const uint32_t address = uniform(w, op, op.r[0], "the address"),
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

// --- products and copies

// One thread issues them.
int only_lane(const Warp& w, const Op& op) {
  if (!std::has_single_bit(w.mask)) {
    raise(w, op, FaultKind::kDivergence, -1,
          "one thread issues this; here the lanes " + hex(w.mask, 8) + " do, each once");
  }
  return __builtin_ctz(w.mask);
}

// Bits that the PTX ISA fixes (9.7.16.4.1).
void check_descriptor(const Warp& w, const Op& op, uint64_t bits) {
  constexpr int kMode = 52, kSwizzle = 61;
  if ((bits >> 46 & 7) != 1) {
    invalid(w, op, "bits 46 to 48 of the matrix descriptor ", hex(bits, 16), " hold ",
            number(bits >> 46 & 7), "; they must hold 1");
  }
  if ((bits >> kMode & 0x1ff) != 0 || (bits >> kSwizzle & 1) != 0) {
    invalid(w, op, "the matrix descriptor ", hex(bits, 16),
            " asks for absolute leading offsets or for atoms of 32 bytes, which are not modelled");
  }
}

// Which lanes and columns of the accumulators hold rows of a block: rows from `row` on stand side
// by side from `lane` on (PTX ISA 9.7.16.10.5, layouts A, B, D and F).
struct Part {
  uint32_t row, lane, rows;
};

std::vector<Part> parts_of(const Instruction& i, uint32_t blocks, uint32_t column) {
  if (i.m / blocks == 128) return {{0, 0, 128}};
  if (blocks == 2) return {{0, column < i.n / 2 ? 0u : 64u, 64}};
  return {{0, 0, 16}, {16, 32, 16}, {32, 64, 16}, {48, 96, 16}};
}

uint32_t column_of(const Instruction& i, uint32_t blocks, uint32_t column) {
  return blocks == 2 && i.m == 128 ? column % (i.n / 2) : column;
}

struct Blocks {
  Cta* cta[2];
  uint32_t count;
};

// The block itself, or both of its pair in order.
Blocks blocks_of(Cta& cta, uint32_t count) {
  if (count == 1) return {{&cta, nullptr}, 1};
  const auto all = cta.cluster->blocks;
  return {{&all[cta.rank / 2 * 2], &all[cta.rank / 2 * 2 + 1]}, 2};
}

// A or B of one block in shared memory. Footprints are those of 16-bit elements, 32 bytes of k:
// MN-major, a row of k has half as many bytes for each element of 8 bits, and there are twice as
// many rows; the second half begins two groups of eight rows later.
struct Matrix {
  uint64_t descriptor;
  Major major;
  uint32_t rows;
  Format format;

  uint32_t pieces() const { return major == Major::kMn && per_chunk(format) == 16 ? 2 : 1; }
  uint32_t extent() const { return rows / pieces(); }  // in 16-bit elements
  uint64_t piece(uint32_t index) const {
    const MatrixDescriptor d(descriptor);
    const uint32_t eight = d.swizzle == Swizzle::kNone ? d.leading : d.stride;
    return descriptor + uint64_t{index} * 2 * eight / 16;
  }
};

Matrix a_of(const TensorWork& t, const Product& p, const Instruction& i) {
  return {t.descriptor[0], i.a_major, i.m / p.blocks, i.a};
}
Matrix b_of(const TensorWork& t, const Product& p, const Instruction& i) {
  return {t.descriptor[1], i.b_major, i.n / p.blocks, i.b};
}

// Lane r % 32 of column r / 32 holds the scale factors of row r of A or B, and so do lanes 32, 64
// and 96 further on. The upper two bits of an address do not count.
constexpr uint32_t kFactorAddress = 0x3fffffff;
uint32_t factor_columns(uint32_t rows) {
  return (rows + 31) / 32;
}

// What one product reads and writes, in all blocks.
struct Operands {
  std::vector<TensorRange> reads, writes;
  std::vector<BlockRange> shared;

  void add_shared(Cta& cta, const Matrix& matrix) {
    for (uint32_t i = 0; i < matrix.pieces(); ++i) {
      const uint64_t descriptor = matrix.piece(i);
      const MatrixFootprint& f = find_footprint(cta, descriptor, matrix.major, matrix.extent());
      const uint32_t used = bits_of(matrix.format) * per_chunk(matrix.format) / 8;
      if (used == 16) {
        for (const SharedRange& r : f.ranges)
          shared.push_back({cta.rank, {origin(descriptor) + r.address, r.bytes}});
        continue;
      }
      for (const uint32_t chunk : f.chunks)  // a gap behind each
        shared.push_back({cta.rank, {origin(descriptor) + chunk, used}});
    }
  }
};

void add_product(const TensorWork& t, const Product& p, Cta& cta, Operands& out) {
  const Instruction i(t.shape, p.kind);
  const uint32_t rows = i.m / p.blocks, columns = i.n / p.blocks;
  const uint32_t lane = TensorMemory::lane(t.destination) % TensorMemory::kLanes;
  const TensorRange d{
      cta.rank, static_cast<uint8_t>(rows == 64 && p.blocks == 1 ? 0x55u << lane / kGroup : 0xffu),
      static_cast<uint16_t>(TensorMemory::column(t.destination)),
      static_cast<uint16_t>(p.blocks == 2 && rows == 64 ? columns : i.n)};
  out.writes.push_back(d);
  if (t.accumulate) out.reads.push_back(d);
  if (p.a_in_tensor) {
    const uint32_t first = TensorMemory::lane(t.a_address) % TensorMemory::kLanes;
    out.reads.push_back(
        {cta.rank,
         static_cast<uint8_t>(rows == 64 && p.blocks == 1 ? 0x55u << first / kGroup : 0xffu),
         static_cast<uint16_t>(TensorMemory::column(t.a_address)), kOperandBytes / 4});
  } else {
    out.add_shared(cta, a_of(t, p, i));
  }
  out.add_shared(cta, b_of(t, p, i));
  if (p.scales == 0) return;
  for (uint32_t operand = 0; operand < 2; ++operand) {
    out.reads.push_back({cta.rank, 0xff,
                         static_cast<uint16_t>(TensorMemory::column(t.factors[operand])),
                         static_cast<uint16_t>(factor_columns(operand == 0 ? rows : i.n))});
  }
}

void check_matrix(const Warp& w, const Op& op, Cta& cta, const Matrix& matrix) {
  if (matrix.major == Major::kMn && per_chunk(matrix.format) == 4) {
    invalid(w, op, "operands of tf32 are modelled K-major, not MN-major");
  }
  if (matrix.rows % (8 * matrix.pieces()) != 0) {
    invalid(w, op, "MN-major operands of 8 bits are modelled with a multiple of 16 columns");
  }
  for (uint32_t i = 0; i < matrix.pieces(); ++i)
    check_operand(w, op, cta, matrix.piece(i), matrix.major, matrix.extent());
}

void check_product(Warp& w, const Op& op, const TensorWork& t, const Product& p) {
  check_instruction(w, op, t.shape, p);
  const Instruction i(t.shape, p.kind);
  const uint32_t rows = i.m / p.blocks, columns = i.n / p.blocks;
  const uint32_t lane = TensorMemory::lane(t.destination);
  const bool scattered = rows == 64 && p.blocks == 1;
  if (lane != 0 && !(scattered && lane == kGroup)) {
    invalid(w, op, "the accumulators of M = ", number(i.m), " begin at lane 0",
            scattered ? " or 16" : "", " of tensor memory, not at ", number(lane));
  }
  if (p.a_in_tensor && i.a_major != Major::kK)
    invalid(w, op, "A in tensor memory is modelled K-major, not MN-major");
  if (p.a_in_tensor && TensorMemory::lane(t.a_address) != lane) {
    invalid(w, op,
            "A in tensor memory is modelled where it begins at the lane of the accumulators, ",
            number(lane), ", not at ", number(TensorMemory::lane(t.a_address)));
  }
  if (p.a_in_tensor && bits_of(i.a) * per_chunk(i.a) != 128) {
    invalid(w, op, "A in tensor memory is not modelled with elements of 4 or 6 bits and gaps");
  }
  for (uint32_t operand = 0; p.scales != 0 && operand < 2; ++operand) {
    if (const uint32_t at = TensorMemory::lane(t.factors[operand]); at != 0)
      invalid(w, op, "scale factors begin at lane 0 of tensor memory, not at ", number(at));
  }
  if (!p.a_in_tensor) check_descriptor(w, op, t.descriptor[0]);
  check_descriptor(w, op, t.descriptor[1]);
  const Blocks blocks = blocks_of(*w.cta, p.blocks);
  for (uint32_t b = 0; b < blocks.count; ++b) {
    Cta& cta = *blocks.cta[b];
    require_columns(w, op, cta, TensorMemory::column(t.destination),
                    p.blocks == 2 && rows == 64 ? columns : i.n);
    if (p.a_in_tensor) {
      require_columns(w, op, cta, TensorMemory::column(t.a_address), kOperandBytes / 4);
    } else {
      check_matrix(w, op, cta, a_of(t, p, i));
    }
    check_matrix(w, op, cta, b_of(t, p, i));
    for (uint32_t operand = 0; p.scales != 0 && operand < 2; ++operand) {
      require_columns(w, op, cta, TensorMemory::column(t.factors[operand]),
                      factor_columns(operand == 0 ? rows : i.n));
    }
  }
}

void issue(Warp& w, const Op& op, TensorWork work, const Operands& operands, TensorAction action) {
  TensorEvent e;
  e.lane = static_cast<uint32_t>(__builtin_ctz(w.mask));
  e.reads = operands.reads;
  e.writes = operands.writes;
  e.shared = operands.shared;
  report(w, e, op, action);
  work.op = &op;
  work.warp = w.index;
  w.cta->async.tensor_work.push_back(work);
}

// Operands: [accumulators], A, B, the instruction descriptor, lanes that are not written or [scales
// of A], [scales of B], enable-input-d, scale-input-d where the kind has one.
Step multiply(Warp& w, const Op& op) {
  const int lane = only_lane(w, op);
  const auto p = op.aux.as<Product>();
  require_pairs(w, op, p.blocks);
  const auto word = [&](uint32_t at) { return w.at<uint32_t>(op.list[at])[lane]; };
  TensorWork t;
  t.destination = word(0) + op.list[1];
  uint32_t at = 2;
  if (p.a_in_tensor) {
    t.a_address = word(2) + op.list[3];
    at = 4;
  } else {
    t.descriptor[0] = w.at<uint64_t>(op.list[at++])[lane];
  }
  t.descriptor[1] = w.at<uint64_t>(op.list[at++])[lane];
  t.shape = word(at++);
  for (uint32_t i = 0; i < p.disabled; ++i) t.disabled[i] = word(at++);
  for (uint32_t i = 0; p.scales != 0 && i < 2; ++i, at += 2)
    t.factors[i] = (word(at) + op.list[at + 1]) & kFactorAddress;
  t.accumulate = w.predicate(op.list[at++]) >> lane & 1;
  if (p.kind <= Kind::kTf32 && op.list[at] != kNoRef) t.scale = op.list[at];
  check_product(w, op, t, p);
  Operands operands;
  if (w.cta->launch->observed) {
    const Blocks blocks = blocks_of(*w.cta, p.blocks);
    for (uint32_t b = 0; b < blocks.count; ++b) add_product(t, p, *blocks.cta[b], operands);
  }
  issue(w, op, t, operands, TensorAction::kMultiply);
  return Step::kNext;
}

// Element (row, k) of an operand as f32, at out[row * row_stride + k * k_stride].
void load_shared(Cta& cta, const Matrix& matrix, bool negative, float* out, uint32_t row_stride,
                 uint32_t k_stride) {
  const uint32_t count = per_chunk(matrix.format), bits = bits_of(matrix.format);
  for (uint32_t piece = 0; piece < matrix.pieces(); ++piece) {
    const uint64_t descriptor = matrix.piece(piece);
    const MatrixFootprint& f = find_footprint(cta, descriptor, matrix.major, matrix.extent());
    const std::byte* const from = cta.shared - cta.shared_base + origin(descriptor);
    const bool by_k = matrix.major == Major::kK;
    for (uint32_t c = 0; c < f.chunks.size(); ++c) {
      uint32_t chunk[5] = {};
      std::memcpy(chunk, from + f.chunks[c], 16);
      for (uint32_t e = 0; e < count; ++e) {
        const uint32_t row = by_k ? c / 2 : c / 16 * count + e;
        const uint32_t k = by_k ? c % 2 * count + e : piece * 16 + c % 16;
        const uint32_t at = e * bits;  // an element of 6 bits may be in two words
        const uint64_t words = chunk[at / 32] | uint64_t{chunk[at / 32 + 1]} << 32;
        const float x = decode(static_cast<uint32_t>(words >> at % 32), matrix.format);
        out[row * row_stride + k * k_stride] = negative ? -x : x;
      }
    }
  }
}

// A of one block, whose rows stand as those of the accumulators do. For 64 rows in each block of a
// pair that is twice, for the columns of either half.
void load_tensor(Cta& cta, const TensorWork& t, const Instruction& i, uint32_t blocks, float* out) {
  const std::vector<Part> parts = parts_of(i, blocks, 0);
  const uint32_t address = t.a_address, twice = blocks == 2 && i.m == 128 ? 64 : 0;
  const uint32_t count = per_chunk(i.a) / 4, bits = 32 / count;  // of a cell
  for (uint32_t k = 0; k < i.depth(); ++k) {
    const uint32_t* cells =
        cta.async.tensor.at(TensorMemory::column(address) + k / count, TensorMemory::lane(address));
    for (const Part& part : parts) {
      for (uint32_t r = 0; r < part.rows; ++r) {
        if (cells[part.lane + r] != cells[part.lane + r + twice]) {
          invalid(cta.warps[t.warp], *t.op, "row ", number(r), " of A is ", hex(cells[r], 8),
                  " in lane ", number(r), " of column ",
                  number(TensorMemory::column(address) + k / count), " and ",
                  hex(cells[r + twice], 8), " in lane ", number(r + twice),
                  "; with 64 rows a block both halves of the lanes must hold the same");
        }
        const float x = decode(cells[part.lane + r] >> (k % count * bits), i.a);
        out[k * TensorMemory::kLanes + part.row + r] = i.negate_a ? -x : x;
      }
    }
  }
}

// The scale factors of some rows, `scales` of each, side by side.
std::vector<double> load_factors(Cta& cta, const TensorWork& t, uint32_t address, uint32_t first,
                                 uint32_t rows, uint32_t scales, bool exponents) {
  std::vector<double> out;
  for (uint32_t row = 0; row < rows; ++row) {
    const uint32_t column = TensorMemory::column(address) + row / 32;
    const uint32_t* const cells = cta.async.tensor.at(column, 0);
    const uint32_t mask = (scales == 4 ? ~0u : (1u << 8 * scales) - 1) << 8 * first;
    for (uint32_t copy = 32; copy < TensorMemory::kLanes; copy += 32) {
      if (((cells[row % 32] ^ cells[copy + row % 32]) & mask) == 0) continue;
      invalid(cta.warps[t.warp], *t.op, "the scale factors of row ", number(row), " are ",
              hex(cells[row % 32], 8), " in lane ", number(row % 32), " of column ", number(column),
              " and ", hex(cells[copy + row % 32], 8), " in lane ", number(copy + row % 32),
              "; all four warps' lanes must hold the same");
    }
    for (uint32_t k = 0; k < scales; ++k)
      out.push_back(decode_scale(cells[row % 32] >> 8 * (first + k), exponents));
  }
  return out;
}

float from_cell(uint32_t bits, bool half) {
  return half ? num::half_to_float(static_cast<uint16_t>(bits)) : std::bit_cast<float>(bits);
}
uint32_t to_cell(float value, bool half) {
  return half ? num::float_to_half(value) : std::bit_cast<uint32_t>(num::canonical(value));
}

// One block's part of a product.
struct RowsWork {
  Cta& cta;
  const TensorWork& t;
  const Product& p;
  Instruction i;
  uint32_t rows;
  std::vector<double> a_factors, b_factors;  // where there are scales

  RowsWork(Cta& block, const TensorWork& work, const Product& product)
      : cta(block), t(work), p(product), i(work.shape, product.kind), rows(i.m / product.blocks) {
    if (p.scales == 0) return;
    a_factors = load_factors(cta, t, t.factors[0], i.a_scale, rows, p.scales, i.scale_exponents);
    b_factors = load_factors(cta, t, t.factors[1], i.b_scale, i.n, p.scales, i.scale_exponents);
  }

  // sums += A times column n of B.
  void add(float* sums, const float* a, const float* b, uint32_t n) const {
    const auto& kernels = *cta.launch->kernels;
    const auto count = static_cast<int>(rows);
    b += size_t{n} * i.depth();
    if (p.scales == 0) {
      kernels.add_products(sums, a, b, count, static_cast<int>(i.depth()));
      return;
    }
    const uint32_t each = i.depth() / p.scales;
    for (uint32_t k = 0; k < p.scales; ++k) {
      alignas(64) float part[TensorMemory::kLanes] = {};
      kernels.add_products(part, a + size_t{k} * each * TensorMemory::kLanes, b + k * each, count,
                           static_cast<int>(each));
      const double factor = b_factors[n * p.scales + k];
      for (uint32_t r = 0; r < rows; ++r)
        sums[r] += static_cast<float>(part[r] * a_factors[r * p.scales + k] * factor);
    }
  }

  // What an accumulator holds after a sum of products has been added to `before`, which is 0 where
  // the product does not accumulate.
  uint32_t joined(uint32_t before, float sum) const {
    if (!i.integers) return to_cell(sum, i.half_sums);
    const int64_t all =
        static_cast<int64_t>(static_cast<int32_t>(before)) + static_cast<int64_t>(sum);
    return static_cast<uint32_t>(i.saturate ? std::clamp<int64_t>(all, INT32_MIN, INT32_MAX) : all);
  }
};

// The rows of one block, for all columns of the product. Sums of integers of 8 bits are exact.
void execute_rows(Cta& cta, const TensorWork& t, const Product& p, const float* b,
                  const uint32_t* disabled) {
  const RowsWork work(cta, t, p);
  const Instruction& i = work.i;
  alignas(64) static thread_local float a[kMostDepth * TensorMemory::kLanes];
  alignas(64) float sums[TensorMemory::kLanes];
  if (p.a_in_tensor) {
    load_tensor(cta, t, i, p.blocks, a);
  } else {
    load_shared(cta, a_of(t, p, i), i.negate_a, a, 1, TensorMemory::kLanes);
  }
  const float scale = std::bit_cast<float>((127 - t.scale) << 23);
  const uint32_t first = TensorMemory::lane(t.destination);
  for (uint32_t n = 0; n < i.n; ++n) {
    uint32_t* const cells =
        cta.async.tensor.at(TensorMemory::column(t.destination) + column_of(i, p.blocks, n), first);
    const std::vector<Part> parts = parts_of(i, p.blocks, n);
    std::fill_n(sums, work.rows, 0.0f);
    if (t.accumulate && !i.integers) {
      for (const Part& part : parts) {
        for (uint32_t r = 0; r < part.rows; ++r)
          sums[part.row + r] = from_cell(cells[part.lane + r], i.half_sums) * scale;
      }
    }
    work.add(sums, a, b, n);
    for (const Part& part : parts) {
      for (uint32_t r = 0; r < part.rows; ++r) {
        const uint32_t lane = first + part.lane + r;
        if (disabled[lane / 32] >> lane % 32 & 1) continue;
        uint32_t& cell = cells[part.lane + r];
        cell = work.joined(t.accumulate ? cell : 0, sums[part.row + r]);
      }
    }
  }
}

// Each block of a pair holds half of the rows of A and of D, and half of the columns of B.
void execute_product(Cta& cta, const TensorWork& t) {
  const auto p = t.op->aux.as<Product>();
  const Instruction i(t.shape, p.kind);
  const Blocks blocks = blocks_of(cta, p.blocks);
  alignas(64) static thread_local float b[256 * kMostDepth];
  for (uint32_t k = 0; k < blocks.count; ++k) {
    load_shared(*blocks.cta[k], b_of(t, p, i), i.negate_b, b + size_t{k} * i.n / 2 * i.depth(),
                i.depth(), 1);
  }
  for (uint32_t k = 0; k < blocks.count; ++k)
    execute_rows(*blocks.cta[k], t, p, b, t.disabled.data() + size_t{k} * 4);
}

// Rows of 16 or 32 bytes, which go to lanes of one warp or of several.
struct Copy {
  uint8_t blocks = 1, rows = 128, chunks = 1;
  uint8_t far = 0;  // lanes between a row and its second place; 0 where it has one
};

// Of 64 rows the halves go to the warps 0 and 2, 1 and 3 (or 0 and 1, 2 and 3); 32 rows to all.
std::array<uint32_t, 4> lanes_of(const Copy& c, uint32_t row, uint32_t& count) {
  count = 128u / c.rows;
  if (c.rows == 32) return {row, row + 32, row + 64, row + 96};
  if (c.rows == 64) {
    const uint32_t first = c.far == 64 ? row : row / 32 * 64 + row % 32;
    return {first, first + c.far};
  }
  return {row};
}

// Operands: [tensor memory], the descriptor of the source.
Step copy(Warp& w, const Op& op) {
  const int lane = only_lane(w, op);
  const auto c = op.aux.as<Copy>();
  require_pairs(w, op, c.blocks);
  TensorWork t;
  t.destination = w.at<uint32_t>(op.r[0])[lane] + op.r[1];
  t.descriptor[0] = w.at<uint64_t>(op.r[2])[lane];
  check_descriptor(w, op, t.descriptor[0]);
  if (TensorMemory::lane(t.destination) != 0) {
    invalid(w, op, "a copy to tensor memory begins at lane 0, not at ",
            number(TensorMemory::lane(t.destination)));
  }
  const uint32_t columns = 4u * c.chunks;
  Operands operands;
  const Blocks blocks = blocks_of(*w.cta, c.blocks);
  for (uint32_t b = 0; b < blocks.count; ++b) {
    Cta& cta = *blocks.cta[b];
    require_columns(w, op, cta, TensorMemory::column(t.destination), columns);
    operands.writes.push_back({cta.rank, 0xff,
                               static_cast<uint16_t>(TensorMemory::column(t.destination)),
                               static_cast<uint16_t>(columns)});
    const MatrixFootprint& f = find_footprint(cta, t.descriptor[0], Major::kK, c.rows);
    for (uint32_t at = 0; at < f.chunks.size(); at += 3 - c.chunks) {
      check_covered(w, op, cta, t.descriptor[0], f.chunks[at], f.chunks[at] + 16);
      operands.shared.push_back({cta.rank, {origin(t.descriptor[0]) + f.chunks[at], 16}});
    }
  }
  issue(w, op, t, operands, TensorAction::kCopy);
  return Step::kNext;
}

void execute_copy(Cta& home, const TensorWork& t) {
  const auto c = t.op->aux.as<Copy>();
  const Blocks blocks = blocks_of(home, c.blocks);
  for (uint32_t b = 0; b < blocks.count; ++b) {
    Cta& cta = *blocks.cta[b];
    const MatrixFootprint& f = find_footprint(cta, t.descriptor[0], Major::kK, c.rows);
    const std::byte* const from = cta.shared - cta.shared_base + origin(t.descriptor[0]);
    for (uint32_t row = 0; row < c.rows; ++row) {
      uint32_t count = 0;
      const std::array<uint32_t, 4> lanes = lanes_of(c, row, count);
      for (uint32_t word = 0; word < 4u * c.chunks; ++word) {
        uint32_t value;
        std::memcpy(&value, from + f.chunks[row * 2 + word / 4] + word % 4 * 4, 4);
        for (uint32_t i = 0; i < count; ++i)
          *cta.async.tensor.at(TensorMemory::column(t.destination) + word, lanes[i]) = value;
      }
    }
  }
}

// --- commit

// Whether nothing can wait any more for what arrives there. The rules do not allow it, and cards
// go on.
bool is_lost(const Warp& w, const Op& op, uint32_t rank) {
  const auto blocks = w.cta->cluster->blocks;
  if (rank >= blocks.size() || blocks[rank].live_threads != 0) return false;
  TensorEvent e;
  e.home = rank;
  report(w, e, op, TensorAction::kCommitLost);
  return true;
}

void arrive(Cta& cta, const TensorWork& t) {
  const Warp& w = cta.warps[t.warp];
  for (uint32_t rest = t.homes; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<uint32_t>(__builtin_ctz(rest));
    const uint32_t instruction = t.op->instruction;
    if (rank != cta.rank && is_lost(w, *t.op, rank)) continue;
    Cta& home = rank == cta.rank ? cta : block_of(w, instruction, -1, cluster_address(rank, 0));
    arrive_for_commit(w, instruction, home, t.mbarrier, t.commit);
  }
}

// What the tensor core of a block does next: all up to a commit, which arrive in their order.
class TensorTurn : public PendingWork {
 public:
  void finish(Cta& cta) override {
    std::deque<TensorWork>& all = cta.async.tensor_work;
    for (bool commits = false; !commits;) {
      const TensorWork& t = all.front();
      const CountClass count = cta.launch->program->spellings[t.op->instruction]->count;
      commits = count == CountClass::kTcgen05Sync;
      (commits                              ? arrive
       : count == CountClass::kTensorMemory ? execute_copy
                                            : execute_product)(cta, t);
      all.pop_front();
    }
  }
};

struct CommitForm {
  uint8_t blocks = 1;
  bool multicast = false, generic = false;
};

// Operands: [mbarrier], the blocks that have one.
Step commit(Warp& w, const Op& op) {
  const int lane = only_lane(w, op);
  const auto form = op.aux.as<CommitForm>();
  require_pairs(w, op, form.blocks);
  Request request;
  lane_addresses(w, op.r[0], op.r[1], request.wide);
  for_spaces(form.generic ? Space::kGeneric : Space::kSharedCluster, w.mask, request,
             [&](Space space, uint32_t lanes) {
               // Cards take one of shared memory as well.
               if (space == Space::kGlobal && request.wide[lane] <= UINT32_MAX) {
                 space = Space::kSharedCluster;
                 const GenericAddressEvent e{id_of(w), op.instruction, true};
                 if (w.cta->launch->observed) notify(w, [&](Probe& p) { p.generic_address(e); });
               }
               if (space != Space::kSharedCluster) {
                 invalid(w, op, "the address of an mbarrier is not in shared memory");
               }
               resolve(w, op, space, lanes, 8, 8, true, request);
             });
  const uint32_t address = request.narrow[lane];
  uint32_t mask = 1u << rank_of(address, w.cta->rank);
  const auto all = w.cta->cluster->blocks;
  if (form.multicast) {
    mask = w.at<uint32_t>(op.r[2])[lane] & 0xffff;
    if (mask == 0 || mask >> all.size() != 0) {
      invalid(w, op, "an arrival in the blocks ", hex(mask, 4), " of a cluster of ",
              number(all.size()));
    }
  }
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<uint32_t>(__builtin_ctz(rest));
    if (rank != w.cta->rank && is_lost(w, op, rank)) {
      mask &= ~(1u << rank);
      continue;
    }
    require_mbarrier(w, op, lane, block_of(w, op.instruction, lane, cluster_address(rank, 0)),
                     address & kInBlock);
  }
  ++w.tensor_commits;
  TensorEvent e;
  e.lane = static_cast<uint32_t>(lane);
  e.commit = w.tensor_commits;
  report(w, e, op, TensorAction::kCommit);
  TensorWork t;
  t.op = &op;
  t.warp = w.index;
  t.commit = w.tensor_commits;
  t.mbarrier = address & kInBlock;
  t.homes = mask;
  w.cta->async.tensor_work.push_back(t);
  w.cta->pending.push_back(std::make_unique<TensorTurn>());
  return Step::kNext;
}

// --- binders

uint8_t blocks_of(Modifiers& m) {
  return m.choice({"cta_group::1", "cta_group::2"}) == 1 ? 2 : 1;
}

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

Bound tcgen05_mma(Modifiers& m) {
  Product p;
  p.blocks = blocks_of(m);
  p.kind = static_cast<Kind>(m.choice({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
                                       "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"}));
  m.flag("block_scale");
  // Scales of 16 or of 32 elements, of which a row of A has 32 or 64.
  const int size =
      m.choice({"scale_vec::1X", "scale_vec::2X", "block32", "scale_vec::4X", "block16"});
  if (p.kind == Kind::kMxf8f6f4) p.scales = 1;
  if (p.kind >= Kind::kMxf4) p.scales = size > 2 ? 4 : 2;
  // How long the tensor core keeps A for the next product makes no difference here.
  m.choice({"collector::a::fill", "collector::a::use", "collector::a::lastuse",
            "collector::a::discard"});
  const auto& operands = m.spelling().operands;
  p.a_in_tensor = operands[1].kind == isa::OperandKind::kMemory;
  if (operands[4].kind == isa::OperandKind::kVector)
    p.disabled = static_cast<uint8_t>(operands[4].count);
  return code(multiply, p);
}

Bound tcgen05_cp(Modifiers& m) {
  Copy c;
  c.blocks = blocks_of(m);
  const int shape = m.choice({"128x256b", "128x128b", "64x128b", "32x128b"});
  if (shape == 0) c.chunks = 2;
  if (shape >= 2) c.rows = shape == 2 ? 64 : 32;
  if (shape == 2) c.far = m.choice({"warpx2::02_13", "warpx2::01_23"}) == 0 ? 64 : 32;
  m.flag("warpx4");
  return code(copy, c);
}

Bound tcgen05_commit(Modifiers& m) {
  CommitForm f;
  f.blocks = blocks_of(m);
  f.generic = !m.flag("shared::cluster");
  f.multicast = m.flag("multicast::cluster");
  return code(commit, f);
}

}  // namespace ops
}  // namespace ptxvm
