// SPDX-License-Identifier: MIT
#include "text/lexer.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <string>

namespace ptxvm::text {
namespace {

bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

bool continues_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Lexer {
 public:
  Lexer(const Source& source, Errors& errors) : text_(source.text()), errors_(errors) {}

  std::vector<Lexeme> run() {
    std::vector<Lexeme> out;
    out.reserve(text_.size() / 4);
    while (true) {
      const bool spaced = skip_blank();
      const uint32_t begin = at_;
      Lexeme t = next();
      t.glued = !spaced;
      t.span = {begin, at_ - begin};
      out.push_back(t);
      if (t.kind == TokenKind::kEnd) return out;
    }
  }

 private:
  char peek(uint32_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void error(uint32_t begin, std::string message) {
    errors_.add({begin, at_ - begin}, std::move(message));
  }

  bool skip_blank() {
    const uint32_t begin = at_;
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(peek()))) {
        ++at_;
      } else if (peek() == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else if (peek() == '/' && peek(1) == '*') {
        const uint32_t comment = at_;
        size_t close = text_.find("*/", at_ + 2);
        at_ = close == std::string_view::npos ? static_cast<uint32_t>(text_.size())
                                              : static_cast<uint32_t>(close + 2);
        if (close == std::string_view::npos) {
          errors_.add({comment, 2}, "the comment is not closed");
        }
      } else {
        break;
      }
    }
    return at_ != begin;
  }

  // A dot behind a word begins a modifier, also where that begins with a digit (.2d).
  bool follows_word() const {
    return at_ > 0 && (continues_word(text_[at_ - 1]) || text_[at_ - 1] == '%');
  }

  bool exponent_at(uint32_t ahead) const {
    const char sign = peek(ahead + 1);
    return (peek(ahead) == 'e' || peek(ahead) == 'E') &&
           is_digit(sign == '+' || sign == '-' ? peek(ahead + 2) : sign);
  }

  Lexeme next() {
    if (at_ >= text_.size()) return {};
    const char c = peek();
    if (starts_word(c)) {
      ++at_;
      while (continues_word(peek())) ++at_;
      return {TokenKind::kWord, 0, false, {}, 0};
    }
    if (c == '.' && is_digit(peek(1)) && !follows_word()) return number();
    if (c == '.' && (continues_word(peek(1)))) {
      ++at_;
      while (continues_word(peek()) ||
             (peek() == ':' && peek(1) == ':' && continues_word(peek(2)))) {
        at_ += peek() == ':' ? 2 : 1;
      }
      return {TokenKind::kDot, 0, false, {}, 0};
    }
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    if (c == '"') return string();
    ++at_;
    constexpr std::string_view kSymbols = "{}[]()<>,;:|@!+-=*/&~^?%";
    if (kSymbols.find(c) == std::string_view::npos) {
      // A text that is none has more of them; they are one error.
      const uint32_t begin = at_ - 1;
      while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(peek())) &&
             static_cast<signed char>(peek()) <= 0) {
        ++at_;
      }
      error(begin, "this character cannot stand in PTX");
    }
    return {TokenKind::kSymbol, c, false, {}, 0};
  }

  Lexeme string() {
    const uint32_t begin = at_++;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n') ++at_;
    if (peek() == '"') {
      ++at_;
    } else {
      error(begin, "the string is not closed");
    }
    return {TokenKind::kString, 0, false, {}, 0};
  }

  Lexeme number() {
    const uint32_t begin = at_;
    auto take = [&](int base, uint32_t from, uint32_t digits) {
      uint64_t value = 0;
      const char* first = text_.data() + from;
      const char* last = text_.data() + from + digits;
      auto [end, problem] = std::from_chars(first, last, value, base);
      if (problem != std::errc() || end != last || digits == 0)
        error(begin, "this is not a number");
      return value;
    };
    const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(peek(1))));
    if (peek() == '0' && (kind == 'f' || kind == 'd' || kind == 'x')) {
      at_ += 2;
      const uint32_t digits = at_;
      while (std::isxdigit(static_cast<unsigned char>(peek()))) ++at_;
      const uint32_t count = at_ - digits;
      const uint64_t value = take(16, digits, count);
      if (kind == 'f' && count != 8) error(begin, "a 0f constant has 8 hexadecimal digits");
      if (kind == 'd' && count != 16) error(begin, "a 0d constant has 16 hexadecimal digits");
      if (kind == 'x' && (peek() == 'U' || peek() == 'u')) ++at_;
      return {kind == 'f'   ? TokenKind::kSingle
              : kind == 'd' ? TokenKind::kDouble
                            : TokenKind::kInteger,
              0,
              false,
              {},
              value};
    }
    if (peek() == '0' && kind == 'b') {
      at_ += 2;
      const uint32_t digits = at_;
      while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
      const uint64_t value = take(2, digits, at_ - digits);
      if (peek() == 'U' || peek() == 'u') ++at_;
      return {TokenKind::kInteger, 0, false, {}, value};
    }
    while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    bool real = false;
    if (peek() == '.' && (exponent_at(1) || !starts_word(peek(1)))) {
      real = true;
      ++at_;
      while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    }
    if (std::tolower(static_cast<unsigned char>(peek())) == 'e' &&
        (std::isdigit(static_cast<unsigned char>(peek(1))) || peek(1) == '+' || peek(1) == '-')) {
      real = true;
      at_ += 2;
      while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    }
    if (real) {
      double value = 0;
      const char* last = text_.data() + at_;
      auto [end, problem] = std::from_chars(text_.data() + begin, last, value);
      if (problem != std::errc() || end != last) error(begin, "this is not a number");
      return {TokenKind::kDouble, 0, false, {}, std::bit_cast<uint64_t>(value)};
    }
    const bool octal = peek() != '.' && text_[begin] == '0' && at_ - begin > 1;
    const uint64_t value = take(octal ? 8 : 10, begin, at_ - begin);
    if (peek() == 'U' || peek() == 'u') ++at_;
    if (continues_word(peek())) {
      while (continues_word(peek())) ++at_;
      error(begin, "this is not a number");
    }
    return {TokenKind::kInteger, 0, false, {}, value};
  }

  std::string_view text_;
  Errors& errors_;
  uint32_t at_ = 0;
};

}  // namespace

std::vector<Lexeme> lex(const Source& source, Errors& errors) {
  return Lexer(source, errors).run();
}

}  // namespace ptxvm::text
