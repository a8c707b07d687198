// SPDX-License-Identifier: MIT
#include "lower/operands.h"

#include <algorithm>
#include <bit>

namespace ptxvm {
namespace {

using text::Operand;

std::string quote(std::string_view text) {
  return "'" + std::string(text) + "'";
}
std::string dotted(Type t) {
  return "." + std::string(name(t));
}

// PTX ISA 6.4.1: sizes agree, and floating point does not mix with integers; untyped bits go with
// both. ld, st and cvt take registers that are wider than the instruction's type. A pair of f32 is
// in untyped bits.
bool fits(Type wanted, Type declared, bool relaxed) {
  if ((wanted == Type::kPred) != (declared == Type::kPred)) return false;
  if (wanted == Type::kPred) return true;
  const int have = bits(declared), need = bits(wanted);
  if (relaxed ? have < need : have != need) return false;
  if (wanted == Type::kF32x2) return kind(declared) == TypeKind::kBits;
  const bool float_wanted = kind(wanted) == TypeKind::kFloat;
  const bool float_declared = kind(declared) == TypeKind::kFloat;
  if (kind(wanted) == TypeKind::kBits || kind(declared) == TypeKind::kBits) return true;
  return float_wanted == float_declared;
}

bool is_number(const Operand& o) {
  return o.kind == Operand::Kind::kInteger || o.kind == Operand::Kind::kFloat;
}

}  // namespace

void OperandLowering::fail(text::Span span, std::string message) {
  errors_.add(span, std::move(message));
  throw BadStatement{};
}

Ref OperandLowering::guard(const text::Guard& guard, uint32_t scope) {
  auto reg = symbols_.find_register(guard.name, scope);
  if (!reg) fail(guard.span, quote(guard.name) + " is not declared");
  if (reg->type != Type::kPred) fail(guard.span, quote(guard.name) + " is not a predicate");
  return reg->ref | (guard.negated ? kRefNegate : 0);
}

std::vector<uint32_t> OperandLowering::lower(const text::Statement& s,
                                             const isa::Spelling& spelling, bool policy, int sm) {
  out_.clear();
  label_positions.clear();
  moving.clear();
  frame = false;
  scope_ = s.scope;
  const auto& specs = spelling.operands;
  const auto optional =
      std::count_if(specs.begin(), specs.end(), [](const auto& o) { return o.optional; });
  const size_t least = specs.size() - static_cast<size_t>(optional);
  const size_t extra = policy ? 1 : 0;
  const size_t given = s.operands.size() - std::min(extra, s.operands.size());
  if (s.operands.size() < least + extra || given > specs.size()) {
    std::string wanted = std::to_string(least + extra);
    if (least != specs.size()) wanted += " or " + std::to_string(specs.size() + extra);
    fail(s.opcode_span, quote(s.opcode) + " takes " + wanted +
                            (wanted == "1" ? " operand, not " : " operands, not ") +
                            std::to_string(s.operands.size()));
  }
  if (policy) {
    isa::OperandSpec spec;
    spec.type = Type::kB64;
    value(s.operands.back(), spec);
  }
  auto next = s.operands.begin();
  for (const isa::OperandSpec& spec : specs) {
    if (spec.optional && given == least) {
      out_.push_back(kNoRef);
      continue;
    }
    if (spec.sm > sm) fail(next->span, "this operand needs sm_" + std::to_string(spec.sm));
    operand(*next++, spec, spelling);
  }
  return out_;
}

void OperandLowering::operand(const Operand& o, const isa::OperandSpec& spec,
                              const isa::Spelling& spelling) {
  if (!o.second.empty() && !spec.pair)
    fail(o.span, "this operand cannot have a second destination");
  if (o.negated && !spec.negatable) fail(o.span, "this operand cannot be negated");
  switch (spec.kind) {
    case isa::OperandKind::kValue: {
      if (spec.parts != 0) return push_parts(o, spec);
      const bool one = spec.braces && o.kind == Operand::Kind::kVector && o.items.size() == 1;
      push(one ? o.items[0] : o, spec);
      if (!spec.pair) return;
      if (spec.pair_needed && o.second.empty()) {
        fail(o.span, "a second destination is needed: a predicate behind '|'");
      }
      isa::OperandSpec second;
      second.type = Type::kPred;
      second.role = isa::Role::kWrite;
      second.register_only = true;
      out_.push_back(o.second.empty() ? symbols_.sink(Type::kPred) : value(o.second[0], second));
      return;
    }
    case isa::OperandKind::kVector: {
      // A vector of one may be written without braces.
      if (o.kind != Operand::Kind::kVector && spec.count == 1) {
        out_.push_back(value(o, spec));
        return;
      }
      if (o.kind != Operand::Kind::kVector) {
        fail(o.span, "expected a vector of " + std::to_string(spec.count) + " elements in { }");
      }
      if (o.items.size() != static_cast<size_t>(spec.count)) {
        fail(o.span, "expected " + std::to_string(spec.count) + " elements, not " +
                         std::to_string(o.items.size()));
      }
      for (const Operand& item : o.items) {
        if (item.negated || !item.second.empty()) fail(item.span, "expected a register");
        out_.push_back(value(item, spec));
      }
      // ptxas finds no type for a vector of bits in which no register stands.
      if (!spec.relaxed && kind(spec.type) == TypeKind::kBits &&
          std::all_of(o.items.begin(), o.items.end(), is_number)) {
        fail(o.span, "one element at least must be a register");
      }
      return;
    }
    case isa::OperandKind::kMemory:
      address(o, spec, spelling);
      return;
    case isa::OperandKind::kImmediate: {
      if (o.kind != Operand::Kind::kInteger) fail(o.span, "expected an integer constant");
      const auto v = static_cast<int64_t>(o.integer);
      if (v < spec.lo || v > spec.hi || (v - spec.lo) % spec.step != 0) {
        std::string wanted = std::to_string(spec.lo);
        if (spec.lo != spec.hi) {
          wanted = "from " + wanted + " to " + std::to_string(spec.hi);
          if (spec.step != 1) wanted += ", in steps of " + std::to_string(spec.step);
        }
        fail(o.span, "the constant must be " + wanted + ", not " + std::to_string(v));
      }
      out_.push_back(static_cast<uint32_t>(v));
      return;
    }
    case isa::OperandKind::kFunction:
      fail(o.span, "expected a call");
    case isa::OperandKind::kLabel:
      label(o);
      return;
    case isa::OperandKind::kTargets:
      targets(o);
      return;
  }
}

void OperandLowering::label(const Operand& o) {
  if (o.kind != Operand::Kind::kName) fail(o.span, "expected a label");
  auto statement = symbols_.find_label(o.name, scope_);
  if (!statement) fail(o.span, "there is no label " + quote(o.name) + " here");
  label_positions.push_back(out_.size());
  out_.push_back(*statement);
}

// How many there are, then all of them.
void OperandLowering::targets(const Operand& o) {
  constexpr size_t kMost = 1 << 20;  // of all branches of a body, which may share a long list
  const text::Declaration* list =
      o.kind == Operand::Kind::kName ? symbols_.find_targets(o.name, scope_) : nullptr;
  if (!list) fail(o.span, "expected a label before .branchtargets");
  targets_ += list->initial.size();
  if (targets_ > kMost) fail(o.span, "indirect branches have too many targets");
  out_.push_back(static_cast<uint32_t>(list->initial.size()));
  for (const Operand& target : list->initial) label(target);
}

// A value of 128 bits is two operands.
void OperandLowering::push(const Operand& o, const isa::OperandSpec& spec) {
  if (bits(spec.type) == 128 && o.kind != Operand::Kind::kName) fail(o.span, "expected a register");
  out_.push_back(value(o, spec));
  if (bits(spec.type) == 128) out_.push_back(out_.back() + 2 * kRegisterLine);
}

// A register, and the numbers of its parts after a dot, the first part in the lowest four bits. A
// destination names the parts that it takes, from high to low; a source one for each, of the eight
// bytes or four halves that both sources have.
void OperandLowering::push_parts(const Operand& o, const isa::OperandSpec& spec) {
  const size_t dot = o.kind == Operand::Kind::kName ? o.name.rfind('.') : std::string_view::npos;
  const auto parts = static_cast<size_t>(spec.parts);
  const bool writes = spec.role == isa::Role::kWrite;
  if (dot == std::string_view::npos) {
    out_.push_back(value(o, spec));
    out_.push_back(kAllParts);
    return;
  }
  Operand whole = o;
  whole.name = o.name.substr(0, dot);
  out_.push_back(value(whole, spec));
  const std::string_view picked = o.name.substr(dot + 1);
  const std::string_view digits = picked.substr(1);
  bool good = picked[0] == (parts == 2 ? 'h' : 'b') &&
              (writes ? !digits.empty() && digits.size() <= parts : digits.size() == parts);
  uint32_t numbers = 0;
  for (size_t i = 0; good && i < digits.size(); ++i) {
    const auto number = static_cast<uint32_t>(digits[i] - '0');
    good = number < parts * (writes ? 1 : 2) && (!writes || i == 0 || digits[i] < digits[i - 1]);
    numbers = writes ? numbers | 1u << number : numbers << 4 | number;
  }
  if (!good) {
    fail(o.span,
         quote(picked) + (writes ? " names no parts of a destination, as .h10 and .b3210 do"
                                 : " picks no parts of the sources, as .h10 and .b7654 do"));
  }
  out_.push_back(numbers);
}

Ref OperandLowering::value(const Operand& o, const isa::OperandSpec& spec) {
  if (spec.sink_only && o.kind != Operand::Kind::kSink) {
    fail(o.span, "the destination must be '_' here: another block's barrier gives no state");
  }
  switch (o.kind) {
    case Operand::Kind::kName:
      return name_value(o, spec);
    case Operand::Kind::kSink:
      if (spec.role != isa::Role::kWrite) fail(o.span, "'_' can only be a destination");
      return symbols_.sink(spec.type);
    case Operand::Kind::kInteger:
    case Operand::Kind::kFloat:
      if (spec.register_only) fail(o.span, "expected a register");
      return immediate(o, spec);
    case Operand::Kind::kVector:
      fail(o.span, "a vector cannot stand here");
    case Operand::Kind::kAddress:
      fail(o.span, "an address cannot stand here");
  }
  return kNoRef;
}

Ref OperandLowering::immediate(const Operand& o, const isa::OperandSpec& spec) {
  const TypeKind k = kind(spec.type);
  if (o.kind == Operand::Kind::kInteger) {
    if (k == TypeKind::kFloat) {
      fail(o.span, "a " + dotted(spec.type) + " operand needs a floating-point constant");
    }
    return symbols_.constant(o.integer, spec.type);
  }
  if (k != TypeKind::kFloat && k != TypeKind::kBits) {
    fail(o.span, "a " + dotted(spec.type) + " operand cannot be a floating-point constant");
  }
  if (bits(spec.type) == 32) {
    const uint64_t single =
        o.single ? o.integer
                 : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(o.integer)));
    return symbols_.constant(single, spec.type);
  }
  if (bits(spec.type) == 64) {
    const uint64_t wide = o.single ? std::bit_cast<uint64_t>(static_cast<double>(
                                         std::bit_cast<float>(static_cast<uint32_t>(o.integer))))
                                   : o.integer;
    return symbols_.constant(wide, spec.type);
  }
  fail(o.span, "a " + dotted(spec.type) + " operand cannot be a floating-point constant");
}

