// SPDX-License-Identifier: MIT
// Operands of one statement, checked against the table and flattened.
#pragma once

#include <string>

#include "lower/symbols.h"

namespace ptxvm {

/// Ends the lowering of one statement; the error has been recorded.
struct BadStatement {};

class OperandLowering {
 public:
  OperandLowering(Symbols& symbols, text::Errors& errors) : symbols_(symbols), errors_(errors) {}

  /// Flattens the operands of `s` as `spelling` wants them (see Op). Labels give statement indices;
  /// their positions in the list are appended to `label_positions`. Moving special registers that
  /// are read are appended to `moving`. With `policy` a cache policy comes last, which changes
  /// nothing. `sm` is the target.
  std::vector<uint32_t> lower(const text::Statement& s, const isa::Spelling& spelling, bool policy,
                              int sm);

  Ref guard(const text::Guard& guard, uint32_t scope);
  /// mov.bN with a vector on one side: the element references first, or last.
  std::vector<uint32_t> lower_pack(const text::Statement& s, Type whole);

  std::vector<size_t> label_positions;
  std::vector<isa::Special> moving;
  bool frame =
      false;  ///< ld.param or st.param of what a call passes, which stands in local memory.

 private:
  void operand(const text::Operand& o, const isa::OperandSpec& spec, const isa::Spelling& spelling);
  Ref value(const text::Operand& o, const isa::OperandSpec& spec);
  void label(const text::Operand& o);
  void targets(const text::Operand& o);
  void push(const text::Operand& o, const isa::OperandSpec& spec);
  void push_parts(const text::Operand& o, const isa::OperandSpec& spec);
  Ref immediate(const text::Operand& o, const isa::OperandSpec& spec);
  Ref name_value(const text::Operand& o, const isa::OperandSpec& spec);
  Ref reserved_shared(const text::Operand& o, const isa::OperandSpec& spec);
  void address(const text::Operand& o, const isa::OperandSpec& spec, const isa::Spelling& spelling);
  void check_space(const text::Operand& o, const Symbol& symbol, const isa::Spelling& spelling);
  [[noreturn]] void fail(text::Span span, std::string message);

  Symbols& symbols_;
  text::Errors& errors_;
  std::vector<uint32_t> out_;
  uint32_t scope_ = 0;
  size_t targets_ = 0;  // of indirect branches so far
};

}  // namespace ptxvm
