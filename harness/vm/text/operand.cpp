// SPDX-License-Identifier: MIT
// Operands and variable declarations.
#include <algorithm>

#include "text/cursor.h"

namespace ptxvm::text {
namespace {

Operand name_operand(Cursor& c) {
  Operand o;
  const uint32_t begin = c.current().span.begin;
  if (c.slice_current() == "_") {
    o.kind = Operand::Kind::kSink;
    c.advance();
    o.span = c.since(begin);
    return o;
  }
  if (c.slice_current() == "WARP_SZ") {
    o.kind = Operand::Kind::kInteger;
    o.integer = 32;
    c.advance();
    o.span = c.since(begin);
    return o;
  }
  c.word("an operand");
  if (c.is_any_dot() && c.current().glued) c.advance();  // %tid.x
  o.span = c.since(begin);
  o.name = c.slice(o.span);
  return o;
}

// Constant expressions of integers (PTX ISA 4.5.6), all as 64 bits with a sign.
class Expression {
 public:
  explicit Expression(Cursor& c) : c_(c) {}

  int64_t value() {
    const Cursor::Nesting nesting(c_);
    const int64_t condition = binary(0);
    if (!c_.take('?')) return condition;
    const int64_t first = value();
    c_.expect(':');
    const int64_t second = value();
    return condition != 0 ? first : second;
  }

 private:
  struct Operator {
    char first, second;  // second 0 where there is one sign
    int level;
  };
  static constexpr Operator kOperators[] = {
      {'|', '|', 0}, {'&', '&', 1}, {'|', 0, 2},   {'^', 0, 3},   {'&', 0, 4},   {'=', '=', 5},
      {'!', '=', 5}, {'<', '=', 6}, {'>', '=', 6}, {'<', '<', 7}, {'>', '>', 7}, {'<', 0, 6},
      {'>', 0, 6},   {'+', 0, 8},   {'-', 0, 8},   {'*', 0, 9},   {'/', 0, 9},   {'%', 0, 9}};
  static constexpr int kLevels = 10;

  // The operator that stands here; those of two signs come first in the list.
  const Operator* here() const {
    const Lexeme& next = c_.ahead(1);
    for (const Operator& o : kOperators) {
      if (!c_.is(o.first) && !(o.first == '%' && is_percent())) continue;
      const bool second = next.kind == TokenKind::kSymbol && next.symbol == o.second && next.glued;
      if (o.second == 0 || second) return &o;
    }
    return nullptr;
  }

  // A name may begin with this sign, so that the lexer takes it for a word.
  bool is_percent() const { return c_.is_word() && c_.slice_current() == "%"; }

  int64_t binary(int level) {
    if (level == kLevels) return unary();
    int64_t left = binary(level + 1);
    for (const Operator* o = here(); o && o->level == level; o = here()) {
      const Span at = c_.current().span;
      c_.advance();
      if (o->second != 0) c_.advance();
      left = apply(*o, left, binary(level + 1), at);
    }
    return left;
  }

  int64_t apply(const Operator& o, int64_t a, int64_t b, Span at) const {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    const auto wrapped = [](uint64_t v) { return static_cast<int64_t>(v); };
    switch (o.first) {
      case '|':
        return o.second != 0 ? a != 0 || b != 0 : a | b;
      case '&':
        return o.second != 0 ? a != 0 && b != 0 : a & b;
      case '^':
        return a ^ b;
      case '=':
        return a == b;
      case '!':
        return a != b;
      case '<':
        return o.second == '<' ? (y < 64 ? wrapped(x << y) : 0) : o.second == '=' ? a <= b : a < b;
      case '>':
        return o.second == '>' ? a >> std::min<uint64_t>(y, 63) : o.second == '=' ? a >= b : a > b;
      case '+':
        return wrapped(x + y);
      case '-':
        return wrapped(x - y);
      case '*':
        return wrapped(x * y);
      default:
        if (b == 0) c_.fail_at(at, "division by zero");
        if (b == -1) return o.first == '/' ? wrapped(0 - x) : 0;
        return o.first == '/' ? a / b : a % b;
    }
  }