Ref OperandLowering::name_value(const Operand& o, const isa::OperandSpec& spec) {
  if (o.element < 0 && symbols_.has_vectors() && symbols_.vector_of(o.name, scope_) != 0) {
    fail(o.span, quote(o.name) + " is a vector register; one of its elements, as in " +
                     quote(std::string(o.name) + ".x") + ", is needed here");
  }
  if (auto reg = symbols_.find_register(o.name, scope_, o.element)) {
    if (!fits(spec.type, reg->type, spec.relaxed)) {
      fail(o.span, quote(o.name) + " is a " + dotted(reg->type) + " register; a " +
                       dotted(spec.type) + " operand is needed");
    }
    return reg->ref | (o.negated ? kRefNegate : 0);
  }
  if (spec.role != isa::Role::kRead) {
    if (isa::find_special(o.name)) fail(o.span, quote(o.name) + " cannot be written");
    fail(o.span, "register " + quote(o.name) + " is not declared");
  }
  if (o.name.starts_with("%reserved_smem_offset_")) return reserved_shared(o, spec);
  if (const isa::SpecialRow* row = isa::find_special(o.name)) {
    if (!fits(spec.type, row->type, false) || spec.register_only) {
      fail(o.span, quote(o.name) + " cannot stand here");
    }
    if (row->moving) moving.push_back(row->id);
    return symbols_.special(*row);
  }
  if (auto symbol = symbols_.find_variable(o.name, scope_)) {
    if (symbol->space == kEntrySpace) {
      fail(o.span, quote(o.name) + " is a kernel; kernels that launch kernels are not modelled");
    }
    const int width = bits(spec.type);
    const bool whole = kind(spec.type) != TypeKind::kFloat && (width == 64 || width == 32);
    if (!whole || spec.register_only || (width == 32 && symbol->space == "global")) {
      fail(o.span,
           "the address of " + quote(o.name) + " does not fit a " + dotted(spec.type) + " operand");
    }
    if (symbol->space == "shared") return symbols_.shared_address(symbol->address, width == 64);
    if (symbol->slot != kNoRef && width == 64) return symbol->slot;
    if (symbol->slot != kNoRef || symbol->space == "frame") {
      fail(o.span, "the address of " + quote(o.name) + " is known only while the function runs");
    }
    return symbols_.constant(symbol->address, spec.type);
  }
  fail(o.span, quote(o.name) + " is not declared");
}

