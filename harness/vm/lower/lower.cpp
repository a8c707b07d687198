// SPDX-License-Identifier: MIT
#include "lower/lower.h"

#include <algorithm>
#include <set>

#include "lower/cfg.h"
#include "lower/operands.h"
#include "lower/wgmma.h"

namespace ptxvm {
namespace {

constexpr uint32_t kNone = 0xffffffffu;

// What a statement became, before blocks are laid out.
struct Lowered {
  Action action = Action::kInstruction;
  uint64_t aux = 0;
  Ref guard = kNoRef;
  std::vector<uint32_t> operands;
  std::vector<size_t> labels;
  std::vector<isa::Special> moving;
  size_t packed = 0;                  // mov with a vector: elements that it writes
  bool branch = false, ends = false;  // jumps; never goes on to the next statement
};

void collect_names(const std::vector<text::Operand>& operands, std::set<std::string_view>& names) {
  for (const text::Operand& o : operands) {
    if (o.kind == text::Operand::Kind::kName) names.insert(o.name);
    collect_names(o.items, names);
  }
}

// Static shared variables that several kernels name stand at module level; each kernel has only
// those that it uses.
std::vector<const text::Declaration*> used_shared(const text::ModuleText& module,
                                                  const text::Entry& entry) {
  std::vector<const text::Declaration*> out;
  std::set<std::string_view> names;
  for (const text::Declaration& d : module.variables) {
    if (d.space != "shared" || d.external) continue;
    if (names.empty()) {
      for (const text::Statement& s : entry.statements) collect_names(s.operands, names);
    }
    if (names.contains(d.name)) out.push_back(&d);
  }
  return out;
}

uint32_t dynamic_alignment(const text::ModuleText& module) {
  uint32_t align = 16;
  for (const text::Declaration& d : module.variables) {
    if (d.space == "shared" && d.external) align = std::max(align, d.align);
  }
  return align;
}

// Whether vectors stand where the spelling has them: tells overloads apart.
bool shapes_fit(const isa::Spelling& spelling, const text::Statement& s) {
  for (size_t i = 0; i < std::min(s.operands.size(), spelling.operands.size()); ++i) {
    const bool vector = spelling.operands[i].kind == isa::OperandKind::kVector;
    if (vector != (s.operands[i].kind == text::Operand::Kind::kVector)) return false;
  }
  return true;
}

class EntryLowering {
 public:
  EntryLowering(const text::ModuleText& module, const text::Entry& entry,
                const ModuleSymbols& symbols, const ModuleData& data, Program& program,
                text::Errors& errors)
      : entry_(entry),
        data_(data),
        program_(program),
        source_(*data.source),
        errors_(errors),
        unsupported_(source_, "instruction", " that this machine does not run"),
        symbols_(entry, symbols, used_shared(module, entry), dynamic_alignment(module), program,
                 errors),
        operands_(symbols_, errors) {
    program.name = std::string(entry.name);
    program.source = &source_;
    program.max_threads = entry.max_threads;
    program.min_blocks = entry.min_blocks;
    program.required_threads = entry.required_threads;
    program.required_cluster = entry.required_cluster;
    program.locations = inline_chains(module, entry);
  }

  void run() {
    lowered_.resize(entry_.statements.size());
    for (uint32_t i = 0; i < entry_.statements.size(); ++i) {
      try {
        statement(i);
      } catch (const BadStatement&) {
      }
    }
    program_.unsupported = unsupported_.take();
    if (!errors_.empty() || !program_.unsupported.empty()) return;
    find_blocks();
    if (wgmma_) find_touches();
    emit();
  }

