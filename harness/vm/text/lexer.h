// SPDX-License-Identifier: MIT
// Tokens of PTX (PTX ISA 4).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/errors.h"

namespace ptxvm::text {

enum class TokenKind : uint8_t {
  kWord,     ///< abc, %r1, $L__BB0_1
  kDot,      ///< .reg, .x, .L1::evict_last: the dot and the word after it
  kInteger,  ///< `value`
  kSingle,   ///< 0f3F800000: `value` holds the bits
  kDouble,   ///< 0d..., 1.5: `value` holds the bits
  kString,
  kSymbol,  ///< One character.
  kEnd,
};

struct Lexeme {
  TokenKind kind = TokenKind::kEnd;
  char symbol = 0;
  bool glued = false;  ///< No space in front.
  Span span;
  uint64_t value = 0;
};

/// Splits the text. What cannot be a token becomes an error; the rest is still split.
std::vector<Lexeme> lex(const Source& source, Errors& errors);

}  // namespace ptxvm::text