// A part of shared memory that the system keeps for itself, and hands to cooperative groups.
Ref OperandLowering::reserved_shared(const Operand& o, const isa::OperandSpec& spec) {
  struct Place {
    std::string_view name;
    uint32_t offset;
  };
  constexpr uint32_t kBytes = 1024;
  constexpr Place kPlaces[] = {{"begin", 0}, {"end", kBytes}, {"cap", kBytes}, {"0", 0}, {"1", 64}};
  constexpr std::string_view kStem = "%reserved_smem_offset_";
  if (bits(spec.type) != 32) fail(o.span, quote(o.name) + " has 32 bits");
  for (const Place& p : kPlaces) {
    if (o.name.substr(kStem.size()) != p.name) continue;
    if (p.name == "cap") return symbols_.constant(kBytes, spec.type);
    const auto symbol = symbols_.find_variable(kStem.substr(0, kStem.size() - 1), scope_);
    return symbols_.shared_address(symbol->address + p.offset, false);
  }
  fail(o.span, quote(o.name) + " is not declared");
}

void OperandLowering::check_space(const Operand& o, const Symbol& symbol,
                                  const isa::Spelling& spelling) {
  const isa::Traits& traits = spelling.traits();
  const bool by_lane = spelling.row->lanes == isa::Lanes::kAny;
  if (!by_lane || !(traits.load || traits.store || traits.atomic)) return;
  const std::string_view space = name(spelling.space);
  // A global address is its own generic address.
  if (symbol.space == "frame" && space == "param") {
    frame = true;
    return;
  }
  if (space == symbol.space || (space == "generic" && symbol.space == "global")) return;
  fail(o.items[0].span, quote(o.items[0].name) + " is in ." + std::string(symbol.space) +
                            " space, the access in " + std::string(space) + " space");
}

