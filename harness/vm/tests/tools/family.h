// SPDX-License-Identifier: MIT
// What is recorded: one family for each spelling that computes a value, and for its variants.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "isa/table.h"

namespace ptxvm_vectors {

/// How the statement is embedded in a kernel.
enum class Shape {
  kPlain,     ///< Operands from registers, results into registers.
  kMembers,   ///< Plain, guarded by the lane's own bit of the member mask.
  kCarryIn,   ///< The carry flag is set from an input, and read back where `.cc` writes it.
  kAddress,   ///< The operand is a generic address, chosen by a number.
  kLdMatrix,  ///< Shared memory is filled by the lanes.
  kStMatrix,  ///< Shared memory is read back by the lanes.
  kMbarrier,  ///< Each lane takes a barrier of its own through a phase, and says what it sees.
};

/// Rows of the table from this target on need a GPU of its own, and are recorded apart.
constexpr int kBlackwell = 100;

/// The form that has an operand which may be left out.
constexpr const char* kOptionalOperand = "optional operand";

/// One instruction, applied to every row of an input set.
struct Family {
  const ptxvm::isa::Spelling* spelling = nullptr;
  /// Empty, `!p` (negated predicates), `optional operand`, `lut=N`, `picked` (parts of registers),
  /// or `after X`: X sets the carry.
  std::string form;
  Shape shape = Shape::kPlain;
  std::string set;    ///< Kinds of the columns, or the name of a special set.
  int outputs = 1;    ///< Result words of up to 64 bits.
  bool pair = false;  ///< The `|q` destination is written too.

  std::string op() const { return spelling->text; }
};

/// All families of targets before Blackwell, in table order; wgmma has cases instead
/// (wgmma_case.h).
std::vector<Family> families();

/// Those that need sm_100, the forms with an operand that needs it among them; tcgen05.mma has
/// cases instead (tcgen05_case.h).
std::vector<Family> blackwell_families();
bool needs_blackwell(const Family& family);

/// Whether a row of the table runs and computes a value, be it a predicate about a barrier.
bool has_value(const ptxvm::isa::Row& row);

/// Why a row of the table that computes a value has no vectors; empty when it must have.
std::string_view not_recorded(const ptxvm::isa::Row& row);

/// The file that holds a family: the count class, e.g. `float` or `blackwell_float`.
std::string group(const Family& family);

/// Whether the operation is the carry-writing form.
bool writes_carry(const Family& family);

}  // namespace ptxvm_vectors