  int64_t unary() {
    const Cursor::Nesting nesting(c_);
    if (c_.take('+')) return unary();
    if (c_.take('-')) return static_cast<int64_t>(0 - static_cast<uint64_t>(unary()));
    if (c_.take('~')) return ~unary();
    if (c_.take('!')) return unary() == 0;
    if (c_.take('(')) {
      if (c_.take_dot(".s64") || c_.take_dot(".u64")) {
        c_.expect(')');
        return unary();
      }
      const int64_t inner = value();
      c_.expect(')');
      return inner;
    }
    if (c_.is_word() && c_.slice_current() == "WARP_SZ") {
      c_.advance();
      return 32;
    }
    return static_cast<int64_t>(c_.integer("an operand"));
  }

  Cursor& c_;
};

// Whether more than a number stands here.
bool begins_expression(const Cursor& c) {
  if (c.is('(') || c.is('~') || c.is('+')) return true;
  const size_t number = c.is('-') ? 1 : 0;
  if (c.ahead(number).kind != TokenKind::kInteger) {
    return number == 1 && c.ahead(1).kind == TokenKind::kSymbol;
  }
  const Lexeme& next = c.ahead(number + 1);
  return next.kind == TokenKind::kSymbol &&
         std::string_view("+-*/&|^<>=!?").find(next.symbol) != std::string_view::npos;
}

Operand number_operand(Cursor& c) {
  Operand o;
  const uint32_t begin = c.current().span.begin;
  if (begins_expression(c)) {
    const int64_t value = Expression(c).value();
    o.kind = Operand::Kind::kInteger;
    o.integer = static_cast<uint64_t>(value);
    o.negative = value < 0;
    o.span = c.since(begin);
    return o;
  }
  const bool minus = c.take('-');
  const Lexeme t = c.current();
  switch (t.kind) {
    case TokenKind::kInteger:
      o.kind = Operand::Kind::kInteger;
      o.integer = minus ? uint64_t{0} - t.value : t.value;
      o.negative = minus;
      break;
    case TokenKind::kSingle:
      o.kind = Operand::Kind::kFloat;
      o.single = true;
      o.integer = minus ? t.value ^ 0x80000000u : t.value;
      break;
    case TokenKind::kDouble:
      o.kind = Operand::Kind::kFloat;
      o.integer = minus ? t.value ^ 0x8000000000000000u : t.value;
      break;
    default:
      c.fail("expected an operand");
  }
  c.advance();
  o.span = c.since(begin);
  return o;
}

// The base of an address: what is added to it is read there.
Operand plain_number(Cursor& c) {
  Operand o;
  const uint32_t begin = c.current().span.begin;
  o.kind = Operand::Kind::kInteger;
  o.negative = c.take('-');
  const uint64_t value = c.integer("an operand");
  o.integer = o.negative ? uint64_t{0} - value : value;
  o.span = c.since(begin);
  return o;
}

Operand vector_operand(Cursor& c) {
  Operand o;
  const uint32_t begin = c.current().span.begin;
  o.kind = Operand::Kind::kVector;
  c.expect('{');
  do {
    o.items.push_back(parse_operand(c));
  } while (c.take(','));
  c.expect('}');
  o.span = c.since(begin);
  return o;
}

Operand address_operand(Cursor& c) {
  Operand o;
  const uint32_t begin = c.current().span.begin;
  o.kind = Operand::Kind::kAddress;
  c.expect('[');
  o.items.push_back(c.is_word() ? name_operand(c) : plain_number(c));
  while (c.is('+') || c.is('-')) {
    bool minus = c.take('-');
    if (!minus) {
      c.expect('+');
      minus = c.take('-');
    }
    const uint64_t value = c.integer("an offset");
    o.integer += minus ? uint64_t{0} - value : value;
  }
  if (c.take(',')) {
    if (c.is_word()) {  // a sampler
      o.items.push_back(name_operand(c));
      c.expect(',');
    }
    Operand coordinates = vector_operand(c);
    for (Operand& item : coordinates.items) o.items.push_back(std::move(item));
  }
  c.expect(']');
  o.span = c.since(begin);
  return o;
}

// Textures, samplers and surfaces: instructions that use them are refused by name.
bool opaque(const Declaration& d) {
  return d.space == "texref" || d.space == "samplerref" || d.space == "surfref";
}

void initialiser(Cursor& c, Declaration& d) {
  const Cursor::Nesting nesting(c);
  c.count_value();
  if (c.take('{')) {
    if (c.take('}')) return;
    do {
      initialiser(c, d);
    } while (c.take(','));
    c.expect('}');
    return;
  }
  if (c.is_word() && c.slice_current() == "generic") {
    c.advance();
    c.expect('(');
    d.generic_names = true;
    Operand o = name_operand(c);
    if (c.take('+')) o.integer = c.integer("an offset");
    c.expect(')');
    if (c.take('+')) o.integer = c.integer("an offset");
    d.initial.push_back(std::move(o));
    return;
  }
  if (c.is_word()) {
    Operand o = name_operand(c);
    if (c.take('+')) o.integer = c.integer("an offset");
    d.initial.push_back(std::move(o));
    return;
  }
  d.initial.push_back(number_operand(c));
}

}  // namespace

Operand parse_operand(Cursor& c) {
  const Cursor::Nesting nesting(c);
  const uint32_t begin = c.current().span.begin;
  Operand o;
  if (c.is('[')) {
    o = address_operand(c);
  } else if (c.is('{')) {
    o = vector_operand(c);
  } else if (c.take('!')) {
    o = name_operand(c);
    o.negated = true;
  } else if (c.is_word()) {
    o = name_operand(c);
  } else {
    o = number_operand(c);
  }
  if (c.take('|')) o.second.push_back(name_operand(c));
  o.span = c.since(begin);
  return o;
}

void parse_variables(Cursor& c, std::vector<Declaration>& out, bool external) {
  Declaration d;
  d.kind = c.is_dot(".param") ? Declaration::Kind::kParameter : Declaration::Kind::kVariable;
  d.space = c.slice_current().substr(1);
  d.external = external;
  c.advance();
  while (c.is_any_dot()) {
    const std::string_view word = c.slice_current().substr(1);
    if (word == "texref" || word == "samplerref" || word == "surfref") {
      d.type = Type::kB64;
      d.space = word;
    } else if (auto type = parse_type(word)) {
      d.type = *type;
    } else if (word == "align") {
      c.advance();
      d.align = c.small("an alignment");
      if (d.align == 0 || (d.align & (d.align - 1)) != 0) {
        c.fail_previous("an alignment is a power of two");
      }
      continue;
    } else if (word == "v2") {
      d.vector = 2;
    } else if (word == "v4") {
      d.vector = 4;
    } else if (word == "ptr" || word == "global" || word == "shared" || word == "const" ||
               word == "local" || word == "unified" || word == "managed") {
      // .attribute-like words of parameters and variables that change nothing here
    } else if (word == "attribute") {
      c.advance();
      c.skip_brackets('(', ')');
      continue;
    } else {
      c.fail("expected a type");
    }
    c.advance();
  }
  if (d.type == Type::kNone) c.fail("expected a type such as .b32");
  bool more = true;
  while (more) {
    d.span = c.current().span;
    d.name = c.word("a name");
    d.count = 1;
    d.array = false;
    d.initial.clear();
    bool open = false;
    while (c.take('[')) {
      d.array = true;
      if (c.is(']')) {
        open = true;
      } else {
        const uint64_t count = uint64_t{d.count} * c.small("a number of elements");
        if (count > 0x7fffffffu) c.fail_previous("the array is too large");
        d.count = static_cast<uint32_t>(count);
      }
      c.expect(']');
    }
    if (c.take('=')) {
      if (opaque(d)) {
        c.skip_brackets('{', '}');  // { addr_mode_0 = wrap }
      } else {
        initialiser(c, d);
      }
    }
    if (open) d.count = static_cast<uint32_t>(d.initial.size());
    out.push_back(d);
    // The commas of a parameter list separate whole declarations.
    more = d.kind != Declaration::Kind::kParameter && c.take(',');
  }
  if (d.kind == Declaration::Kind::kParameter) {
    c.take(';');  // a .param inside a body ends so, one in the list of an entry does not
  } else {
    c.expect(';');
  }
}

}  // namespace ptxvm::text