 private:
  void statement(uint32_t index) {
    const text::Statement& s = entry_.statements[index];
    InstructionInfo info;
    info.opcode = s.opcode;
    info.line = source_.line_of(s.opcode_span.begin);
    info.column = source_.column_of(s.opcode_span.begin);
    info.location = s.loc;
    program_.instructions.push_back(info);
    program_.spans.push_back(s.opcode_span);
    program_.spellings.push_back(nullptr);

    const isa::Spelling* spelling = isa::find(s.opcode);
    if (spelling && spelling->overload && !shapes_fit(*spelling, s)) spelling = spelling->overload;
    if (!spelling || !spelling->runs()) {
      refuse(s, spelling);
      return;
    }
    const isa::Row& row = *spelling->row;
    if (row.sm > data_.sm || (row.arch_specific && (row.sm != data_.sm || !data_.arch_specific))) {
      errors_.add(s.opcode_span, "'" + spelling->text + "' needs sm_" + std::to_string(row.sm) +
                                     (row.arch_specific ? "a" : "") + "; the module's target is " +
                                     data_.target);
      return;
    }
    program_.spellings.back() = spelling;
    wgmma_ |= spelling->tokens[0].text == "wgmma";
    Lowered& out = lowered_[index];
    if (s.guard) out.guard = operands_.guard(*s.guard, s.scope);
    const bool packs = spelling->tokens[0].text == "mov" &&
                       std::any_of(s.operands.begin(), s.operands.end(), [](const auto& o) {
                         return o.kind == text::Operand::Kind::kVector;
                       });
    if (packs) {
      if (kind(spelling->operands[0].type) != TypeKind::kBits) {
        errors_.add(s.opcode_span, "packing needs a .b type");
        return;
      }
      out.operands = operands_.lower_pack(s, spelling->operands[0].type);
      const size_t destinations = s.operands[0].items.size(), sources = s.operands[1].items.size();
      if (destinations != 0 && sources != 0 && destinations != sources) {
        errors_.add(s.opcode_span, "the two sides have different shapes");
        return;
      }
      const size_t elements = std::max(destinations, sources);
      out.packed = std::max<size_t>(1, destinations);
      out.action = Action::kPack;
      out.aux = PackShape{static_cast<uint32_t>(bits(spelling->operands[0].type)) /
                              static_cast<uint32_t>(elements),
                          static_cast<uint32_t>(destinations), static_cast<uint32_t>(sources)}
                    .as_aux();
    } else {
      out.operands = operands_.lower(s, *spelling);
    }
    out.labels = operands_.label_positions;
    out.moving = operands_.moving;
    out.branch = spelling->tokens[0].text == "bra";
    out.ends =
        !s.guard && (out.branch || spelling->tokens[0].text == "exit" ||
                     spelling->tokens[0].text == "ret" || spelling->tokens[0].text == "trap");
    program_.instructions.back().count_class = spelling->count;
  }

  void refuse(const text::Statement& s, const isa::Spelling* spelling) {
    const isa::Row* row = spelling ? spelling->row : isa::find_family(s.opcode);
    const std::string quoted = "'" + std::string(s.opcode) + "'";
    if (!row) {
      if (Diagnostic* d = errors_.add(s.opcode_span, "unknown instruction " + quoted)) {
        d->notes.push_back(isa::explain_unknown(s.opcode));
      }
      return;
    }
    Diagnostic* d =
        unsupported_.add(s.opcode_span, quoted + " is valid PTX, but this machine does not run it");
    if (!d) return;
    d->notes.emplace_back(row->reason);
    if (s.loc >= 0) {
      d->notes.push_back(describe_chain(program_.locations[static_cast<size_t>(s.loc)]));
    }
  }

  // Blocks in the order of the text, with one more at the end for code that runs off it.
  void find_blocks() {
    const auto count = static_cast<uint32_t>(lowered_.size());
    std::set<uint32_t> leaders{0, count};
    for (uint32_t i = 0; i < count; ++i) {
      for (size_t position : lowered_[i].labels) leaders.insert(lowered_[i].operands[position]);
      if (lowered_[i].branch || lowered_[i].ends) leaders.insert(i + 1);
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
      if (l.branch) graph_[b].push_back(block_of_[l.operands[l.labels[0]]]);
      if (!l.ends) graph_[b].push_back(b + 1);
    }
  }

  // Registers by instruction. A wgmma checks its own when it is issued, so its part of
  // Program::touches is empty.
  void find_touches() {
    std::vector<std::vector<uint32_t>> touches(lowered_.size());
    for (size_t i = 0; i < lowered_.size(); ++i) {
      const Lowered& l = lowered_[i];
      const isa::Spelling* spelling = program_.spellings[i];
      const bool mma = spelling->tokens[0].text == "wgmma" && !l.operands.empty() &&
                       spelling->operands[0].kind == isa::OperandKind::kVector;
      if (mma) {
        const auto sums = static_cast<size_t>(spelling->operands[0].count);
        const bool registers = spelling->operands[1].kind == isa::OperandKind::kVector;
        append_touches(nullptr, {l.operands.data(), l.operands.data() + sums + (registers ? 4 : 0)},
                       sums, touches[i]);
      } else {
        append_touches(l.packed != 0 ? nullptr : spelling, l.operands, l.packed, touches[i]);
      }
      program_.touch_begin.push_back(static_cast<uint32_t>(program_.touches.size()));
      if (!mma) {
        program_.touches.insert(program_.touches.end(), touches[i].begin(), touches[i].end());
      }
    }
    program_.touch_begin.push_back(static_cast<uint32_t>(program_.touches.size()));
    program_.unfenced = find_unfenced(program_, touches, graph_, begins_);
    program_.wgmma_lines = program_.register_bytes / kRegisterLine + 2;
  }

