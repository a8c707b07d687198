// SPDX-License-Identifier: MIT
// Warp-level matrix instructions (PTX ISA 9.7.14).
#include "exec/access.h"
#include "exec/converge.h"
#include "exec/ops/lanes.h"
#include "exec/poison.h"
#include "num/half.h"
#include "num/tile.h"

namespace ptxvm::ops {
namespace {

using num::Row;
using num::transpose;

// ldmatrix: lanes 8i to 8i+7 give the rows of matrix i.
template <bool kObserved, int kCount, bool kTransposed>
Step load_matrices(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  constexpr uint32_t kAddressing = kCount == 4 ? kAllLanes : (1u << (8 * kCount)) - 1;
  Request request;
  lane_addresses(w, op.r[kCount], op.r[kCount + 1], request.wide);
  for_spaces(op.aux.as<Space>(), kAddressing, request, [&](Space space, uint32_t lanes) {
    if (space != Space::kShared && space != Space::kSharedCluster) {
      raise(w, op, FaultKind::kInvalid, __builtin_ctz(lanes),
            "the address is not in shared memory");
    }
    resolve(w, op, space, lanes, 16, 16, false, request);
    require_own_block(w, op, lanes, request, "a row");
  });
  if constexpr (kObserved) {
    Unwritten unwritten;
    report_access(w, op, Space::kShared, AccessKind::kLdMatrix, kAddressing, 16, request, {},
                  &unwritten);
    if (unwritten.lanes != 0) [[unlikely]]
      poison_matrices(w, op, unwritten, kTransposed);
  }
  for (int m = 0; m < kCount; ++m) {
    uint32_t* d = w.at<uint32_t>(op.r[m]);
    if constexpr (kTransposed) {
      Row rows[8];
      for (int r = 0; r < 8; ++r) std::memcpy(&rows[r], request.host[m * 8 + r], 16);
      transpose(rows);
      std::memcpy(d, rows, sizeof rows);
    } else {
      for (int r = 0; r < 8; ++r) std::memcpy(d + r * 4, request.host[m * 8 + r], 16);
    }
  }
  return Step::kNext;
}

struct StoredRows {
  Row rows[4][8];
};

void write_row(const void* given, int lane, std::byte* out) {
  std::memcpy(out, &static_cast<const StoredRows*>(given)->rows[lane / 8][lane % 8], 16);
}

template <bool kObserved, int kCount, bool kTransposed>
Step store_matrices(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  constexpr uint32_t kAddressing = kCount == 4 ? kAllLanes : (1u << (8 * kCount)) - 1;
  Request request;
  lane_addresses(w, op.r[0], op.r[1], request.wide);
  for_spaces(op.aux.as<Space>(), kAddressing, request, [&](Space space, uint32_t lanes) {
    if (space != Space::kShared && space != Space::kSharedCluster) {
      raise(w, op, FaultKind::kInvalid, __builtin_ctz(lanes),
            "the address is not in shared memory");
    }
    resolve(w, op, space, lanes, 16, 16, true, request);
    require_own_block(w, op, lanes, request, "a row");
  });
  StoredRows all;
  for (int m = 0; m < kCount; ++m) {
    std::memcpy(all.rows[m], w.at<uint32_t>(op.r[m + 2]), sizeof all.rows[m]);
    if constexpr (kTransposed) transpose(all.rows[m]);
  }
  if constexpr (kObserved) {
    Unwritten unwritten;
    if (w.checks & kCheckPoison) [[unlikely]]
      unwritten = poison_stored_matrices(w, op, kCount, kTransposed);
    report_access(w, op, Space::kShared, AccessKind::kStMatrix, kAddressing, 16, request,
                  {write_row, &all}, unwritten.lanes != 0 ? &unwritten : nullptr);
  }
  for (int r = 0; r < 8 * kCount; ++r) std::memcpy(request.host[r], &all.rows[r / 8][r % 8], 16);
  return Step::kNext;
}

Step transpose_matrix(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  Row rows[8];
  std::memcpy(rows, w.at<uint32_t>(op.r[1]), sizeof rows);
  transpose(rows);
  std::memcpy(w.at<uint32_t>(op.r[0]), rows, sizeof rows);
  return Step::kNext;
}

// kSteps: k in units of 8. Operands in the list: d, a (2 kSteps), b (kSteps), c.
template <int kSteps, bool kBfloat>
Step multiply_f32(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  uint32_t* reg[8 + 3 * kSteps];
  for (int i = 0; i < 8 + 3 * kSteps; ++i) reg[i] = w.at<uint32_t>(op.list[i]);
  const num::Kernels& k = *w.cta->launch->kernels;
  (kBfloat ? k.mma_bf16 : k.mma_f16)(reg, reg + 4, reg + 4 + 2 * kSteps, reg + 4 + 3 * kSteps,
                                     kSteps);
  return Step::kNext;
}

// Accumulators of f16 are summed in f32 and rounded once.
template <int kSteps>
Step multiply_f16(Warp& w, const Op& op) {
  if (!converge_all(w, op)) return Step::kSwitch;
  uint32_t* reg[4 + 3 * kSteps];
  for (int i = 0; i < 4 + 3 * kSteps; ++i) reg[i] = w.at<uint32_t>(op.list[i]);
  uint32_t wide[4][32];
  uint32_t* const* c = reg + 2 + 3 * kSteps;
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 32; ++i) {
      wide[half * 2][i] =
          std::bit_cast<uint32_t>(num::half_to_float(static_cast<uint16_t>(c[half][i])));
      wide[half * 2 + 1][i] =
          std::bit_cast<uint32_t>(num::half_to_float(static_cast<uint16_t>(c[half][i] >> 16)));
    }
  }
  uint32_t* sums[4] = {wide[0], wide[1], wide[2], wide[3]};
  w.cta->launch->kernels->mma_f16(sums, reg + 2, reg + 2 + 2 * kSteps, sums, kSteps);
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 32; ++i) {
      const uint32_t low = num::float_to_half(std::bit_cast<float>(wide[half * 2][i]));
      const uint32_t high = num::float_to_half(std::bit_cast<float>(wide[half * 2 + 1][i]));
      reg[half][i] = low | high << 16;
    }
  }
  return Step::kNext;
}

