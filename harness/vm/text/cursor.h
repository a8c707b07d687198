// SPDX-License-Identifier: MIT
// Walks over tokens; shared by the parts of the parser.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/ast.h"
#include "text/lexer.h"

namespace ptxvm::text {

/// Ends the parse of one statement; the error has been recorded.
struct SyntaxError {};

class Cursor {
 public:
  Cursor(const Source& source, Errors& errors)
      : source_(source), errors_(&errors), tokens_(lex(source, errors)) {}

  const Source& source() const { return source_; }
  /// Where errors go from now on; gives back where they went.
  Errors& report_to(Errors& errors) { return *std::exchange(errors_, &errors); }

  /// The number of .file and .loc, which every module in the text counts from its own beginning.
  uint32_t file_number();
  uint32_t first_file = 0;  ///< Of the module at hand.

  const Lexeme& current() const { return tokens_[at_]; }
  const Lexeme& ahead(size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  const Lexeme& previous() const { return tokens_[at_ == 0 ? 0 : at_ - 1]; }
  std::string_view slice(const Lexeme& t) const { return source_.slice(t.span); }
  std::string_view slice_current() const { return slice(current()); }
  /// Text from one offset up to the end of the previous token.
  Span since(uint32_t begin) const {
    const Span last = previous().span;
    return {begin, last.begin + last.length - begin};
  }
  std::string_view slice(Span span) const { return source_.slice(span); }

  bool at_end() const { return current().kind == TokenKind::kEnd; }
  bool is(char symbol) const {
    return current().kind == TokenKind::kSymbol && current().symbol == symbol;
  }
  bool is_word() const { return current().kind == TokenKind::kWord; }
  bool is_any_dot() const { return current().kind == TokenKind::kDot; }
  bool is_dot(std::string_view text) const { return is_any_dot() && slice_current() == text; }

  void advance() {
    if (!at_end()) ++at_;
  }
  bool take(char symbol) {
    if (!is(symbol)) return false;
    advance();
    return true;
  }
  bool take_dot(std::string_view text) {
    if (!is_dot(text)) return false;
    advance();
    return true;
  }

  void expect(char symbol);
  std::string_view word(std::string_view what);
  std::string_view string(std::string_view what);  ///< Without the quotes.
  uint64_t integer(std::string_view what);
  uint32_t small(std::string_view what);  ///< An integer that fits 31 bits.

  void report(Span span, std::string message);
  [[noreturn]] void fail(std::string message);           ///< At the current token.
  [[noreturn]] void fail_previous(std::string message);  ///< At the token before it.
  [[noreturn]] void fail_at(Span span, std::string message);

  /// Counts nested braces and brackets, so that no text can exhaust the stack.
  class Nesting {
   public:
    explicit Nesting(Cursor& c) : c_(c) {
      if (++c_.depth_ > kMaxNesting) {
        --c_.depth_;
        c_.fail("this is nested too deeply");
      }
    }
    ~Nesting() { --c_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Cursor& c_;
  };

  /// One more instruction, or initial value, of the text; too many of them fail.
  void count_statement() { count(statements_, "instructions"); }
  void count_value() { count(values_, "initial values"); }

  void skip_past(char symbol);
  void skip_brackets(char open, char close);
  void skip_to_next_item();       ///< After an error at module level.
  void skip_to_next_statement();  ///< After an error in a body.
  void skip_body();               ///< After an error in front of it.

 private:
  static constexpr int kMaxNesting = 32;
  static constexpr uint32_t kMost = 3'000'000;

  void count(uint32_t& counter, const char* what);

  const Source& source_;
  Errors* errors_;
  std::vector<Lexeme> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  uint32_t statements_ = 0, values_ = 0;
};

/// Parses from the name of an entry, or the result of a function, to its closing brace. What is
/// wrong with it is kept in it, and nothing behind it is affected.
Entry parse_entry(Cursor& c);
Entry parse_function(Cursor& c);

/// Parses `.space .align n .type name[...] = {...}, ...;`, beginning at the space.
void parse_variables(Cursor& c, std::vector<Declaration>& out, bool external);

/// Parses one operand of a statement or initialiser.
Operand parse_operand(Cursor& c);

}  // namespace ptxvm::text
