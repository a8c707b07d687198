// SPDX-License-Identifier: MIT
#include "exec/poison.h"

#include <algorithm>
#include <utility>

#include "exec/fault.h"
#include "program/registers.h"

namespace ptxvm {
namespace {

// How poison goes through an instruction.
enum class Path {
  kLanes,    ///< Lane by lane.
  kWarp,     ///< Each lane's result depends on all lanes.
  kShuffle,  ///< See shuffle_poison.
  kUse,      ///< It has an effect.
};

Path path_of(CountClass c) {
  switch (c) {
    case CountClass::kInteger:
    case CountClass::kFloat:
    case CountClass::kHalf:
    case CountClass::kDouble:
    case CountClass::kExp:
    case CountClass::kSpecial:
    case CountClass::kConvert:
    case CountClass::kCompare:
    case CountClass::kMove:
      return Path::kLanes;
    case CountClass::kVote:
    case CountClass::kTensor:
      return Path::kWarp;
    case CountClass::kShuffle:
      return Path::kShuffle;
    default:
      return Path::kUse;
  }
}

void note_checks(Warp& w) {
  if (w.poison.empty() && w.poisoned_local.empty()) {
    w.checks &= static_cast<uint8_t>(~kCheckPoison);
  } else {
    w.checks |= kCheckPoison;
  }
}

[[noreturn]] void raise_use(const Warp& w, const Op& op, const Poison& p) {
  const InstructionInfo& shuffle = w.cta->launch->program->instructions[p.instruction];
  raise(w, op, FaultKind::kDivergence, __builtin_ctz(p.lanes),
        "this uses what " + std::string(shuffle.opcode) + " at line " +
            std::to_string(shuffle.line) + " took from a lane that does not take part in it");
}

// Of registers that an operation uses, told once.
Poison use(Warp& w, const Op& op, const Poison& p) {
  if (p.lanes != 0) raise_use(w, op, p);
  if (p.unwritten == 0) return {};
  const UnwrittenUseEvent e{id_of(w), op.instruction, p.load, p.unwritten};
  notify(w, [&](Probe& probe) { probe.unwritten_use(e); });
  return {};
}

// The value of an operand's lanes, where `test` is about it.
template <class Test>
uint32_t lanes_where(const Warp& w, Ref ref, Test test) {
  uint32_t out = 0;
  for_lanes(w.mask, [&](int lane) {
    const uint64_t v = ref & kRefWide ? w.at<uint64_t>(ref)[lane] : w.at<uint32_t>(ref)[lane];
    if (test(v)) out |= 1u << lane;
  });
  return out;
}

// Operands that leave nothing of another one: what selp does not take, and a false or true beside
// and and or. Lanes of the result that do not depend on what is undefined.
uint32_t decided(const Warp& w, const Op& op, const isa::Spelling& s) {
  if (!s.traits().decides) return 0;
  const auto clean = [&](Ref ref) { return ~poison_of(w, ref).all(); };
  const bool both = s.combine == isa::Combine::kAnd, either = s.combine == isa::Combine::kOr;
  if (s.combine == isa::Combine::kNone) {  // a predicate selects
    const uint32_t chosen = w.predicate(op.r[3]);
    return clean(op.r[3]) & ((clean(op.r[1]) & chosen) | (clean(op.r[2]) & ~chosen));
  }
  if (s.operands.size() == 4) {  // a further predicate
    const Ref ref = op.r[s.operands[0].pair ? 4 : 3];
    const uint32_t further = w.predicate(ref);
    return clean(ref) & (both ? ~further : either ? further : 0);
  }
  uint32_t out = 0;
  for (const Ref ref : {op.r[1], op.r[2]}) {
    uint32_t decides = 0;
    if (s.type == Type::kPred) {
      decides = both ? ~w.predicate(ref) : w.predicate(ref);
    } else if (both) {
      decides = lanes_where(w, ref, [](uint64_t v) { return v == 0; });
    }
    out |= clean(ref) & decides;
  }
  return out;
}

// mma.sync: a row of A and a column of B reach the sums of that row and that column. Lane l of an
// operand has row or column l / 4; registers of A take turns between the upper and the lower half
// of sixteen rows, those of the sums come one half after the other. A lane's sums are of two
// columns, one after the other; registers of two halves have both.
void follow_product(Warp& w, const Op& op, const isa::Spelling& s) {
  const auto count = [&](size_t operand) { return static_cast<size_t>(s.operands[operand].count); };
  const uint32_t* const d = op.list;
  const uint32_t* const a = d + count(0);
  const uint32_t* const b = a + count(1);
  const uint32_t* const c = b + count(2);
  const size_t halves = count(1) / count(2);
  const auto spread = [](Poison p, uint32_t (*to)(int lane)) {
    uint32_t lanes = 0, unwritten = 0;
    for_lanes(p.lanes, [&](int lane) { lanes |= to(lane); });
    for_lanes(p.unwritten, [&](int lane) { unwritten |= to(lane); });
    return Poison{lanes, p.instruction, unwritten, p.load};
  };
  const size_t turns = count(0) / halves;  // sums of a row in a lane, in registers of their own
  Poison rows[2], columns[2];
  for (size_t i = 0; i < count(1); ++i) {
    rows[i % halves].add(spread(poison_of(w, a[i]), [](int lane) { return 0xfu << (lane & ~3); }));
  }
  for (size_t i = 0; i < count(2); ++i) {
    const Poison p = poison_of(w, b[i]);
    const auto to = [](int lane) { return 0x11111111u << (lane / 8); };
    for (size_t odd = 0; odd < 2; ++odd) {
      const uint32_t its = turns < 2 ? kAllLanes : odd != 0 ? 0xf0f0f0f0u : 0x0f0f0f0fu;
      columns[odd].add(spread(p.within(its), to));
    }
  }
  for (size_t i = 0; i < count(0); ++i) {
    Poison p = rows[i * halves / count(0)];
    p.add(columns[i % 2]);
    p.add(poison_of(w, c[i]));
    set_poison(w, d[i], kAllLanes, p);
  }
}

// mov of elements to a register, of a register to elements, or both: compilers join what they want
// with what nothing has set, and take the one element out again.
void follow_pack(Warp& w, const Op& op, const Poison& guard) {
  const auto s = op.aux.as<PackShape>();
  const uint32_t each = s.element_bits / 8u, element = (1u << each) - 1;
  const Ref* const from = op.r + std::max<int>(s.destinations, 1);
  Poison whole;
  for (uint32_t e = 0; e < std::max<uint32_t>(s.sources, 1); ++e) {
    Poison p = poison_of(w, from[e]).within(w.mask);
    if (s.sources != 0) p.bytes = static_cast<uint8_t>((p.bytes & element) << (e * each));
    if (p.bytes != 0) whole.add(p);
  }
  for (uint32_t e = 0; e < std::max<uint32_t>(s.destinations, 1); ++e) {
    Poison p = whole;
    if (s.destinations != 0) p.bytes = static_cast<uint8_t>(whole.bytes >> (e * each) & element);
    if (p.bytes == 0) p = {};
    p.add(guard);
    if (op.r[e] < kNoRef) set_poison(w, op.r[e], w.mask, p);
  }
}

// The sums of a wgmma come first among its registers. Where scale-d is false they are not read.
int sums_unread(const Warp& w, const Op& op, const isa::Spelling& s) {
  const int sums = s.operands[0].count, scale = sums + s.operands[1].count + 1;
  return (w.predicate(op.list[scale]) & w.mask) == 0 ? sums : 0;
}

}  // namespace

Poison poison_of(const Warp& w, Ref ref) {
  if (ref >= kNoRef || (ref & kRefPool)) return {};
  const auto found = w.poison.find(ref & ~kRefFlags);
  return found == w.poison.end() ? Poison{} : found->second;
}

void set_poison(Warp& w, Ref ref, uint32_t lanes, const Poison& p) {
  ref &= ~kRefFlags;
  if (p.all() == 0 && !w.poison.contains(ref)) return;
  Poison& old = w.poison[ref];
  old = old.within(~lanes);
  old.add(p);
  if (old.all() == 0) w.poison.erase(ref);
  note_checks(w);
}

void poison_unset(Warp& w, uint32_t function, uint32_t lanes) {
  const Program& program = *w.cta->launch->program;
  const auto first = static_cast<uint32_t>(program.instructions.size());
  for (uint32_t i = 0; i < program.unset.size(); ++i) {
    const UnsetRegister& r = program.unset[i];
    if (r.function == function) set_poison(w, r.place, lanes, {0, 0, lanes, first + i});
  }
}

void follow_poison(Warp& w, const Op& op) {
  if (op.guard == kAddedOp) return;
  const Program& program = *w.cta->launch->program;
  const Action action = program.actions[static_cast<size_t>(&op - w.code)];
  const Path path = path_of(program.instructions[op.instruction].count_class);
  Poison in;
  if (op.guard < kNoRef) {
    in = poison_of(w, op.guard).within(w.active);
    if (path == Path::kUse && in.all() != 0) {
      in = use(w, op, in);
      set_poison(w, op.guard, kAllLanes, {});
    }
  }
  if (path == Path::kShuffle) return;
  if (action == Action::kPack) return follow_pack(w, op, in);
  const isa::Spelling& spelling = *program.spellings[op.instruction];
  if (spelling.count == CountClass::kTensor) {
    if (!spelling.traits().fragments) follow_product(w, op, spelling);
    return;  // one of fragments follows its own
  }
  // What a call passes goes through memory.
  const bool ends = path == Path::kUse || action == Action::kFrameAccess;
  const bool stores = ends && spelling.traits().store;
  // Others may have no registers at all.
  const Ref address = !stores || op.list[0] & kRefPool ? kNoRef : op.list[0] & ~kRefFlags;
  bool first = true;
  int unread = spelling.count == CountClass::kWgmma ? sums_unread(w, op, spelling) : 0;
  for_registers(program, op, action, [&](Ref ref, bool written) {
    if (written || --unread >= 0) return;
    const bool is_stored = stores && !(std::exchange(first, false) && ref == address);
    Poison p = poison_of(w, ref).within(w.mask);
    if (p.all() == 0) return;
    if (ends && path != Path::kUse) p.lanes = 0;
    if (is_stored) p.unwritten = 0;  // see poison_stored
    if (is_stored && p.lanes == 0) return;
    if (ends) {
      p = use(w, op, p);
      set_poison(w, ref, w.mask, {});
    }
    in.add(p);
  });
  if (action == Action::kInstruction && in.all() != 0) in = in.within(~decided(w, op, spelling));
  // Halves stay apart.
  if (!spelling.traits().copy && spelling.type != Type::kF32x2) in.bytes = 0xff;
  if (in.lanes != 0 && path == Path::kWarp) in.lanes = w.mask;
  if (in.unwritten != 0 && path == Path::kWarp) in.unwritten = w.mask;
  for_registers(program, op, action, [&](Ref ref, bool written) {
    if (written) set_poison(w, ref, w.mask, in);
  });
}

void shuffle_poison(Warp& w, const Op& op, const uint8_t* from, uint32_t absent) {
  const Poison source = poison_of(w, op.r[2]);
  Poison out{absent, op.instruction};
  for_lanes(w.mask & ~absent, [&](int lane) {
    Poison p = source.within(1u << from[lane]);
    if (p.lanes != 0) p.lanes = 1u << lane;
    if (p.unwritten != 0) p.unwritten = 1u << lane;
    if (absent != 0) p.instruction = op.instruction;
    out.add(p);
  });
  set_poison(w, op.r[0], w.mask, out);
  set_poison(w, op.r[1], w.mask, {});
}

void poison_loaded(Warp& w, const Op& op, const Unwritten& unwritten, uint32_t count,
                   uint32_t bytes) {
  for (uint32_t e = 0; e < count; ++e) {
    Poison p{0, 0, 0, op.instruction};
    for_lanes(unwritten.lanes, [&](int lane) {
      const uint32_t its = unwritten.bytes[static_cast<size_t>(lane)] >> (e * bytes);
      if ((its & ((1u << bytes) - 1)) != 0) p.unwritten |= 1u << lane;
    });
    set_poison(w, op.r[e], 0, p);
  }
}

namespace {

void mark(Unwritten& out, int lane, uint32_t first, uint32_t bytes) {
  auto& its = out.bytes[static_cast<size_t>(lane)];
  if (!(out.lanes >> lane & 1)) its = 0;
  out.lanes |= 1u << lane;
  its |= ((1u << bytes) - 1) << first;
}

uint64_t local_key(int lane, uint64_t address) {
  return static_cast<uint64_t>(lane) << 32 | address;
}

// More bytes than this are used when they are stored.
constexpr size_t kMostLocal = size_t{1} << 16;

void store_local(Warp& w, int lane, uint32_t address, uint32_t bytes, const Unwritten& unwritten) {
  for (uint32_t b = 0; b < bytes; ++b) {
    const uint64_t key = local_key(lane, address + b);
    if ((unwritten.lanes >> lane & unwritten.bytes[static_cast<size_t>(lane)] >> b & 1) != 0) {
      w.poisoned_local[key] = unwritten.load;
    } else {
      w.poisoned_local.erase(key);
    }
  }
}

}  // namespace

Unwritten poison_stored(Warp& w, const Op& op, Space space, uint32_t lanes,
                        std::span<const Ref> values, uint32_t bytes, const uint32_t* addresses) {
  const auto count = static_cast<uint32_t>(values.size());
  const bool local = space == Space::kLocal;
  const bool carries = space == Space::kShared || space == Space::kSharedCluster ||
                       (local && w.poisoned_local.size() < kMostLocal);
  Unwritten out;
  for (uint32_t e = 0; e < count; ++e) {
    const Poison p = poison_of(w, values[e]).within(lanes);
    if (p.unwritten == 0) continue;
    if (!carries) {
      use(w, op, p);
      set_poison(w, values[e], lanes, {});
      continue;
    }
    for_lanes(p.unwritten, [&](int lane) { mark(out, lane, e * bytes, bytes); });
    out.load = p.load;
  }
  if (local && (out.lanes != 0 || !w.poisoned_local.empty())) {
    for_lanes(lanes, [&](int lane) { store_local(w, lane, addresses[lane], count * bytes, out); });
    note_checks(w);
  }
  return out;
}

void poison_from_local(Warp& w, const Op& op, uint32_t lanes, uint32_t count, uint32_t bytes,
                       const uint32_t* addresses) {
  if (w.poisoned_local.empty()) return;
  for (uint32_t e = 0; e < count; ++e) {
    Poison p;
    for_lanes(lanes, [&](int lane) {
      for (uint32_t b = 0; b < bytes; ++b) {
        const auto found = w.poisoned_local.find(local_key(lane, addresses[lane] + e * bytes + b));
        if (found != w.poisoned_local.end()) p.add({0, 0, 1u << lane, found->second});
      }
    });
    set_poison(w, op.r[e], 0, p);
  }
}

void move_local_poison(Warp& w, int lane, uint64_t from, uint64_t to, uint32_t bytes) {
  if (w.poisoned_local.empty()) return;
  for (uint32_t b = 0; b < bytes; ++b) {
    const auto found = from == kNoSource ? w.poisoned_local.end()
                                         : w.poisoned_local.find(local_key(lane, from + b));
    if (found == w.poisoned_local.end()) {
      w.poisoned_local.erase(local_key(lane, to + b));
    } else {
      const uint32_t load = found->second;
      w.poisoned_local[local_key(lane, to + b)] = load;
    }
  }
  note_checks(w);
}

void poison_matrices(Warp& w, const Op& op, const Unwritten& unwritten, bool transposed) {
  for_lanes(unwritten.lanes, [&](int row) {
    Poison p{0, 0, 0, op.instruction};
    for_lanes(unwritten.bytes[static_cast<size_t>(row)], [&](int byte) {
      const int lane = transposed ? byte / 2 * 4 + row % 8 / 2 : row % 8 * 4 + byte / 4;
      p.unwritten |= 1u << lane;
    });
    set_poison(w, op.r[row / 8], 0, p);
  });
}

Unwritten poison_stored_matrices(Warp& w, const Op& op, uint32_t count, bool transposed) {
  Unwritten out;
  for (uint32_t m = 0; m < count; ++m) {
    const Poison p = poison_of(w, op.r[m + 2]);
    if (p.unwritten == 0) continue;
    out.load = p.load;
    for_lanes(p.unwritten, [&](int lane) {
      const int row = static_cast<int>(m) * 8, quarter = lane / 4, pair = lane % 4;
      if (transposed) {
        for (const int r : {pair * 2, pair * 2 + 1}) {
          mark(out, row + r, static_cast<uint32_t>(quarter) * 2, 2);
        }
      } else {
        mark(out, row + quarter, static_cast<uint32_t>(pair) * 4, 4);
      }
    });
  }
  return out;
}

}  // namespace ptxvm
