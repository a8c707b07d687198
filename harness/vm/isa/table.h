// SPDX-License-Identifier: MIT
// The instruction table: patterns of isa.def expanded to every exact spelling.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/types.h"
#include "ptxvm/module.h"
#include "ptxvm/observer.h"

namespace ptxvm::isa {

/// Which lanes must execute an instruction together.
enum class Lanes : uint8_t {
  kAny,
  kAll,      ///< All 32.
  kLive,     ///< All lanes that have not exited.
  kMembers,  ///< Those of the member mask operand.
};

/// How a result is compared with the hardware's.
enum class CheckKind : uint8_t {
  kExact,   ///< Bit for bit.
  kUlp,     ///< Within `ulps` units in the last place.
  kTensor,  ///< Exact on small integers, a stated bound on random data.
  kEffect,  ///< No value to compare: memory, control, synchronisation.
};

struct Check {
  CheckKind kind = CheckKind::kExact;
  int ulps = 0;
};

enum class OperandKind : uint8_t {
  kValue,
  kVector,
  kMemory,
  kImmediate,
  kLabel,
  kTargets,
  kFunction
};
enum class Role : uint8_t { kRead, kWrite, kReadWrite };

/// One operand of a spelling, with types resolved.
struct OperandSpec {
  OperandKind kind = OperandKind::kValue;
  Role role = Role::kRead;
  Type type = Type::kNone;         ///< Of the value, or of each element of a vector.
  int count = 1;                   ///< Elements of a vector.
  bool braces = false;             ///< A vector of one may be written (ld, st).
  bool relaxed = false;            ///< The register may be wider than the type (ld, st, cvt).
  bool negatable = false;          ///< `!p` is allowed.
  bool optional = false;           ///< May be left out; no memory, and one of a list at most.
  bool pair = false;               ///< Followed by `|q`, a second predicate destination.
  bool pair_needed = false;        ///< That destination must be there.
  bool register_only = false;      ///< No immediate.
  bool sink_only = false;          ///< A destination that must be `_`.
  bool passed = false;             ///< Memory: in what a call passes.
  bool tensor = false;             ///< Memory: tensor memory, whose address is a 32-bit register.
  int parts = 0;                   ///< 2 or 4: `r.h0`, `r.b3210` pick halves or bytes.
  int coordinates = 0;             ///< Memory: `[a, {c0, ...}]` with so many 32-bit coordinates.
  int sm = 0;                      ///< Least target that takes an optional operand.
  int64_t lo = 0, hi = INT64_MAX;  ///< Range of an immediate.
  int64_t step = 1;                ///< Only lo, lo + step, ...
};

/// For what a warp tries an instruction again at each of its turns.
enum class Polls : uint8_t { kNo, kRegisters, kWarpgroup, kCluster, kMbarrier, kTensorMemory };

/// Whether an instruction needs an architecture-specific target (sm_90a).
enum class Specific : uint8_t {
  kNo,
  kOnly,  ///< That of its `sm`, and no other.
  kFrom,  ///< That of its `sm` or a later one.
};

/// What the machine needs of an instruction to lower, follow and judge it. What depends on its
/// modifiers is in Spelling.
struct Traits {
  bool branch = false;   ///< Goes on at a label.
  bool ends = false;     ///< Without a guard, never goes on to the next statement.
  bool returns = false;  ///< In a function, goes back to the caller.
  bool call = false;
  bool load = false;              ///< Reads memory into registers.
  bool store = false;             ///< Writes registers to memory.
  bool atomic = false;            ///< Reads memory, and writes it in the same step.
  bool copy = false;              ///< Moves values that it does not look at.
  bool joins = false;             ///< May put a value together from parts of others.
  bool decides = false;           ///< One operand may decide the result, whatever the others are.
  bool fragments = false;         ///< The registers of a warp hold a matrix in an unnamed order.
  bool orders_registers = false;  ///< wgmma.fence: what wrote registers before it is done.
  bool waits = false;             ///< For copies of this thread.
  bool allocates = false;         ///< On the stack.
  bool cancels = false;           ///< Clusters that have not begun.
  Polls polls = Polls::kNo;
  bool vectors_pending = false;  ///< No hardware has been asked for its results yet.
};

/// A row of isa.def.
struct Row {
  std::string_view binder;   ///< Name of the function that turns a spelling into code.
  std::string_view pattern;  ///< PTX ISA syntax.
  std::string_view operands;
  int sm = 0;  ///< Least target.
  Specific specific = Specific::kNo;
  Lanes lanes = Lanes::kAny;
  Check check;
  CountClass count = CountClass::kControl;  ///< For ld and st in a named space, that space's.
  std::string_view reason;                  ///< Why it does not run here; empty for rows that run.
  Traits traits;

