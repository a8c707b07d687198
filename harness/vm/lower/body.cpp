// SPDX-License-Identifier: MIT
#include "lower/body.h"

#include <algorithm>
#include <set>

#include "lower/calls.h"
#include "lower/locations.h"
#include "lower/unset.h"
#include "lower/wgmma.h"
#include "program/registers.h"

namespace ptxvm {
namespace {

constexpr uint32_t kNone = 0xffffffffu;

}  // namespace

BodyLowering::BodyLowering(ProgramContext& context, const text::Entry& body, Function* function)
    : context_(context),
      body_(body),
      program_(context.program),
      source_(*context.data.source),
      errors_(context.errors),
      function_(function),
      symbols_(body, context.symbols, context.program, function, context.errors),
      operands_(symbols_, context.errors) {}

void BodyLowering::read() {
  first_ = static_cast<uint32_t>(program_.instructions.size());
  first_location_ = static_cast<int>(program_.locations.size());
  auto chains = inline_chains(context_.module, body_);
  program_.locations.insert(program_.locations.end(), chains.begin(), chains.end());
  lowered_.resize(body_.statements.size());
  for (uint32_t i = 0; i < body_.statements.size(); ++i) {
    const text::Statement& s = body_.statements[i];
    try {
      if (symbols_.has_vectors() && !s.call) {
        statement(i, with_elements(s));
      } else {
        statement(i, s);
      }
    } catch (const BadStatement&) {
    }
  }
}

// Whether vectors, addresses and predicates stand where the spelling has them: tells overloads
// apart.
bool BodyLowering::shapes_fit(const isa::Spelling& spelling, const text::Statement& s) {
  for (size_t i = 0; i < std::min(s.operands.size(), spelling.operands.size()); ++i) {
    const text::Operand& o = s.operands[i];
    const isa::OperandSpec& spec = spelling.operands[i];
    const bool vector = spec.kind == isa::OperandKind::kVector;
    if (vector != (o.kind == text::Operand::Kind::kVector)) return false;
    const bool address = spec.kind == isa::OperandKind::kMemory;
    if (address != (o.kind == text::Operand::Kind::kAddress)) return false;
    if (o.kind != text::Operand::Kind::kName) continue;
    const auto reg = symbols_.find_register(o.name, s.scope, o.element);
    if (reg && (reg->type == Type::kPred) != (spec.type == Type::kPred)) return false;
  }
  return true;
}

isa::Decoded BodyLowering::decode(const text::Statement& s) {
  isa::Decoded d = isa::decode(s.opcode);
  while (d.spelling && d.spelling->overload && !shapes_fit(*d.spelling, s)) {
    d.spelling = d.spelling->overload;
  }
  return d;
}

// The same with elements of vector registers by number, and with all elements of one that stands
// for them: loads, stores and moves may name it whole.
text::Statement BodyLowering::with_elements(const text::Statement& s) const {
  constexpr std::string_view kLetters = "xyzwrgba";
  const auto by_number = [&](text::Operand& o) {
    const size_t dot = o.name.rfind('.');
    if (dot == std::string_view::npos || dot + 2 != o.name.size()) return;
    const size_t letter = kLetters.find(o.name[dot + 1]);
    const int element = letter == std::string_view::npos ? -1 : static_cast<int>(letter % 4);
    const std::string_view name = o.name.substr(0, dot);
    if (element < 0 || element >= symbols_.vector_of(name, s.scope)) return;
    o.name = name;
    o.element = element;
  };
  const isa::Spelling* const spelling = isa::decode(s.opcode).spelling;
  const isa::Traits traits = spelling ? spelling->traits() : isa::Traits{};
  const bool whole = traits.copy || ((traits.load || traits.store) && !traits.fragments);
  text::Statement out;
  out.guard = s.guard;
  out.opcode = s.opcode;
  out.opcode_span = s.opcode_span;
  out.operands = s.operands;
  out.span = s.span;
  out.scope = s.scope;
  out.loc = s.loc;
  for (text::Operand& o : out.operands) {
    if (o.kind == text::Operand::Kind::kVector)
      std::for_each(o.items.begin(), o.items.end(), by_number);
    if (o.kind != text::Operand::Kind::kName) continue;
    by_number(o);
    const int elements =
        whole && o.element < 0 && !o.negated ? symbols_.vector_of(o.name, s.scope) : 0;
    if (elements == 0) continue;
    text::Operand item = o;
    o.kind = text::Operand::Kind::kVector;
    for (item.element = 0; item.element < elements; ++item.element) o.items.push_back(item);
  }
  return out;
}

void BodyLowering::statement(uint32_t index, const text::Statement& s) {
  InstructionInfo info;
  info.opcode = s.opcode;
  info.line = source_.line_of(s.opcode_span.begin);
  info.column = source_.column_of(s.opcode_span.begin);
  info.location = s.loc < 0 ? -1 : first_location_ + s.loc;
  program_.instructions.push_back(info);
  program_.spans.push_back(s.opcode_span);
  program_.spellings.push_back(nullptr);

  const isa::Decoded decoded = decode(s);
  const isa::Spelling* spelling = decoded.spelling;
  if (!spelling || !spelling->runs()) {
    refuse(s, spelling);
    return;
  }
  const isa::Row& row = *spelling->row;
  const ModuleData& data = context_.data;
  if (decoded.sm > data.sm || !row.runs_on(data.sm, data.arch_specific)) {
    const bool specific = row.specific != isa::Specific::kNo;
    errors_.add(s.opcode_span, "'" + std::string(s.opcode) + "' needs sm_" +
                                   std::to_string(decoded.sm) + (specific ? "a" : "") +
                                   "; the module's target is " + data.target);
    return;
  }
  program_.spellings.back() = spelling;
  const isa::Traits& traits = row.traits;
  context_.wgmma |= row.count == CountClass::kWgmma || row.count == CountClass::kWgmmaSync ||
                    row.count == CountClass::kTensorMemory;
  program_.pairs |= spelling->group == 2;
  if (const uint8_t group = spelling->exclusive_group(); group != 0) {
    if (context_.group == 0) context_.group = group;
    if (context_.group != group) {
      errors_.add(s.opcode_span, "'" + std::string(s.opcode) +
                                     "' stands beside tcgen05 instructions of .cta_group::" +
                                     std::to_string(context_.group) +
                                     "; a kernel has those of one group");
      return;
    }
  }
  context_.allocates |= traits.allocates;
  Lowered& out = lowered_[index];
  if (s.guard) out.guard = operands_.guard(*s.guard, s.scope);
  const bool packs = traits.copy && spelling->operands[0].kind != isa::OperandKind::kVector &&
                     std::any_of(s.operands.begin(), s.operands.end(),
                                 [](auto& o) { return o.kind == text::Operand::Kind::kVector; });
  if (s.call) {
    call(s, out);
  } else if (packs) {
    pack(s, *spelling, out);
  } else {
    out.operands = operands_.lower(s, *spelling, decoded.policy, data.sm);
    if (operands_.frame) {
      out.action = Action::kFrameAccess;
      program_.spellings.back() = isa::in_local_memory(*spelling);
    }
  }
  out.labels = operands_.label_positions;
  out.moving = operands_.moving;
  out.branch = traits.branch;
  if (traits.returns && function_) out.action = Action::kReturn;
  out.ends = !s.guard && traits.ends;
  program_.instructions.back().count_class = spelling->count;
}

void BodyLowering::pack(const text::Statement& s, const isa::Spelling& spelling, Lowered& out) {
  if (kind(spelling.operands[0].type) != TypeKind::kBits) {
    errors_.add(s.opcode_span, "packing needs a .b type");
    throw BadStatement{};
  }
  out.operands = operands_.lower_pack(s, spelling.operands[0].type);
  const size_t destinations = s.operands[0].items.size(), sources = s.operands[1].items.size();
  if (destinations != 0 && sources != 0 && destinations != sources) {
    errors_.add(s.opcode_span, "the two sides have different shapes");
    throw BadStatement{};
  }
  if (bits(spelling.operands[0].type) == 128) return;  // halves are copied, whatever holds them
  const size_t elements = std::max(destinations, sources);
  out.action = Action::kPack;
  const auto all = static_cast<size_t>(bits(spelling.operands[0].type));
  out.aux = PackShape{static_cast<uint8_t>(all / elements), static_cast<uint8_t>(destinations),
                      static_cast<uint8_t>(sources)};
}

CallSite::Passed BodyLowering::passed(const text::Operand& o, uint32_t scope) {
  const auto symbol =
      o.kind == text::Operand::Kind::kName ? symbols_.find_variable(o.name, scope) : std::nullopt;
  if (!symbol || symbol->space != "frame") {
    errors_.add(o.span, "a call passes .param variables of its own body");
    throw BadStatement{};
  }
  return {symbol->slot != kNoRef ? symbol->slot : symbols_.constant(symbol->address, Type::kU64),
          symbol->bytes};
}

// What is passed must be what the function takes.
void BodyLowering::check_shape(const text::Statement& s, const CallSite& site) {
  const Function& f = program_.functions[site.function];
  if (site.fits(f)) return;
  errors_.add(s.call->target.span, "the call passes other parameters than '" + f.name + "' has");
  throw BadStatement{};
}

void BodyLowering::call(const text::Statement& s, Lowered& out) {
  operands_.label_positions.clear();
  operands_.moving.clear();
  const text::Call& c = *s.call;
  const std::string name(c.target.name);
  CallSite site;
  for (const text::Operand& o : c.arguments) site.arguments.push_back(passed(o, s.scope));
  for (const text::Operand& o : c.returns) site.returns.push_back(passed(o, s.scope));
  const auto known = context_.functions.find(c.target.name);
  if (known != context_.functions.end()) {
    site.function = known->second;
    check_shape(s, site);
  } else if (const auto reg = symbols_.find_register(c.target.name, s.scope)) {
    if (bits(reg->type) != 64) {
      errors_.add(c.target.span, "a pointer to a function is a 64-bit register");
      throw BadStatement{};
    }
    site.target = reg->ref;
  } else if (context_.symbols.find(c.target.name)) {
    site.system = provided(c.target.name);
    if (site.system == System::kNone) {
      return refuse(s, "'" + name + "' has no body in this module",
                    "of functions from elsewhere the machine provides vprintf, malloc, free and "
                    "__assertfail");
    }
    program_.prints |= site.system == System::kPrintf || site.system == System::kAssert;
    program_.allocates |= site.system == System::kMalloc;
  } else {
    errors_.add(c.target.span, "there is no function '" + name + "'");
    throw BadStatement{};
  }
  out.action = Action::kCall;
  out.calls = true;
  out.operands = {static_cast<uint32_t>(program_.calls.size())};
  program_.calls.push_back(std::move(site));
}

void BodyLowering::refuse(const text::Statement& s, const isa::Spelling* spelling) {
  const isa::Row* row = spelling ? spelling->row : isa::find_family(s.opcode);
  const std::string quoted = "'" + std::string(s.opcode) + "'";
  if (row) {
    refuse(s, quoted + " is valid PTX, but this machine does not run it", std::string(row->reason));
  } else if (Diagnostic* d = errors_.add(s.opcode_span, "unknown instruction " + quoted)) {
    constexpr uint32_t kExplained = 1000;
    if (context_.explained++ < kExplained) d->notes.push_back(isa::explain_unknown(s.opcode));
  }
}

void BodyLowering::refuse(const text::Statement& s, std::string what, std::string reason) {
  Diagnostic* d = context_.unsupported.add(s.opcode_span, std::move(what));
  if (!d) return;
  d->notes.push_back(std::move(reason));
  if (s.loc >= 0) {
    const auto at = static_cast<size_t>(first_location_) + static_cast<size_t>(s.loc);
    d->notes.push_back(describe_chain(program_.locations[at]));
  }
}

// Blocks in the order of the text, with one more at the end for code that runs off it.
void BodyLowering::find_blocks() {
  const auto count = static_cast<uint32_t>(lowered_.size());
  std::set<uint32_t> leaders{0, count};
  for (uint32_t i = 0; i < count; ++i) {
    for (size_t position : lowered_[i].labels) leaders.insert(lowered_[i].operands[position]);
    if (lowered_[i].branch || lowered_[i].ends || lowered_[i].calls) leaders.insert(i + 1);
  }
  begins_.assign(leaders.begin(), leaders.end());
  block_of_.assign(count + 1, 0);
  for (uint32_t b = 0; b < begins_.size(); ++b) {
    const uint32_t end = b + 1 < begins_.size() ? begins_[b + 1] : count + 1;
    for (uint32_t i = begins_[b]; i < end; ++i) block_of_[i] = b;
  }
  graph_.assign(begins_.size(), {});
  for (uint32_t b = 0; b + 1 < begins_.size(); ++b) {
    const uint32_t last = begins_[b + 1] - 1;
    if (begins_[b + 1] == begins_[b]) continue;
    const Lowered& l = lowered_[last];
    for (size_t label : l.labels) graph_[b].push_back(block_of_[l.operands[label]]);
    if (!l.ends) graph_[b].push_back(b + 1);
  }
}

Op BodyLowering::operation(uint32_t index) const {
  Op op;
  op.guard = lowered_[index].guard;
  op.instruction = first_ + index;
  op.list = lowered_[index].operands.data();
  op.aux = lowered_[index].aux;
  return op;
}

void BodyLowering::find_unset() {
  std::vector<BlockReads> blocks(begins_.size());
  for (uint32_t b = 0; b + 1 < begins_.size(); ++b) {
    std::unordered_set<Ref>& sets = blocks[b].sets;
    const auto read = [&](Ref place) {
      if (!sets.contains(place)) blocks[b].reads.push_back(place);
    };
    for (uint32_t i = begins_[b]; i < begins_[b + 1]; ++i) {
      const Op op = operation(i);
      const Action action = lowered_[i].action;
      if (op.guard < kNoRef) read(op.guard & ~kRefFlags);
      for_registers(program_, op, action, [&](Ref place, bool written) {
        if (!written) read(place);
      });
      if (op.guard < kNoRef) continue;  // it may leave them as they are
      for_registers(program_, op, action, [&](Ref place, bool written) {
        if (written) sets.insert(place);
      });
    }
  }
  const auto names = symbols_.register_names();
  const auto function = function_ ? static_cast<uint32_t>(function_ - program_.functions.data())
                                  : UnsetRegister::kEntry;
  for (const Ref place : read_before_set(graph_, blocks)) {
    const auto name = names.find(place);
    // The machine sets the others.
    if (name != names.end()) program_.unset.push_back({place, name->second, function});
  }
}

// A wgmma checks its own registers when it is issued, so its part of Program::touches is empty.
void BodyLowering::find_touches() {
  std::vector<std::vector<uint32_t>> touches(lowered_.size());
  for (uint32_t i = 0; i < lowered_.size(); ++i) {
    const Lowered& l = lowered_[i];
    const isa::Spelling* spelling = program_.spellings[first_ + i];
    const bool mma = spelling->count == CountClass::kWgmma;
    if (mma) {  // its descriptors are not in use behind it
      const auto sums = static_cast<size_t>(spelling->operands[0].count);
      const bool vector = spelling->operands[1].kind == isa::OperandKind::kVector;
      for (size_t k = 0; k < sums + (vector ? 4 : 0); ++k) {
        append_touch(l.operands[k], k < sums, touches[i]);
      }
    } else {
      for_register_operands(program_, operation(i), l.action,
                            [&](Ref ref, bool written) { append_touch(ref, written, touches[i]); });
    }
    program_.touch_begin.push_back(static_cast<uint32_t>(program_.touches.size()));
    if (!mma) {
      program_.touches.insert(program_.touches.end(), touches[i].begin(), touches[i].end());
    }
  }
  const std::vector<bool> unfenced = find_unfenced(program_, first_, touches, graph_, begins_);
  program_.unfenced.insert(program_.unfenced.end(), unfenced.begin(), unfenced.end());
}

void BodyLowering::emit() {
  const std::vector<uint32_t> order = order_blocks(graph_);
  std::vector<uint32_t> position(begins_.size(), kNone);  // block -> index of its first operation
  (function_ ? function_->first : program_.entry) = static_cast<uint32_t>(program_.plain.size());
  for (size_t i = 0; i < lowered_.size(); ++i) {
    program_.instructions[first_ + i].unreachable = true;
  }
  for (size_t n = 0; n < order.size(); ++n) {
    emit_block(order[n], n + 1 < order.size() ? order[n + 1] : kNone, position);
  }
  for (const Patch& p : patches_) {
    program_.operands[context_.list_begin[p.op] + p.operand] = position[p.block];
  }
}

void BodyLowering::emit_block(uint32_t b, uint32_t next, std::vector<uint32_t>& position) {
  const bool end_block = b + 1 == begins_.size();
  const uint32_t begin = begins_[b];
  const uint32_t end = end_block ? begin : begins_[b + 1];
  const uint32_t first = first_ + std::min(begin, static_cast<uint32_t>(lowered_.size()) - 1);
  const auto number = static_cast<uint32_t>(program_.blocks.size());
  position[b] = static_cast<uint32_t>(program_.plain.size());
  program_.block_first.push_back(first);
  program_.blocks.emplace_back();

  add({Action::kEnterBlock, kAddedOp, first}, {number, end - begin});
  for (uint32_t i = begin; i < end; ++i) {
    const Lowered& l = lowered_[i];
    const uint32_t instruction = first_ + i;
    program_.blocks.back().push_back(instruction);
    program_.instructions[instruction].block = number;
    program_.instructions[instruction].unreachable = false;
    for (isa::Special special : l.moving) {
      const Ref slot = symbols_.special(isa::row_of(special));
      add({Action::kRefresh, kAddedOp, instruction, special}, {slot, i - begin});
    }
    for (size_t label : l.labels) {
      patches_.push_back({program_.plain.size(), label, block_of_[l.operands[label]]});
    }
    add({l.action, l.guard, instruction, l.aux}, l.operands);
  }
  if (end_block) {
    add({function_ ? Action::kReturn : Action::kExit, kAddedOp, first}, {});
  } else if (!lowered_[end - 1].ends && next != b + 1) {
    patches_.push_back({program_.plain.size(), 0, b + 1});
    add({Action::kJump, kAddedOp, first_ + end - 1}, {0});
  }
}

void BodyLowering::add(const Added& added, const std::vector<uint32_t>& operands) {
  Op op;
  op.guard = added.guard;
  op.instruction = added.instruction;
  op.aux = added.aux;
  program_.actions.push_back(added.action);
  program_.plain.push_back(op);
  program_.observed.push_back(op);
  context_.list_begin.push_back(program_.operands.size());
  program_.operands.insert(program_.operands.end(), operands.begin(), operands.end());
}

}  // namespace ptxvm
