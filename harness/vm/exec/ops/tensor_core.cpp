// SPDX-License-Identifier: MIT
// What tensor cores do with tensor memory (PTX ISA 9.7.16): products, copies and shifts run, in the
// order of their issue, when a commit asks for them.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "exec/access.h"
#include "exec/async.h"
#include "exec/ops/lanes.h"
#include "exec/ops/matrix_operand.h"
#include "exec/ops/tensor_work.h"
#include "num/half.h"
#include "num/single.h"

namespace ptxvm {
namespace {

constexpr uint32_t kOperandBytes = 32;   // of k in a row of an operand
constexpr uint32_t kMostDepth = 64;      // k of a product
constexpr uint32_t kMostColumns = 256;   // N of a product
constexpr uint32_t kMostShift = 32;      // of the columns of B
constexpr uint32_t kShiftedColumns = 8;  // of tensor memory

// One thread issues them.
int only_lane(const Warp& w, const Op& op) {
  if (!std::has_single_bit(w.mask)) {
    raise(w, op, FaultKind::kDivergence, -1,
          "one thread issues this; here the lanes " + hex(w.mask, 8) + " do, each once");
  }
  return __builtin_ctz(w.mask);
}

// Bits that the PTX ISA fixes (9.7.16.4.1), and a swizzle that the major has (9.7.16.10.3).
void check_descriptor(const Warp& w, const Op& op, uint64_t bits, Major major) {
  constexpr int kMode = 52, kSwizzle = 61;
  if ((bits >> 46 & 7) != 1) {
    invalid(w, op, "bits 46 to 48 of the matrix descriptor ", hex(bits, 16), " hold ",
            number(bits >> 46 & 7), "; they must hold 1");
  }
  if ((bits >> kMode & 0x1ff) != 0) {
    invalid(w, op, "the matrix descriptor ", hex(bits, 16),
            " asks for absolute leading offsets, which are not modelled");
  }
  const uint64_t swizzle = bits >> kSwizzle;
  if (major == Major::kMn32 ? swizzle != 1 : swizzle % 2 != 0) {
    invalid(w, op, "the matrix descriptor ", hex(bits, 16), " has swizzle ", number(swizzle), "; ",
            major == Major::kMn32 ? "MN-major operands of tf32 have 1 (128 bytes, atoms of 32)"
                                  : "0, 2, 4 and 6 are modelled where tf32 is not MN-major");
  }
}

// How the accumulators of a block stand in lanes and columns (PTX ISA 9.7.16.10.5). Of fewer rows
// than lanes there may be several banks side by side, each with some of the columns of D.
struct DataPath {
  uint32_t rows, banks;
  uint32_t columns;  // of a bank

  DataPath(const Instruction& i, const Product& p) : rows(i.m / p.blocks), banks(1) {
    if (p.stationary || p.blocks == 2) banks = TensorMemory::kLanes / rows;  // layouts B, E and G
    columns = i.n / banks;
  }
  uint32_t bank(uint32_t column) const { return column / columns; }
  // Layout F: 16 rows of each 32 lanes.
  bool scattered() const { return rows * banks != TensorMemory::kLanes; }
  // From that of row 0.
  uint32_t lane(uint32_t row) const { return scattered() ? row + row / 16 * 16 : row; }
  // Of a TensorRange.
  uint8_t groups(uint32_t first) const {
    return static_cast<uint8_t>(scattered() ? 0x55u << first / kGroup : 0xffu);
  }
};

// What .ws multiplies columns of D by (PTX ISA 9.7.16.4.3): columns of B further on, or zeros. Each
// bank has a mask of its own, in which spans of ones and of zeros take turns. As in the examples
// there, the skip span is that of the ones, which the table there calls the other way round.
class ColumnMask {
 public:
  ColumnMask(const TensorWork& t, const DataPath& path) : bits_(t.zero_columns), path_(path) {}

  uint32_t shift() const { return field(56, 6); }
  bool is_zero(uint32_t column) const {
    if (!generated()) return false;
    const uint32_t bank = path_.bank(column), at = column % path_.columns + start(bank);
    const uint32_t place = at % (span(true) + span(false));
    return first(bank) ? place < span(true) : place >= span(false);
  }
  void check(const Warp& w, const Op& op, const Instruction& i) const {
    const std::string name = "the zero-column mask descriptor " + hex(bits_, 16);
    if (bits_ & 0xc000007000000000) invalid(w, op, name, " has reserved bits");
    const uint32_t most = std::min(i.most_shift, i.m == 32 ? 16u : kMostShift);
    if (shift() > most) {
      invalid(w, op, name, " shifts columns by ", number(shift()),
              "; the instruction descriptor and M = ", number(i.m), " allow ", number(most));
    }
    for (uint32_t bank = 0; generated() && bank < path_.banks; ++bank) {
      if (start(bank) < span(first(bank))) continue;
      invalid(w, op, name, " skips ", number(start(bank)), " columns of a first span of ",
              number(span(first(bank))), "; one must be left");
    }
  }

