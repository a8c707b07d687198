// SPDX-License-Identifier: MIT
#include "lower/symbols.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ptxvm {
namespace {

constexpr uint32_t kLine = 128;            // 32 lanes of 4 bytes
constexpr uint32_t kPredicateStride = 16;  // keeps the flag bits of a Ref free
constexpr uint32_t kMostPassed = 4096;
constexpr uint64_t kMostParameters = 32764;
constexpr uint64_t kMostLocal = 512 << 10;
// More than any card has: what does not fit on the named one, the launch refuses.
constexpr uint64_t kMostShared = 16 << 20;

// Where a variable of this size goes behind `used` bytes; 0 and an error where it has no room.
uint32_t place_behind(uint32_t& used, const text::Declaration& d, uint64_t most, const char* where,
                      text::Errors& errors) {
  const uint64_t element = std::max(element_bytes(d), 1u);
  const uint64_t align = std::max<uint64_t>(d.align, element);
  const uint64_t at = (used + align - 1) / align * align;
  const uint64_t end = at + element * d.count;
  if (end > most) {
    errors.add(d.span, "with '" + std::string(d.name) + "' there are " + std::to_string(end) +
                           " bytes of " + where + "; at most " + std::to_string(most) +
                           " are possible");
    return 0;
  }
  used = static_cast<uint32_t>(end);
  return static_cast<uint32_t>(at);
}

uint32_t bytes_of(const text::Declaration& d) {
  return std::max(element_bytes(d), 1u) * d.count;
}

}  // namespace

uint32_t element_bytes(const text::Declaration& d) {
  return static_cast<uint32_t>(bits(d.type) / 8 * d.vector);
}