  void emit() {
    const std::vector<uint32_t> order = order_blocks(graph_);
    std::vector<uint32_t> position(begins_.size(), kNone);  // block -> index of its first operation
    struct Patch {
      size_t op;
      size_t operand;
      uint32_t block;
    };
    std::vector<Patch> patches;
    std::vector<size_t> list_begin;

    for (InstructionInfo& info : program_.instructions) info.unreachable = true;
    for (uint32_t n = 0; n < order.size(); ++n) {
      const uint32_t b = order[n];
      const bool end_block = b + 1 == begins_.size();
      const uint32_t begin = begins_[b];
      const uint32_t end = end_block ? begin : begins_[b + 1];
      const uint32_t first = std::min(begin, static_cast<uint32_t>(lowered_.size()) - 1);
      position[b] = static_cast<uint32_t>(program_.plain.size());
      program_.block_first.push_back(first);
      program_.blocks.emplace_back();

      add({Action::kEnterBlock, kAddedOp, first}, {n, end - begin}, list_begin);
      for (uint32_t i = begin; i < end; ++i) {
        const Lowered& l = lowered_[i];
        program_.blocks.back().push_back(i);
        program_.instructions[i].block = n;
        program_.instructions[i].unreachable = false;
        for (isa::Special special : l.moving) {
          const Ref slot = symbols_.special(isa::row_of(special));
          add({Action::kRefresh, kAddedOp, i, static_cast<uint64_t>(special)}, {slot, i - begin},
              list_begin);
        }
        for (size_t label : l.labels) {
          patches.push_back({program_.plain.size(), label, block_of_[l.operands[label]]});
        }
        add({l.action, l.guard, i, l.aux}, l.operands, list_begin);
      }
      if (end_block) {
        add({Action::kExit, kAddedOp, first}, {}, list_begin);
      } else if (!lowered_[end - 1].ends && (n + 1 >= order.size() || order[n + 1] != b + 1)) {
        patches.push_back({program_.plain.size(), 0, b + 1});
        add({Action::kJump, kAddedOp, end - 1}, {0}, list_begin);
      }
    }
    for (const Patch& p : patches) {
      program_.operands[list_begin[p.op] + p.operand] = position[p.block];
    }
    for (auto* code : {&program_.plain, &program_.observed}) {
      for (size_t i = 0; i < code->size(); ++i) {
        Op& op = (*code)[i];
        op.list = program_.operands.data() + list_begin[i];
        const size_t have =
            (i + 1 < code->size() ? list_begin[i + 1] : program_.operands.size()) - list_begin[i];
        std::copy_n(op.list, std::min<size_t>(have, std::size(op.r)), op.r);
      }
    }
  }

  struct Added {
    Action action;
    Ref guard;
    uint32_t instruction;
    uint64_t aux = 0;
  };

  void add(const Added& added, const std::vector<uint32_t>& operands,
           std::vector<size_t>& list_begin) {
    Op op;
    op.guard = added.guard;
    op.instruction = added.instruction;
    op.aux = added.aux;
    program_.actions.push_back(added.action);
    program_.plain.push_back(op);
    program_.observed.push_back(op);
    list_begin.push_back(program_.operands.size());
    program_.operands.insert(program_.operands.end(), operands.begin(), operands.end());
  }

  const text::Entry& entry_;
  const ModuleData& data_;
  Program& program_;
  const text::Source& source_;
  text::Errors& errors_;
  text::Errors unsupported_;
  Symbols symbols_;
  OperandLowering operands_;
  std::vector<Lowered> lowered_;
  std::vector<uint32_t> begins_, block_of_;
  bool wgmma_ = false;  // the entry has warpgroup matrix instructions
  Graph graph_;
};

}  // namespace

void lower_entry(const text::ModuleText& module, const text::Entry& entry,
                 const ModuleSymbols& symbols, const ModuleData& data, Program& program,
                 text::Errors& errors) {
  if (entry.statements.empty()) {
    errors.add(entry.span, "the entry has no instructions");
    return;
  }
  EntryLowering(module, entry, symbols, data, program, errors).run();
}

}  // namespace ptxvm
