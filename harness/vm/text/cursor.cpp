// SPDX-License-Identifier: MIT
#include "text/cursor.h"

#include <algorithm>

namespace ptxvm::text {
namespace {

std::string quoted(char symbol) {
  return std::string("'") + symbol + "'";
}

}  // namespace

void Cursor::expect(char symbol) {
  if (!take(symbol)) fail("expected " + quoted(symbol));
}

std::string_view Cursor::word(std::string_view what) {
  if (!is_word()) fail("expected " + std::string(what));
  std::string_view text = slice_current();
  advance();
  return text;
}

std::string_view Cursor::string(std::string_view what) {
  if (current().kind != TokenKind::kString) fail("expected " + std::string(what));
  std::string_view text = slice_current();
  advance();
  if (text.size() < 2 || text.back() != '"') return text.substr(1);
  return text.substr(1, text.size() - 2);
}

uint64_t Cursor::integer(std::string_view what) {
  if (current().kind != TokenKind::kInteger) fail("expected " + std::string(what));
  const uint64_t value = current().value;
  advance();
  return value;
}

uint32_t Cursor::small(std::string_view what) {
  const uint64_t value = integer(what);
  if (value > 0x7fffffffu) fail_previous("the number is too large");
  return static_cast<uint32_t>(value);
}

void Cursor::report(Span span, std::string message) {
  errors_->add(span, std::move(message));
}

void Cursor::fail(std::string message) {
  fail_at(current().span, std::move(message));
}
void Cursor::fail_previous(std::string message) {
  fail_at(previous().span, std::move(message));
}

void Cursor::fail_at(Span span, std::string message) {
  report(span, std::move(message));
  throw SyntaxError{};
}

void Cursor::count(uint32_t& counter, const char* what) {
  if (counter == kMost) {
    fail("the text has more than " + std::to_string(kMost) + " " + std::string(what));
  }
  ++counter;
}

void Cursor::skip_past(char symbol) {
  while (!at_end() && !is(symbol)) advance();
  if (at_end()) fail("expected " + quoted(symbol));
  advance();
}

void Cursor::skip_brackets(char open, char close) {
  expect(open);
  int depth = 1;
  while (depth > 0) {
    if (at_end()) fail("expected " + quoted(close));
    if (is(open)) ++depth;
    if (is(close)) --depth;
    advance();
  }
}

void Cursor::skip_to_next_item() {
  // A directive that begins a line at module level; good enough to go on reporting.
  advance();
  while (!at_end()) {
    if (is_dot(".visible") || is_dot(".entry") || is_dot(".func") || is_dot(".extern") ||
        is_dot(".weak") || is_dot(".section") || is_dot(".file")) {
      return;
    }
    advance();
  }
}

void Cursor::skip_body() {
  while (!at_end() && !is('{') && !is(';') && !is_dot(".entry") && !is_dot(".func")) advance();
  if (!take('{')) return;
  for (int depth = 1; depth > 0 && !at_end(); advance()) {
    if (is('{')) ++depth;
    if (is('}')) --depth;
  }
}

void Cursor::skip_to_next_statement() {
  // A brace behind which an operand goes on closes no scope.
  const auto goes_on = [&] {
    const Lexeme& next = ahead(1);
    return next.kind == TokenKind::kSymbol &&
           std::string_view(",;])|").find(next.symbol) != std::string_view::npos;
  };
  while (!at_end() && !is(';') && (!is('}') || goes_on())) advance();
  if (is(';')) advance();
}

uint32_t Cursor::file_number() {
  return std::min<uint32_t>(small("a file number"), 0x7fff0000u - first_file) + first_file;
}

}  // namespace ptxvm::text
