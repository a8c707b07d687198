// SPDX-License-Identifier: MIT
// A module as its text says it, before any name or opcode is looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isa/types.h"
#include "ptxvm/diagnostic.h"
#include "ptxvm/module.h"
#include "text/source.h"

namespace ptxvm::text {

/// One operand of a statement (PTX ISA 6.4).
struct Operand {
  enum class Kind : uint8_t {
    kName,     ///< Register, variable, label or special register; `component` for %tid.x
    kInteger,  ///< `integer`
    kFloat,    ///< `integer` holds the bits: of an f64, or of an f32 when written 0f
    kSink,     ///< _
    kVector,   ///< {a, b}: `items`
    kAddress,  ///< [a+4] or [a, {b, c}]: items[0] the base, the others coordinates, `integer` the
               ///< offset
  };

  Kind kind = Kind::kName;
  bool negated = false;   ///< `!p`
  bool single = false;    ///< kFloat written as 0f
  bool negative = false;  ///< kInteger with a minus sign
  int element = -1;       ///< Of the vector register `name`.
  std::string_view name;  ///< With its component.
  uint64_t integer = 0;
  std::vector<Operand> items;
  std::vector<Operand> second;  ///< `q` of `p|q`: empty or one element.
  Span span;
};

struct Guard {
  std::string_view name;
  bool negated = false;
  Span span;
};

/// What a call names: `call (returns), target, (arguments), prototype`.
struct Call {
  std::vector<Operand> returns, arguments;
  Operand target;
};

/// An instruction. Names are resolved in `scope`.
struct Statement {
  std::optional<Guard> guard;
  std::string_view opcode;
  Span opcode_span;
  std::vector<Operand> operands;
  std::unique_ptr<Call> call;  ///< Instead of operands.
  Span span;
  uint32_t scope = 0;
  int loc = -1;  ///< Index into Entry::locs.
};

/// .loc, with what it says about inlining.
struct Loc {
  int file = 0, line = 0, column = 0;
  std::string_view function;  ///< Label of a string in .debug_str.
  bool inlined = false;
  int at_file = 0, at_line = 0, at_column = 0;
};

/// A name that stands for a block of registers, a variable or a label.
struct Declaration {
  enum class Kind : uint8_t {
    kRegister,
    kRegisterRange,
    kVariable,
    kLabel,
    kTargets,  ///< .branchtargets: `initial`
    kParameter
  };

  Kind kind = Kind::kRegister;
  std::string_view name;  ///< For a range the stem, e.g. `%r` of %r<9>.
  Type type = Type::kNone;
  uint32_t count = 1;  ///< Registers of a range; elements of a variable.
  int vector = 1;      ///< .v2, .v4 in front of the type: elements of a register or variable.
  Span span;

  // Variables and parameters:
  std::string_view space;  ///< global, const, shared, local, param
  uint32_t align = 0;
  bool external = false, weak = false;
  bool own =
      false;  ///< Without any of .visible, .extern, .weak, .common: known in its module only.
  bool array = false;
  std::vector<Operand> initial;  ///< Flattened initialiser; names for addresses.
  bool generic_names = false;    ///< Initialiser names were wrapped in generic().

  uint32_t statement = 0;  ///< For a label: index of the next statement.
};

/// A { } scope.
struct Scope {
  int parent = -1;
  std::vector<Declaration> declarations;
};

/// .entry or .func
struct Entry {
  std::string_view name;
  Span span;
  bool function = false;
  bool defined = false;  ///< Has a body.
  bool weak = false;
  bool own = false;  ///< As of a variable.
  std::vector<Declaration> parameters;
  std::vector<Declaration> returns;  ///< Of a function.
  std::optional<Dim3> max_threads, required_threads, required_cluster;
  uint32_t min_blocks = 1;    ///< .minnctapersm
  std::vector<Scope> scopes;  ///< [0] is the body.
  std::vector<Statement> statements;
  std::vector<Loc> locs;
  std::vector<Diagnostic> errors;  ///< What is wrong with its text.
};

/// The text may be that of several modules, one behind the other, each from its .version on.
struct ModuleText {
  int version = 0;  ///< Ten times .version.
  std::string_view target;
  int address_size = 64;
  std::vector<std::string> files;  ///< By .file number.
  std::vector<Declaration> variables;
  std::vector<Entry> entries;
  std::vector<Entry> functions;   ///< Declarations that have a body elsewhere are left out.
  std::deque<std::string> names;  ///< That the text does not have: see text/join.h.
};

}  // namespace ptxvm::text
