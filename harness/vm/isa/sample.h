// SPDX-License-Identifier: MIT
// Example statements for a spelling, made from its operand column. For tests and generators.
#pragma once

#include <string>

#include "isa/table.h"

namespace ptxvm::isa {

/// One statement with registers named by type (`%sample_u32_0`, ...) and every optional operand
/// left out, or all of them given. With `constants` a constant ends each vector that may have one.
std::string sample_statement(const Spelling& spelling, bool with_optional, bool constants = false);

/// The target of a module that may hold it: `90a`, or `100a` for what is not there yet.
/// Statements that one kernel cannot hold together have different ones: `100a.2`, of .cta_group::2.
std::string sample_target(const Spelling& spelling);
/// Without what follows a dot.
std::string target_name(const std::string& sample_target);

/// What sample statements call, to stand in front of the entry.
std::string sample_functions();

/// Declarations for the names that sample statements use, to stand at the head of a body.
std::string sample_declarations();

}  // namespace ptxvm::isa
