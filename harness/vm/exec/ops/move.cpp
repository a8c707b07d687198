// SPDX-License-Identifier: MIT
// mov, packing, and conversion of addresses (PTX ISA 9.7.9.2, .20, .17).
#include "exec/ops/lanes.h"

namespace ptxvm {
namespace {

template <class W>
Step copy_lanes(Warp& w, const Op& op) {
  W* d = w.at<W>(op.r[0]);
  const W* a = w.at<W>(op.r[1]);
  if (w.mask == kAllLanes) {
#pragma GCC ivdep
    for (int i = 0; i < 32; ++i) d[i] = a[i];
  } else {
    for_lanes(w.mask, [&](int i) { d[i] = a[i]; });
  }
  return Step::kNext;
}

// A destination may be one of the sources.
template <class W>
Step copy_vectors(Warp& w, const Op& op) {
  const auto elements = op.aux.as<int>();
  for_lanes(w.mask, [&](int i) {
    W values[4] = {};
    for (int e = 0; e < elements; ++e) values[e] = w.at<W>(op.r[elements + e])[i];
    for (int e = 0; e < elements; ++e) w.at<W>(op.r[e])[i] = values[e];
  });
  return Step::kNext;
}

// Elements are joined from the least significant end.
Step pack_lanes(Warp& w, const Op& op) {
  const auto s = op.aux.as<PackShape>();
  auto read = [&](Ref ref, int i) {
    return ref & kRefWide ? w.at<uint64_t>(ref)[i] : uint64_t{w.at<uint32_t>(ref)[i]};
  };
  auto write = [&](Ref ref, int i, uint64_t v) {
    if (ref & kRefWide) {
      w.at<uint64_t>(ref)[i] = v;
    } else {
      w.at<uint32_t>(ref)[i] = static_cast<uint32_t>(v);
    }
  };
  const uint64_t element_mask = (uint64_t{1} << s.element_bits) - 1;
  const Ref* to = op.r;
  const Ref* from = op.r + std::max<int>(s.destinations, 1);
  for_lanes(w.mask, [&](int i) {
    uint64_t whole = 0;
    if (s.sources == 0) {
      whole = read(from[0], i);
    } else {
      for (uint32_t e = 0; e < s.sources; ++e) {
        whole |= (read(from[e], i) & element_mask) << (e * s.element_bits);
      }
    }
    if (s.destinations == 0) {
      write(to[0], i, whole);
    } else {
      for (uint32_t e = 0; e < s.destinations; ++e) {
        write(to[e], i, whole >> (e * s.element_bits) & element_mask);
      }
    }
  });
  return Step::kNext;
}

// To or from a window: its base, or the negative of it.
Step add_base(Warp& w, const Op& op) {
  uint64_t* d = w.at<uint64_t>(op.r[0]);
  const uint64_t* a = w.at<uint64_t>(op.r[1]);
  const auto base = op.aux.as<uint64_t>();
  for_lanes(w.mask, [&](int i) { d[i] = a[i] + base; });
  return Step::kNext;
}

Space space_named(Modifiers& m) {
  constexpr Space kSpaces[] = {Space::kGlobal,        Space::kShared, Space::kShared,
                               Space::kSharedCluster, Space::kLocal,  Space::kConst,
                               Space::kParam,         Space::kParam};
  return kSpaces[m.choice({"global", "shared", "shared::cta", "shared::cluster", "local", "const",
                           "param", "param::entry"})];
}

// .shared is the block's own memory, .shared::cluster also that of the others; the window of
// parameters is a part of .global.
bool lies_in(Space wanted, const Cta& cta, uint64_t address) {
  const Space found = space_of(address);
  if (wanted == Space::kGlobal && found == Space::kParam) return true;
  if (wanted != Space::kShared && wanted != Space::kSharedCluster) return found == wanted;
  const uint64_t local = address - window_base(Space::kShared);
  if (found != Space::kShared || local > UINT32_MAX) return false;
  const uint32_t rank = rank_of(static_cast<uint32_t>(local), cta.rank);
  return wanted == Space::kShared ? rank == cta.rank : rank < cta.cluster->blocks.size();
}

}  // namespace

Bound bind_pack(PackShape shape) {
  return {pack_lanes, pack_lanes, shape};
}

namespace ops {

Bound mov(Modifiers& m) {
  return bits(m.type()) == 64 ? code(copy_lanes<uint64_t>) : code(copy_lanes<uint32_t>);
}

Bound mov_vector(Modifiers& m) {
  const int elements = m.vector();
  return bits(m.type()) == 64 ? code(copy_vectors<uint64_t>, elements)
                              : code(copy_vectors<uint32_t>, elements);
}

// Destination and source are two operands each.
Bound mov_wide(Modifiers&) {
  return code([](Warp& w, const Op& op) {
    uint64_t* d[2] = {w.at<uint64_t>(op.r[0]), w.at<uint64_t>(op.r[1])};
    const uint64_t* a[2] = {w.at<uint64_t>(op.r[2]), w.at<uint64_t>(op.r[3])};
    for_lanes(w.mask, [&](int i) {
      const uint64_t low = a[0][i], high = a[1][i];
      d[0][i] = low;
      d[1][i] = high;
    });
    return Step::kNext;
  });
}

Bound mov_pred(Modifiers&) {
  return code([](Warp& w, const Op& op) {
    w.set_predicate(op.r[0], w.predicate(op.r[1]));
    return Step::kNext;
  });
}

Bound cvta(Modifiers& m) {
  const bool to_space = m.flag("to");
  const Space space = space_named(m);
  const uint64_t base = window_base(space == Space::kSharedCluster ? Space::kShared : space);
  return code(add_base, to_space ? uint64_t{0} - base : base);
}

Bound isspacep(Modifiers& m) {
  return code(
      [](Warp& w, const Op& op) {
        const uint64_t* a = w.at<uint64_t>(op.r[1]);
        const auto wanted = op.aux.as<Space>();
        uint32_t result = 0;
        for (int i = 0; i < 32; ++i) {
          result |= uint32_t{lies_in(wanted, *w.cta, a[i])} << i;
        }
        w.set_predicate(op.r[0], result);
        return Step::kNext;
      },
      space_named(m));
}

}  // namespace ops
}  // namespace ptxvm