  /// Whether modules for a target have it.
  bool runs_on(int target, bool arch_specific) const {
    return target >= sm && (specific == Specific::kNo ||
                            (arch_specific && (specific == Specific::kFrom || target == sm)));
  }
};

/// A modifier of a spelling and whether the row leaves a choice there.
struct Token {
  std::string_view text;
  bool chosen = false;
};

/// How an access or a fence orders memory, by its modifiers.
struct Ordering {
  bool strong = false;  ///< Atomic, volatile or ordered: not in conflict with others of its kind.
  bool acquire = false, release = false;
  bool block_scope = false;  ///< Only for threads of the same block.
  bool rounds = false;       ///< Of an atomic operation: its result depends on those before it.
};

/// Two truths joined, as setp joins its result with a predicate.
enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };

/// One exact mnemonic. Storage lives as long as the program.
struct Spelling {
  std::string text;
  const Row* row = nullptr;
  uint32_t row_index = 0;
  uint32_t index = 0;
  CountClass count = CountClass::kControl;
  std::vector<Token> tokens;  ///< tokens[0] is the base name.
  std::vector<OperandSpec> operands;
  /// The next spelling of the same text, with operands of other kinds (wgmma.mma_async, whose A may
  /// be a descriptor or registers; cp.async, which may end in a size or a predicate).
  const Spelling* overload = nullptr;

  Space space = Space::kGeneric;  ///< The first that the modifiers name.
  Type type = Type::kNone;        ///< Where the mnemonic ends in one.
  Ordering ordering;
  Combine combine = Combine::kNone;
  bool exchanges = false;  ///< An atomic that writes whatever stood there (exch).
  bool compares = false;   ///< An atomic that writes where it finds what it expects (cas).
  bool refetches = false;  ///< A load that sees what others have written since the last one.
  uint8_t group = 0;       ///< .cta_group: acts for so many blocks; 0 where it does not say.

  bool runs() const { return row->reason.empty(); }
  /// Of tcgen05 a kernel has the spellings of one .cta_group: it, or 0 for all others.
  uint8_t exclusive_group() const {
    return row->count == CountClass::kBulkCopy ? uint8_t{0} : group;
  }
  const Traits& traits() const { return row->traits; }
};

/// All rows in file order, and all spellings in row order (rows that run and rows that do not).
std::span<const Row> rows();
std::span<const Spelling> spellings();

/// The first spelling of that exact text; null when there is none.
const Spelling* find(std::string_view mnemonic);

/// The same access in local memory; null when there is none.
const Spelling* in_local_memory(const Spelling& spelling);

/// The reason why a whole family (`NO` row that ends in `.*`) is not run; null when the mnemonic
/// belongs to none.
const Row* find_family(std::string_view mnemonic);

/// What to tell the author of a mnemonic that is not in the table: the canonical order when only
/// the order is wrong, else the first modifier that does not fit and what may stand there.
std::string explain_unknown(std::string_view mnemonic);

/// Expands a pattern: `a.{b|c}[.d]` gives a.b, a.c, a.b.d, a.c.d. Chosen tokens are marked.
std::vector<std::vector<Token>> expand(std::string_view pattern);

}  // namespace ptxvm::isa