void OperandLowering::address(const Operand& o, const isa::OperandSpec& spec,
                              const isa::Spelling& spelling) {
  if (o.kind != Operand::Kind::kAddress) fail(o.span, "expected an address in [ ]");
  const Operand& base = o.items[0];
  Ref ref = kNoRef;
  if (spec.tensor) {
    isa::OperandSpec of_cells;
    of_cells.type = Type::kU32;
    of_cells.register_only = true;
    ref = value(base, of_cells);
  } else if (base.kind == Operand::Kind::kInteger) {
    ref = symbols_.constant(base.integer, Type::kB64);
  } else if (base.kind != Operand::Kind::kName) {
    fail(base.span, "expected a register or a variable");
  } else if (auto reg = symbols_.find_register(base.name, scope_)) {
    if (bits(reg->type) != 32 && bits(reg->type) != 64) {
      fail(base.span, "an address is a 32-bit or 64-bit register");
    }
    ref = reg->ref;
    // LLVM takes the address of a parameter first. A function's lie in its frame.
    frame |= symbols_.in_function() && spelling.space == Space::kParam;
  } else if (auto symbol = symbols_.find_variable(base.name, scope_)) {
    check_space(o, *symbol, spelling);
    ref = symbol->slot != kNoRef      ? symbol->slot
          : symbol->space == "shared" ? symbols_.shared_address(symbol->address, false)
                                      : symbols_.constant(symbol->address, Type::kB64);
  } else {
    fail(base.span, quote(base.name) + " is not declared");
  }
  const auto offset = static_cast<int64_t>(o.integer);
  if (offset < INT32_MIN || offset > INT32_MAX) fail(o.span, "the offset does not fit 32 bits");
  out_.push_back(ref);
  out_.push_back(static_cast<uint32_t>(offset));

  if (static_cast<int>(o.items.size()) - 1 != spec.coordinates) {
    fail(o.span, spec.coordinates == 0
                     ? "this address takes no coordinates"
                     : "this address takes " + std::to_string(spec.coordinates) + " coordinates");
  }
  isa::OperandSpec coordinate;
  coordinate.type = Type::kB32;
  for (size_t i = 1; i < o.items.size(); ++i) out_.push_back(value(o.items[i], coordinate));
}