 private:
  uint32_t field(uint32_t at, uint32_t width) const {
    return static_cast<uint32_t>(bits_ >> at) & ((1u << width) - 1);
  }
  bool generated() const { return field(39, 1) != 0; }
  bool first(uint32_t bank) const { return field(32 + bank, 1) != 0; }
  uint32_t start(uint32_t bank) const { return field(8 * bank, 8); }
  uint32_t span(bool ones) const { return field(ones ? 40 : 48, 8) + 1; }

  uint64_t bits_;
  DataPath path_;
};

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

  // Rows are read by so many.
  uint32_t unit() const { return major == Major::kK ? 1 : per_chunk(format); }
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
  Matrix b{t.descriptor[1], i.b_major, i.n / p.blocks, i.b};
  const uint32_t shift = ColumnMask(t, DataPath(i, p)).shift();
  b.rows += (shift + b.unit() - 1) / b.unit() * b.unit();
  return b;
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
  const DataPath path(i, p);
  const TensorRange d{cta.rank, path.groups(TensorMemory::lane(t.destination)),
                      static_cast<uint16_t>(TensorMemory::column(t.destination)),
                      static_cast<uint16_t>(path.columns)};
  out.writes.push_back(d);
  if (t.accumulate) out.reads.push_back(d);
  if (p.a_in_tensor) {
    const TensorRange a{cta.rank, path.groups(TensorMemory::lane(t.a_address)),
                        static_cast<uint16_t>(TensorMemory::column(t.a_address)),
                        kOperandBytes / 4};
    out.reads.push_back(a);
    if (p.shifts) out.writes.push_back(a);
  } else {
    out.add_shared(cta, a_of(t, p, i));
  }
  out.add_shared(cta, b_of(t, p, i));
  if (p.scales == 0) return;
  for (uint32_t operand = 0; operand < 2; ++operand) {
    out.reads.push_back({cta.rank, 0xff,
                         static_cast<uint16_t>(TensorMemory::column(t.factors[operand])),
                         static_cast<uint16_t>(factor_columns(operand == 0 ? path.rows : i.n))});
  }
}

void check_matrix(const Warp& w, const Op& op, Cta& cta, const Matrix& matrix) {
  if (matrix.rows % matrix.unit() != 0) {
    invalid(w, op, "MN-major operands of 8 bits are modelled with a multiple of 16 columns");
  }
  for (uint32_t i = 0; i < matrix.pieces(); ++i)
    check_operand(w, op, cta, matrix.piece(i), matrix.major, matrix.extent());
}

void check_product(Warp& w, const Op& op, const TensorWork& t, const Product& p) {
  check_instruction(w, op, t.shape, p);
  const Instruction i(t.shape, p.kind);
  const DataPath path(i, p);
  const uint32_t lane = TensorMemory::lane(t.destination);
  if (lane != 0 && !(path.scattered() && lane == kGroup)) {
    invalid(w, op, "the accumulators of M = ", number(i.m), " begin at lane 0",
            path.scattered() ? " or 16" : "", " of tensor memory, not at ", number(lane));
  }
  if (p.a_in_tensor && i.a_major != Major::kK) {
    invalid(w, op, "A in tensor memory is K-major, not MN-major");
  }
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
  if (!p.a_in_tensor) check_descriptor(w, op, t.descriptor[0], i.a_major);
  check_descriptor(w, op, t.descriptor[1], i.b_major);
  if (p.stationary) ColumnMask(t, path).check(w, op, i);
  const Blocks blocks = blocks_of(*w.cta, p.blocks);
  for (uint32_t b = 0; b < blocks.count; ++b) {
    Cta& cta = *blocks.cta[b];
    require_columns(w, op, cta, TensorMemory::column(t.destination), path.columns);
    if (p.a_in_tensor) {
      require_columns(w, op, cta, TensorMemory::column(t.a_address), kOperandBytes / 4);
    } else {
      check_matrix(w, op, cta, a_of(t, p, i));
    }
    check_matrix(w, op, cta, b_of(t, p, i));
    for (uint32_t operand = 0; p.scales != 0 && operand < 2; ++operand) {
      require_columns(w, op, cta, TensorMemory::column(t.factors[operand]),
                      factor_columns(operand == 0 ? path.rows : i.n));
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
// of A], [scales of B], enable-input-d, scale-input-d where the kind has one, or the zero-column
// mask descriptor.
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
  if ((p.stationary || p.kind <= Kind::kTf32) && op.list[at] != kNoRef) {
    if (p.stationary) {
      t.zero_columns = w.at<uint64_t>(op.list[at])[lane];
    } else {
      t.scale = op.list[at];
    }
  }
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
    const uint32_t deep = matrix.major == Major::kMn32 ? 8 : 16;  // chunks along k
    for (uint32_t c = 0; c < f.chunks.size(); ++c) {
      uint32_t chunk[5] = {};
      std::memcpy(chunk, from + f.chunks[c], 16);
      for (uint32_t e = 0; e < count; ++e) {
        const uint32_t row = by_k ? c / 2 : c / deep * count + e;
        const uint32_t k = by_k ? c % 2 * count + e : piece * 16 + c % deep;
        const uint32_t at = e * bits;  // an element of 6 bits may be in two words
        const uint64_t words = chunk[at / 32] | uint64_t{chunk[at / 32 + 1]} << 32;
        const float x = decode(static_cast<uint32_t>(words >> at % 32), matrix.format);
        out[row * row_stride + k * k_stride] = negative ? -x : x;
      }
    }
  }
}

// A of one block, whose rows stand as those of the accumulators do: each bank has its own.
void load_tensor(Cta& cta, uint32_t address, const Instruction& i, const DataPath& path,
                 float* out) {
  const uint32_t count = per_chunk(i.a) / 4, bits = 32 / count;  // of a cell
  for (uint32_t k = 0; k < i.depth(); ++k) {
    const uint32_t* cells =
        cta.async.tensor.at(TensorMemory::column(address) + k / count, TensorMemory::lane(address));
    for (uint32_t r = 0; r < path.rows * path.banks; ++r) {
      const float x = decode(cells[path.lane(r)] >> (k % count * bits), i.a);
      out[k * TensorMemory::kLanes + r] = i.negate_a ? -x : x;
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

  // sums += A times b, column n of B.
  void add(float* sums, const float* a, const float* b, uint32_t n) const {
    const auto& kernels = *cta.launch->kernels;
    const auto count = static_cast<int>(rows);
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
  const DataPath path(i, p);
  const ColumnMask mask(t, path);
  alignas(64) static thread_local float a[kMostDepth * TensorMemory::kLanes];
  alignas(64) float sums[TensorMemory::kLanes];
  constexpr float kZeros[kMostDepth] = {};
  if (p.a_in_tensor) {
    load_tensor(cta, t.a_address, i, path, a);
  } else {
    load_shared(cta, a_of(t, p, i), i.negate_a, a, 1, TensorMemory::kLanes);
  }
  const float scale = std::bit_cast<float>((127 - t.scale) << 23);
  const uint32_t first = TensorMemory::lane(t.destination);
  for (uint32_t n = 0; n < i.n; ++n) {
    const uint32_t bank = path.bank(n) * path.rows;  // its first lane
    const uint32_t column = TensorMemory::column(t.destination) + n % path.columns;
    uint32_t* const cells = cta.async.tensor.at(column, first + bank);
    std::fill_n(sums, path.rows, 0.0f);
    if (t.accumulate && !i.integers) {
      for (uint32_t r = 0; r < path.rows; ++r)
        sums[r] = from_cell(cells[path.lane(r)], i.half_sums) * scale;
    }
    work.add(sums, p.a_in_tensor ? a + bank : a,
             mask.is_zero(n) ? kZeros : b + size_t{n + mask.shift()} * i.depth(), n);
    for (uint32_t r = 0; r < path.rows; ++r) {
      const uint32_t lane = first + bank + path.lane(r);
      if (disabled[lane / 32] >> lane % 32 & 1) continue;
      uint32_t& cell = cells[path.lane(r)];
      cell = work.joined(t.accumulate ? cell : 0, sums[r]);
    }
  }
}

// In the lanes of each warp a lane gets 32 bytes of the next one, and the last keeps its own. Of
// which warps the PTX ISA does not say; measurements of others on cards show all four.
void shift_lanes(Cta& cta, uint32_t address) {
  for (uint32_t c = 0; c < kShiftedColumns; ++c) {
    for (uint32_t lane = 0; lane < TensorMemory::kLanes; lane += 32) {
      uint32_t* const cells = cta.async.tensor.at(TensorMemory::column(address) + c, lane);
      std::copy(cells + 1, cells + 32, cells);
    }
  }
}

// Each block of a pair holds half of the rows of A and of D, and half of the columns of B.
void execute_product(Cta& cta, const TensorWork& t) {
  const auto p = t.op->aux.as<Product>();
  const Instruction i(t.shape, p.kind);
  const Blocks blocks = blocks_of(cta, p.blocks);
  alignas(64) static thread_local float b[(kMostColumns + kMostShift) * kMostDepth];
  for (uint32_t k = 0; k < blocks.count; ++k) {
    load_shared(*blocks.cta[k], b_of(t, p, i), i.negate_b, b + size_t{k} * i.n / 2 * i.depth(),
                i.depth(), 1);
  }
  for (uint32_t k = 0; k < blocks.count; ++k)
    execute_rows(*blocks.cta[k], t, p, b, t.disabled.data() + size_t{k} * 4);
  // A is multiplied as it was: with .collector::a::lastuse it need not be read here.
  for (uint32_t k = 0; p.shifts && k < blocks.count; ++k) shift_lanes(*blocks.cta[k], t.a_address);
}

// Rows of 16 or 32 bytes, which go to lanes of one warp or of several.
struct Copy {
  uint8_t blocks = 1, rows = 128, chunks = 1;
  uint8_t far = 0;      // lanes between a row and its second place; 0 where it has one
  bool shifts = false;  // within tensor memory: tcgen05.shift
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
  check_descriptor(w, op, t.descriptor[0], Major::kK);
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

// Operands: [tensor memory].
Step shift_down(Warp& w, const Op& op) {
  const int lane = only_lane(w, op);
  const auto c = op.aux.as<Copy>();
  require_pairs(w, op, c.blocks);
  TensorWork t;
  t.destination = w.at<uint32_t>(op.r[0])[lane] + op.r[1];
  if (TensorMemory::lane(t.destination) != 0) {
    invalid(w, op, "a shift begins at a multiple of 32 lanes, and is modelled from lane 0 on, not ",
            "from ", number(TensorMemory::lane(t.destination)));
  }
  const uint32_t column = TensorMemory::column(t.destination);
  Operands operands;
  const Blocks blocks = blocks_of(*w.cta, c.blocks);
  for (uint32_t b = 0; b < blocks.count; ++b) {
    Cta& cta = *blocks.cta[b];
    require_columns(w, op, cta, column, kShiftedColumns);
    operands.writes.push_back({cta.rank, 0xff, static_cast<uint16_t>(column), kShiftedColumns});
  }
  operands.reads = operands.writes;
  issue(w, op, t, operands, TensorAction::kCopy);
  return Step::kNext;
}

void execute_copy(Cta& home, const TensorWork& t) {
  const auto c = t.op->aux.as<Copy>();
  const Blocks blocks = blocks_of(home, c.blocks);
  for (uint32_t b = 0; b < blocks.count; ++b) {
    Cta& cta = *blocks.cta[b];
    if (c.shifts) {
      shift_lanes(cta, t.destination);
      continue;
    }
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

}  // namespace

namespace ops {

Bound tcgen05_mma(Modifiers& m) {
  Product p;
  p.blocks = blocks_of(m);
  p.stationary = m.flag("ws");
  p.shifts = m.flag("ashift");
  p.kind = static_cast<Kind>(m.choice({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
                                       "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"}));
  m.flag("block_scale");
  // Scales of 16 or of 32 elements, of which a row of A has 32 or 64.
  const int size =
      m.choice({"scale_vec::1X", "scale_vec::2X", "block32", "scale_vec::4X", "block16"});
  if (p.kind == Kind::kMxf8f6f4) p.scales = 1;
  if (p.kind >= Kind::kMxf4) p.scales = size > 2 ? 4 : 2;
  // How long the tensor core keeps A, or B in one of four places, makes no difference here.
  for (const isa::Token& token : m.spelling().tokens) {
    if (token.text.starts_with("collector")) m.flag(token.text);
  }
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

Bound tcgen05_shift(Modifiers& m) {
  Copy c;
  c.blocks = blocks_of(m);
  c.shifts = true;
  return code(shift_down, c);
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
