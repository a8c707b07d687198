// SPDX-License-Identifier: MIT
// Operands and variable declarations.
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

Operand number_operand(Cursor& c) {
  Operand o;
  const uint32_t begin = c.current().span.begin;
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
  o.items.push_back(c.is_word() ? name_operand(c) : number_operand(c));
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