std::vector<uint32_t> OperandLowering::lower_pack(const text::Statement& s, Type whole) {
  out_.clear();
  label_positions.clear();
  moving.clear();
  scope_ = s.scope;
  if (s.operands.size() != 2) fail(s.opcode_span, "'mov' takes 2 operands");
  for (size_t i = 0; i < 2; ++i) {
    const Operand& o = s.operands[i];
    isa::OperandSpec spec;
    spec.role = i == 0 ? isa::Role::kWrite : isa::Role::kRead;
    spec.register_only = true;
    if (o.negated || !o.second.empty()) fail(o.span, "expected a register or a vector");
    if (o.kind != Operand::Kind::kVector) {
      spec.type = whole;
      spec.register_only = i == 0;
      push(o, spec);
      continue;
    }
    const int count = static_cast<int>(o.items.size());
    if (count != 2 && count != 4) fail(o.span, "expected 2 or 4 elements");
    switch (bits(whole) / count) {
      case 8:
        spec.type = Type::kB8;
        break;
      case 16:
        spec.type = Type::kB16;
        break;
      case 32:
        spec.type = Type::kB32;
        break;
      case 64:
        spec.type = Type::kB64;
        break;
      default:
        fail(o.span, "elements of this width cannot be packed");
    }
    // Constants may be packed.
    spec.register_only = i == 0;
    for (const Operand& item : o.items) out_.push_back(value(item, spec));
  }
  return out_;
}

}  // namespace ptxvm
