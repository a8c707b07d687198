// SPDX-License-Identifier: MIT
// ld and st (PTX ISA 9.7.9.8 to 9.7.9.12).
#include "exec/access.h"
#include "exec/communication.h"
#include "exec/ops/lanes.h"
#include "exec/poison.h"

namespace ptxvm::ops {
namespace {

struct Shape {
  uint8_t count, bytes;  // elements, bytes of one
  bool is_signed;
  Space space;
  bool polls;  // it may be how a warp waits for another one
};

template <class T, class W>
void load_into(W* d, std::byte* const* host, uint32_t mask, size_t at) {
  for_lanes(mask, [&](int i) {
    T v;
    std::memcpy(&v, host[i] + at, sizeof v);
    d[i] = static_cast<W>(
        static_cast<std::conditional_t<std::is_signed_v<T>, std::make_signed_t<W>, W>>(v));
  });
}

template <class W>
void load_element(Warp& w, Ref ref, const Shape& s, std::byte* const* host, uint32_t mask,
                  size_t at) {
  W* d = w.at<W>(ref);
  switch (s.bytes) {
    case 1:
      return s.is_signed ? load_into<int8_t>(d, host, mask, at)
                         : load_into<uint8_t>(d, host, mask, at);
    case 2:
      return s.is_signed ? load_into<int16_t>(d, host, mask, at)
                         : load_into<uint16_t>(d, host, mask, at);
    case 4:
      return s.is_signed ? load_into<int32_t>(d, host, mask, at)
                         : load_into<uint32_t>(d, host, mask, at);
    default:
      return load_into<uint64_t>(d, host, mask, at);
  }
}

template <class T>
void store_from(Warp& w, Ref ref, std::byte* const* host, uint32_t mask, size_t at) {
  for_lanes(mask, [&](int i) {
    const auto v = static_cast<T>(ref & kRefWide ? w.at<uint64_t>(ref)[i] : w.at<uint32_t>(ref)[i]);
    std::memcpy(host[i] + at, &v, sizeof v);
  });
}

void store_element(Warp& w, Ref ref, uint32_t bytes, std::byte* const* host, uint32_t mask,
                   size_t at) {
  switch (bytes) {
    case 1:
      return store_from<uint8_t>(w, ref, host, mask, at);
    case 2:
      return store_from<uint16_t>(w, ref, host, mask, at);
    case 4:
      return store_from<uint32_t>(w, ref, host, mask, at);
    default:
      return store_from<uint64_t>(w, ref, host, mask, at);
  }
}

// Up to four elements stand, with their address, among the first operands.
const uint32_t* operands(const Op& op, const Shape& s) {
  return s.count <= 4 ? op.r : op.list;
}

constexpr uint32_t kWide = 32;  // bytes that only global memory is accessed by at once

void check_wide(Warp& w, const Op& op, Space space, uint32_t lanes, uint32_t bytes) {
  if (bytes != kWide || space == Space::kGlobal) return;
  raise(w, op, FaultKind::kInvalid, __builtin_ctz(lanes),
        "an access of 256 bits is to global memory, this address is in " +
            std::string(name(space)) + " memory");
}

struct Store {
  const Warp& w;
  const Op& op;
  const Shape& shape;
};

void write_store(const void* given, int lane, std::byte* out) {
  const Store& s = *static_cast<const Store*>(given);
  for (uint32_t e = 0; e < s.shape.count; ++e) {
    const Ref ref = operands(s.op, s.shape)[e + 2];
    const uint64_t v = ref & kRefWide ? s.w.at<uint64_t>(ref)[lane] : s.w.at<uint32_t>(ref)[lane];
    std::memcpy(out + size_t{e} * s.shape.bytes, &v, s.shape.bytes);
  }
}

template <bool kObserved>
Step load(Warp& w, const Op& op) {
  const auto shape = op.aux.as<Shape>();
  const uint32_t total = uint32_t{shape.count} * shape.bytes;
  Request request;
  const uint32_t* const r = operands(op, shape);
  lane_addresses(w, r[shape.count], r[shape.count + 1], request.wide);
  for_spaces(shape.space, w.mask, request, [&](Space space, uint32_t lanes) {
    check_wide(w, op, space, lanes, total);
    resolve(w, op, space, lanes, total, total, false, request);
    Unwritten unwritten;
    if constexpr (kObserved) {
      report_access(w, op, space, AccessKind::kLoad, lanes, total, request, {}, &unwritten);
    }
    // An address register may be one of the destinations; all addresses have been read by now.
    for (uint32_t e = 0; e < shape.count; ++e) {
      const Ref ref = r[e];
      const size_t at = size_t{e} * shape.bytes;
      if (ref & kRefWide) {
        load_element<uint64_t>(w, ref, shape, request.host, lanes, at);
      } else {
        load_element<uint32_t>(w, ref, shape, request.host, lanes, at);
      }
    }
    if (kObserved && unwritten.lanes != 0) [[unlikely]]
      poison_loaded(w, op, unwritten, shape.count, shape.bytes);
    if ((w.checks & kCheckPoison) && space == Space::kLocal) [[unlikely]]
      poison_from_local(w, op, lanes, shape.count, shape.bytes, request.narrow);
    if (shape.polls) note_poll(w, op, space, lanes, total, request);
  });
  return Step::kNext;
}

template <bool kObserved>
Step store(Warp& w, const Op& op) {
  const auto shape = op.aux.as<Shape>();
  const uint32_t total = uint32_t{shape.count} * shape.bytes;
  Request request;
  const uint32_t* const r = operands(op, shape);
  lane_addresses(w, r[0], r[1], request.wide);
  for_spaces(shape.space, w.mask, request, [&](Space space, uint32_t lanes) {
    check_wide(w, op, space, lanes, total);
    resolve(w, op, space, lanes, total, total, true, request);
    Unwritten unwritten;
    if (w.checks & kCheckPoison) [[unlikely]]
      unwritten = poison_stored(w, op, space, lanes, std::span(r + 2, shape.count), shape.bytes,
                                request.narrow);
    if constexpr (kObserved) {
      const Store all{w, op, shape};
      report_access(w, op, space, AccessKind::kStore, lanes, total, request, {write_store, &all},
                    unwritten.lanes != 0 ? &unwritten : nullptr);
    }
    for (uint32_t e = 0; e < shape.count; ++e) {
      store_element(w, r[e + 2], shape.bytes, request.host, lanes, size_t{e} * shape.bytes);
    }
  });
  return Step::kNext;
}

Space space_of_access(Modifiers& m) {
  switch (
      m.choice({"global", "shared", "shared::cta", "local", "const", "param", "shared::cluster"})) {
    case 0:
      return Space::kGlobal;
    case 1:
    case 2:
      return Space::kShared;
    case 3:
      return Space::kLocal;
    case 4:
      return Space::kConst;
    case 5:
      return Space::kParam;
    case 6:
      return Space::kSharedCluster;
    default:
      return Space::kGeneric;
  }
}

Shape shape_of(Modifiers& m) {
  Shape s{};
  s.space = space_of_access(m);
  // The blocks of a cluster run on one thread and the host keeps the order of its accesses: the
  // memory model's orders are stronger here than any of these ask for.
  s.polls = m.choice({"volatile", "relaxed", "acquire", "cv"}) >= 0;
  m.choice({"weak", "release"});
  m.flag("mmio");  // there are no devices here: a relaxed access of the system
  m.choice({"cta", "cluster", "gpu", "sys"});
  m.flag("nc");
  m.ignore_cache_hints();
  s.count = static_cast<uint8_t>(m.vector());
  const Type t = m.type();
  s.bytes = static_cast<uint8_t>(bits(t) / 8);
  s.is_signed = kind(t) == TypeKind::kSigned;
  if (t == Type::kB128) {  // two registers
    s.count = 2;
    s.bytes = 8;
  }
  return s;
}

}  // namespace

Bound ld(Modifiers& m) {
  const Shape s = shape_of(m);
  return {load<false>, load<true>, s};
}

// What is discarded has no value until it is written again: all ones, which show as NaN.
Bound discard(Modifiers& m) {
  m.ignore_cache_hints();
  return code(
      [](Warp& w, const Op& op) {
        Request request;
        lane_addresses(w, op.r[0], op.r[1], request.wide);
        for_spaces(op.aux.as<Space>(), w.mask, request, [&](Space space, uint32_t lanes) {
          if (space != Space::kGlobal) {
            raise(w, op, FaultKind::kInvalid, __builtin_ctz(lanes),
                  "the address is not in global memory");
          }
          constexpr uint32_t kBytes = 128;
          resolve(w, op, space, lanes, kBytes, kBytes, true, request);
          for_lanes(lanes, [&](int i) { std::memset(request.host[i], 0xff, kBytes); });
        });
        return Step::kNext;
      },
      space_of_access(m));
}

Bound st(Modifiers& m) {
  const Shape s = shape_of(m);
  return {store<false>, store<true>, s};
}

}  // namespace ptxvm::ops