uint32_t align_up(uint32_t value, uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

Symbols::Symbols(const text::Entry& entry, const ProgramSymbols& module, Program& program,
                 Function* function, text::Errors& errors)
    : entry_(entry), module_(module), program_(program), function_(function), errors_(errors) {
  scopes_.resize(entry.scopes.size());
  uint32_t offset = 0;
  for (const text::Declaration& d : entry.parameters) {
    if (function_) {
      function_->parameters.push_back(declare_passed(0, d));
      continue;
    }
    Parameter p;
    p.name = std::string(d.name);
    p.type = std::string(name(d.type));
    p.align = std::max(d.align, std::max(element_bytes(d), 1u));
    p.offset = place_behind(offset, d, kMostParameters, "parameters", errors_);
    p.size = offset - std::min(offset, p.offset);
    scopes_[0].variables[d.name] = {d.name, "param", p.offset};
    program.parameters.push_back(std::move(p));
  }
  if (!function_) program.parameter_bytes = offset;
  for (const text::Declaration& d : entry.returns) {
    function_->returns.push_back(declare_passed(0, d));
  }
  for (uint32_t s = 0; s < entry.scopes.size(); ++s) {
    for (const text::Declaration& d : entry.scopes[s].declarations) declare(s, d);
  }
}

void Symbols::declare(uint32_t scope, const text::Declaration& d) {
  ScopeNames& names = scopes_[scope];
  bool fresh = true;
  const bool variable =
      d.kind == text::Declaration::Kind::kVariable || d.kind == text::Declaration::Kind::kParameter;
  has_vectors_ |= !variable && d.vector > 1;
  switch (d.kind) {
    case text::Declaration::Kind::kRegisterRange:
      fresh = names.ranges.emplace(d.name, &d).second;
      break;
    case text::Declaration::Kind::kVariable:
      declare_variable(scope, d);
      return;
    case text::Declaration::Kind::kParameter:
      declare_passed(scope, d);
      return;
    default:
      fresh = names.names.emplace(d.name, &d).second;
      break;
  }
  if (!fresh) {
    errors_.add(d.span, "'" + std::string(d.name) + "' is declared twice");
  }
}

Symbol place_shared(const text::Declaration& d, Program& program, text::Errors& errors) {
  const uint32_t at = place_behind(program.shared_bytes, d, kMostShared, "shared memory", errors);
  program.shared_variables.push_back({std::string(d.name), at, bytes_of(d)});
  return {d.name, "shared", at};
}

Symbol Symbols::place(const text::Declaration& d, std::string_view space) {
  const uint32_t bytes = bytes_of(d);
  uint32_t& used = function_ ? function_->frame_bytes : program_.local_bytes;
  const uint32_t at = place_behind(used, d, kMostLocal, "local memory of a thread", errors_);
  Symbol symbol{d.name, space, at};
  symbol.bytes = bytes;
  if (function_) {
    symbol.slot = allocate(Type::kU64);
    function_->slots.push_back({symbol.slot, at});
  } else if (space == "local") {
    program_.local_variables.push_back({std::string(d.name), at, bytes});
  }
  return symbol;
}

FramePart Symbols::declare_passed(uint32_t scope, const text::Declaration& d) {
  if (uint64_t{std::max(element_bytes(d), 1u)} * d.count > kMostPassed) {
    errors_.add(d.span, "a call passes at most " + std::to_string(kMostPassed) + " bytes at once");
    return {};
  }
  const Symbol symbol = place(d, "frame");
  if (!scopes_[scope].variables.emplace(d.name, symbol).second) {
    errors_.add(d.span, "'" + std::string(d.name) + "' is declared twice");
  }
  return {static_cast<uint32_t>(symbol.address), symbol.bytes};
}

void Symbols::declare_variable(uint32_t scope, const text::Declaration& d) {
  const Symbol symbol =
      d.space == "shared" ? place_shared(d, program_, errors_) : place(d, "local");
  if (!scopes_[scope].variables.emplace(d.name, symbol).second) {
    errors_.add(d.span, "'" + std::string(d.name) + "' is declared twice");
  }
}

Symbols::Declared Symbols::find_declared(std::string_view name, uint32_t scope) const {
  // A range %r<9> declares %r0 to %r8.
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  for (int s = static_cast<int>(scope); s >= 0; s = entry_.scopes[static_cast<size_t>(s)].parent) {
    const ScopeNames& names = scopes_[static_cast<size_t>(s)];
    if (auto it = names.names.find(name);
        it != names.names.end() && it->second->kind == text::Declaration::Kind::kRegister) {
      return {it->second, 0};
    }
    if (digits == name.size() || (name[digits] == '0' && name.size() - digits > 1)) continue;
    if (auto range = names.ranges.find(name.substr(0, digits)); range != names.ranges.end()) {
      uint32_t index = 0;
      auto [end, problem] = std::from_chars(name.data() + digits, name.data() + name.size(), index);
      if (problem == std::errc() && index < range->second->count) return {range->second, index};
    }
  }
  return {};
}

std::optional<RegisterName> Symbols::find_register(std::string_view name, uint32_t scope,
                                                   int element) {
  const Declared found = find_declared(name, scope);
  if (!found.declaration || (found.declaration->vector > 1) != (element >= 0)) return std::nullopt;
  const Type type = found.declaration->type;
  const auto place = element < 0 ? found.index
                                 : found.index * static_cast<uint32_t>(found.declaration->vector) +
                                       static_cast<uint32_t>(element);
  auto [slot, fresh] = slots_.try_emplace({found.declaration, place}, kNoRef);
  if (fresh) slot->second = allocate(type);
  return RegisterName{type, slot->second};
}

std::unordered_map<Ref, std::string> Symbols::register_names() const {
  std::unordered_map<Ref, std::string> names;
  for (const auto& [place, ref] : slots_) {
    const text::Declaration& d = *place.first;
    const auto elements = static_cast<uint32_t>(std::max(d.vector, 1));
    std::string name(d.name);
    if (d.kind == text::Declaration::Kind::kRegisterRange)
      name += std::to_string(place.second / elements);
    if (elements > 1) name += {'.', "xyzw"[place.second % elements]};
    names.emplace(ref & ~kRefFlags, std::move(name));
  }
  return names;
}

int Symbols::vector_of(std::string_view name, uint32_t scope) const {
  const Declared found = find_declared(name, scope);
  return found.declaration && found.declaration->vector > 1 ? found.declaration->vector : 0;
}

std::optional<Symbol> Symbols::find_variable(std::string_view name, uint32_t scope) {
  for (int s = static_cast<int>(scope); s >= 0; s = entry_.scopes[static_cast<size_t>(s)].parent) {
    const auto& variables = scopes_[static_cast<size_t>(s)].variables;
    if (auto it = variables.find(name); it != variables.end()) return it->second;
  }
  const Symbol* known = module_.find(name);
  if (!known) return std::nullopt;
  Symbol symbol = *known;
  if (symbol.dynamic) {
    program_.dynamic_shared = true;
    symbol.address = program_.dynamic_offset;
  }
  return symbol;
}

const text::Declaration* Symbols::find_targets(std::string_view name, uint32_t scope) const {
  for (int s = static_cast<int>(scope); s >= 0; s = entry_.scopes[static_cast<size_t>(s)].parent) {
    const auto& names = scopes_[static_cast<size_t>(s)].names;
    auto it = names.find(name);
    if (it != names.end() && it->second->kind == text::Declaration::Kind::kTargets) {
      return it->second;
    }
  }
  return nullptr;
}

std::optional<uint32_t> Symbols::find_label(std::string_view name, uint32_t scope) const {
  for (int s = static_cast<int>(scope); s >= 0; s = entry_.scopes[static_cast<size_t>(s)].parent) {
    const auto& names = scopes_[static_cast<size_t>(s)].names;
    auto it = names.find(name);
    if (it != names.end() && it->second->kind == text::Declaration::Kind::kLabel) {
      return it->second->statement;
    }
  }
  return std::nullopt;
}

Ref Symbols::allocate(Type type) {
  ++program_.register_slots;
  if (type == Type::kPred) {
    if (predicates_in_line_ == kLine / kPredicateStride) {
      predicate_line_ = program_.register_bytes;
      program_.register_bytes += kLine;
      predicates_in_line_ = 0;
    }
    const Ref ref = predicate_line_ + kPredicateStride * predicates_in_line_++;
    if (function_) function_->registers.push_back(ref | kRefPredicate);
    return ref;
  }
  if (bits(type) == 128) {
    const Ref low = allocate(Type::kB64);
    allocate(Type::kB64);
    --program_.register_slots;
    return low;
  }
  const bool wide = bits(type) == 64;
  const Ref ref = program_.register_bytes | (wide ? kRefWide : 0);
  program_.register_bytes += wide ? 2 * kLine : kLine;
  if (function_) function_->registers.push_back(ref);
  return ref;
}

uint32_t Symbols::pool_room(uint32_t bytes) {
  const uint32_t at = static_cast<uint32_t>(program_.pool.size());
  program_.pool.resize(at + std::max(bytes, kLine));
  return at;
}

Ref Symbols::special(const isa::SpecialRow& row) {
  auto [it, fresh] = specials_.try_emplace(row.id, kNoRef);
  if (fresh) {
    it->second = allocate(row.type);
    program_.specials.push_back({&row, it->second & ~kRefFlags});
  }
  return it->second;
}

Ref Symbols::constant(uint64_t value, Type type) {
  if (type == Type::kPred) {
    auto [it, fresh] = predicates_.try_emplace(value != 0, kNoRef);
    if (fresh) {
      const uint32_t at = pool_room(kLine);
      const uint32_t mask = value != 0 ? 0xffffffffu : 0;
      std::memcpy(&program_.pool[at], &mask, sizeof mask);
      it->second = at | kRefPool;
    }
    return it->second;
  }
  const bool wide = bits(type) == 64;
  if (bits(type) < 32) value &= (uint64_t{1} << bits(type)) - 1;
  if (bits(type) == 32) value &= 0xffffffffu;
  auto [it, fresh] = constants_.try_emplace({value, wide}, kNoRef);
  if (fresh) {
    const uint32_t width = wide ? 8 : 4;
    const uint32_t at = pool_room(32 * width);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      std::memcpy(&program_.pool[at + lane * width], &value, width);
    }
    it->second = at | kRefPool | (wide ? kRefWide : 0);
  }
  return it->second;
}

Ref Symbols::shared_address(uint64_t offset, bool wide) {
  auto [it, fresh] = shared_constants_.try_emplace({offset, wide}, kNoRef);
  if (fresh) {
    const uint32_t width = wide ? 8 : 4;
    const uint32_t at = pool_room(32 * width);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      std::memcpy(&program_.pool[at + lane * width], &offset, width);
    }
    (wide ? program_.shared_patches_wide : program_.shared_patches).push_back(at);
    it->second = at | kRefPool | (wide ? kRefWide : 0);
  }
  return it->second;
}

Ref Symbols::sink(Type type) {
  Ref& ref = sinks_[type == Type::kPred ? 1 : 0];
  if (ref == kNoRef) ref = allocate(type == Type::kPred ? Type::kPred : Type::kB64) & ~kRefFlags;
  return type != Type::kPred && bits(type) == 64 ? ref | kRefWide : ref;
}

}  // namespace ptxvm