// ldmatrix and stmatrix are bound alike: run<matrices, transposed>() gives the code of each.
template <class F>
Bound with_matrices(Modifiers& m, F run) {
  const int count = m.choice({"x1", "x2", "x4"});
  const bool transposed = m.flag("trans");
  const bool shared = m.choice({"shared", "shared::cta"}) >= 0;
  Bound bound = with_flag(transposed, [&]<bool T>() -> Bound {
    if (count == 0) return run.template operator()<1, T>();
    return count == 1 ? run.template operator()<2, T>() : run.template operator()<4, T>();
  });
  bound.aux = shared ? Space::kShared : Space::kGeneric;
  return bound;
}

}  // namespace

Bound ldmatrix(Modifiers& m) {
  return with_matrices(m, []<int N, bool T>() -> Bound {
    return {load_matrices<false, N, T>, load_matrices<true, N, T>};
  });
}

Bound stmatrix(Modifiers& m) {
  return with_matrices(m, []<int N, bool T>() -> Bound {
    return {store_matrices<false, N, T>, store_matrices<true, N, T>};
  });
}

Bound movmatrix(Modifiers&) {
  return code(transpose_matrix);
}

Bound mma_f32(Modifiers& m) {
  const bool deep = m.flag("m16n8k16"), bfloat = m.flag("bf16");
  m.flag("f16");
  return with_flag(
      bfloat, [&]<bool B>() { return deep ? code(multiply_f32<2, B>) : code(multiply_f32<1, B>); });
}

Bound mma_f16(Modifiers& m) {
  return m.flag("m16n8k16") ? code(multiply_f16<2>) : code(multiply_f16<1>);
}

}  // namespace ptxvm::ops
