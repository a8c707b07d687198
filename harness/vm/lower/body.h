// SPDX-License-Identifier: MIT
// One body, of an entry or of a function: statements to operations.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "isa/decode.h"
#include "lower/cfg.h"
#include "lower/operands.h"
#include "lower/symbols.h"

namespace ptxvm {

/// What the bodies of a program share while they are lowered.
struct ProgramContext {
  const text::ModuleText& module;
  const ProgramSymbols& symbols;
  const ModuleData& data;
  Program& program;
  text::Errors& errors;
  text::Errors& unsupported;
  uint32_t& explained;  ///< ModuleIndex::explained
  /// Index into Program::functions, by name.
  std::unordered_map<std::string_view, uint32_t> functions;
  std::vector<size_t> list_begin;  ///< Of each operation: its operands in Program::operands.
  bool wgmma = false;              ///< Instructions that use registers in flight.
  bool allocates = false;          ///< There are allocations on the stack.
  uint8_t group = 0;               ///< .cta_group of tcgen05 instructions; 0 before the first.
};

class BodyLowering {
 public:
  /// `function` is null for the entry. Declares all names: shared variables have their places when
  /// all bodies have been made.
  BodyLowering(ProgramContext& context, const text::Entry& body, Function* function);

  /// Reads the statements, in the order in which instructions are numbered.
  void read();
  /// Finds basic blocks, once no body has errors.
  void find_blocks();
  /// Registers that it may read before it sets them.
  void find_unset();
  /// Registers by instruction, for wgmma.
  void find_touches();
  /// Appends the operations. Functions come before their callers and the entry last: lanes in a
  /// function then go first, and meet the others of their warp where it returns.
  void emit();

 private:
  // What a statement became, before blocks are laid out.
  struct Lowered {
    Action action = Action::kInstruction;
    Aux aux = {};
    Ref guard = kNoRef;
    std::vector<uint32_t> operands;
    std::vector<size_t> labels;
    std::vector<isa::Special> moving;
    bool branch = false, ends = false;  // jumps; never goes on to the next statement
    bool calls = false;
  };
  struct Added {
    Action action;
    Ref guard;
    uint32_t instruction;
    Aux aux = {};
  };

  void statement(uint32_t index, const text::Statement& s);
  text::Statement with_elements(const text::Statement& s) const;
  void pack(const text::Statement& s, const isa::Spelling& spelling, Lowered& out);
  void call(const text::Statement& s, Lowered& out);
  CallSite::Passed passed(const text::Operand& o, uint32_t scope);
  void check_shape(const text::Statement& s, const CallSite& site);
  void refuse(const text::Statement& s, const isa::Spelling* spelling);
  void refuse(const text::Statement& s, std::string what, std::string reason);
  bool shapes_fit(const isa::Spelling& spelling, const text::Statement& s);
  isa::Decoded decode(const text::Statement& s);
  Op operation(uint32_t index) const;
  void emit_block(uint32_t block, uint32_t next, std::vector<uint32_t>& position);
  void add(const Added& added, const std::vector<uint32_t>& operands);

  struct Patch {
    size_t op;
    size_t operand;
    uint32_t block;
  };

  ProgramContext& context_;
  const text::Entry& body_;
  Program& program_;
  const text::Source& source_;
  text::Errors& errors_;
  Function* function_;
  Symbols symbols_;
  OperandLowering operands_;
  uint32_t first_ = 0;      // number of its first instruction
  int first_location_ = 0;  // of its .locs in Program::locations
  std::vector<Lowered> lowered_;
  std::vector<uint32_t> begins_, block_of_;
  Graph graph_;
  std::vector<Patch> patches_;
};

}  // namespace ptxvm
