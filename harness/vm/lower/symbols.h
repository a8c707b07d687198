// SPDX-License-Identifier: MIT
// Names of a kernel, the slots of its registers, and its constants.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "program/program.h"
#include "text/ast.h"
#include "text/errors.h"

namespace ptxvm {

/// The space of an entry: its name may not be used.
inline constexpr std::string_view kEntrySpace = "entry";

/// A variable or parameter as operands see it.
struct Symbol {
  std::string_view name;
  std::string_view space;  ///< global, const, shared, local, param, frame (what calls pass), func
  uint64_t address = 0;    ///< Offset in its space; for global and func the address.
  bool dynamic = false;    ///< `.extern .shared`: begins where the static part ends.
  Ref slot = kNoRef;       ///< In a function: the register that holds its local address.
  uint32_t bytes = 0;      ///< Of what calls pass.
};

/// A register and where it lives.
struct RegisterName {
  Type type = Type::kNone;
  Ref ref = 0;
};

/// Variables of the module, shared by its kernels.
using ModuleSymbols = std::unordered_map<std::string_view, Symbol>;

/// The same as one program sees them: shared variables have their places.
class ProgramSymbols {
 public:
  explicit ProgramSymbols(const ModuleSymbols& module) : module_(module) {}

  /// Null where the module has no variable or function of this name.
  const Symbol* find(std::string_view name) const {
    if (const auto it = own_.find(name); it != own_.end()) return &it->second;
    const auto it = module_.find(name);
    return it == module_.end() ? nullptr : &it->second;
  }
  void place(const Symbol& symbol) { own_[symbol.name] = symbol; }

 private:
  const ModuleSymbols& module_;
  ModuleSymbols own_;
};

/// Looks names up through the scopes of an entry; gives every register that is used a slot of its
/// own, and every distinct constant a place in the pool.
class Symbols {
 public:
  /// Of the entry where `function` is null. Shared variables get their places: `module` has those
  /// of the module that the program uses.
  Symbols(const text::Entry& entry, const ProgramSymbols& module, Program& program,
          Function* function, text::Errors& errors);

  /// A vector register has one for each element, and none as a whole.
  std::optional<RegisterName> find_register(std::string_view name, uint32_t scope,
                                            int element = -1);
  /// Of all registers that the body names, by their places.
  std::unordered_map<Ref, std::string> register_names() const;
  /// Elements of a vector register; 0 where the name is none.
  int vector_of(std::string_view name, uint32_t scope) const;
  bool has_vectors() const { return has_vectors_; }
  std::optional<Symbol> find_variable(std::string_view name, uint32_t scope);
  /// Index of the statement that a label stands before.
  std::optional<uint32_t> find_label(std::string_view name, uint32_t scope) const;
  /// The list of labels that stands behind .branchtargets; null where the name is none.
  const text::Declaration* find_targets(std::string_view name, uint32_t scope) const;
  bool in_function() const { return function_ != nullptr; }

  Ref special(const isa::SpecialRow& row);
  Ref constant(uint64_t value, Type type);
  /// A constant that moves with the base of shared memory.
  Ref shared_address(uint64_t offset, bool wide);
  Ref sink(Type type);

 private:
  struct ScopeNames {
    std::unordered_map<std::string_view, const text::Declaration*> names;
    std::unordered_map<std::string_view, const text::Declaration*> ranges;
    std::unordered_map<std::string_view, Symbol> variables;
  };

  struct Declared {
    const text::Declaration* declaration = nullptr;
    uint32_t index = 0;  // in its range
  };

  void declare(uint32_t scope, const text::Declaration& d);
  Declared find_declared(std::string_view name, uint32_t scope) const;
  /// Gives a variable of shared or local space its place. Also for variables of the module.
  void declare_variable(uint32_t scope, const text::Declaration& d);
  Ref allocate(Type type);
  uint32_t pool_room(uint32_t bytes);

  FramePart declare_passed(uint32_t scope, const text::Declaration& d);
  /// A place in the frame of a function, or in the local memory of the entry.
  Symbol place(const text::Declaration& d, std::string_view space);

  const text::Entry& entry_;
  const ProgramSymbols& module_;
  Program& program_;
  Function* function_;
  text::Errors& errors_;
  std::vector<ScopeNames> scopes_;
  bool has_vectors_ = false;
  std::map<std::pair<const text::Declaration*, uint32_t>, Ref> slots_;
  std::map<isa::Special, Ref> specials_;
  std::map<std::pair<uint64_t, bool>, Ref> constants_;
  std::map<std::pair<uint64_t, bool>, Ref> shared_constants_;
  std::map<uint64_t, Ref> predicates_;
  Ref sinks_[2] = {kNoRef, kNoRef};
  uint32_t predicate_line_ = 0, predicates_in_line_ = 8;
};

/// Places a shared variable behind the others. Where there is no room, that is an error.
Symbol place_shared(const text::Declaration& d, Program& program, text::Errors& errors);

/// Bytes of one element of a variable.
uint32_t element_bytes(const text::Declaration& d);
uint32_t align_up(uint32_t value, uint32_t alignment);

}  // namespace ptxvm
