// SPDX-License-Identifier: MIT
// Video instructions on halves and bytes (PTX ISA 9.7.16.2).
#include <algorithm>
#include <array>

#include "exec/ops/lanes.h"

namespace ptxvm::ops {
namespace {

enum class VideoOp : uint8_t { kAdd, kSub, kAverage, kDifference, kMin, kMax, kCompare };

struct Video {
  VideoOp op = VideoOp::kAdd;
  int8_t comparison = 0;  // eq, ne, lt, le, gt, ge
  bool signed_result = false, signed_a = false, signed_b = false;
  bool saturates = false, accumulates = false;
};

int32_t compute(const Video& v, int32_t a, int32_t b) {
  switch (v.op) {
    case VideoOp::kAdd:
      return a + b;
    case VideoOp::kSub:
      return a - b;
    case VideoOp::kAverage:  // half of an odd sum goes away from zero
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case VideoOp::kDifference:
      return a < b ? b - a : a - b;
    case VideoOp::kMin:
      return std::min(a, b);
    case VideoOp::kMax:
      return std::max(a, b);
    case VideoOp::kCompare:
      break;
  }
  const bool results[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return results[v.comparison];
}

template <int kParts>
int32_t part(uint64_t words, uint32_t number, bool is_signed) {
  constexpr int kBits = 32 / kParts;
  const auto bits = static_cast<uint32_t>(words >> (number * kBits)) & ((1u << kBits) - 1);
  return is_signed ? static_cast<int32_t>(bits << (32 - kBits)) >> (32 - kBits)
                   : static_cast<int32_t>(bits);
}

// Operands: d, parts that it takes; a, parts; b, parts; c.
template <int kParts>
Step video_lanes(Warp& w, const Op& op) {
  constexpr int kBits = 32 / kParts;
  constexpr uint32_t kOrder = kParts == 2 ? 0x10 : 0x3210, kNext = kParts == 2 ? 0x22 : 0x4444;
  const auto v = op.aux.as<Video>();
  const uint32_t taken = op.r[1];
  const uint32_t a_parts = op.r[3] == kAllParts ? kOrder : op.r[3];
  const uint32_t b_parts = op.r[5] == kAllParts ? kOrder + kNext : op.r[5];
  const int32_t most = v.signed_result ? (1 << (kBits - 1)) - 1 : (1 << kBits) - 1;
  const int32_t least = v.signed_result ? -(1 << (kBits - 1)) : 0;
  const uint32_t *a = w.at<uint32_t>(op.r[2]), *b = w.at<uint32_t>(op.r[4]);
  const uint32_t* c = w.at<uint32_t>(op.r[6]);
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  for_lanes(w.mask, [&](int lane) {
    const uint64_t both = uint64_t{b[lane]} << 32 | a[lane];
    uint32_t result = c[lane];
    for (int i = 0; i < kParts; ++i) {
      if ((taken >> i & 1) == 0) continue;
      int32_t t = compute(v, part<kParts>(both, a_parts >> (4 * i) & 15, v.signed_a),
                          part<kParts>(both, b_parts >> (4 * i) & 15, v.signed_b));
      if (v.saturates) t = std::clamp(t, least, most);
      if (v.accumulates) {
        result += static_cast<uint32_t>(t);
      } else {
        const uint32_t place = ((1u << kBits) - 1) << (i * kBits);
        result = (result & ~place) | (static_cast<uint32_t>(t) << (i * kBits) & place);
      }
    }
    d[lane] = result;
  });
  return Step::kNext;
}

}  // namespace

Bound video(Modifiers& m) {
  constexpr std::array<std::string_view, 7> kNames = {"vadd", "vsub", "vavrg", "vabsdiff",
                                                      "vmin", "vmax", "vset"};
  const std::string_view base = m.base(), name = base.substr(0, base.size() - 1);
  Video v;
  v.op = static_cast<VideoOp>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
  if (v.op == VideoOp::kCompare) {
    v.comparison = static_cast<int8_t>(m.choice({"eq", "ne", "lt", "le", "gt", "ge"}));
  } else {
    v.signed_result = m.type() == Type::kS32;
  }
  v.signed_a = m.type() == Type::kS32;
  v.signed_b = m.type() == Type::kS32;
  v.saturates = m.flag("sat");
  v.accumulates = m.flag("add");
  return code(base.back() == '2' ? video_lanes<2> : video_lanes<4>, v);
}

}  // namespace ptxvm::ops
