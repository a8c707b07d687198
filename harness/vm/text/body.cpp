// SPDX-License-Identifier: MIT
// Function bodies: declarations, labels, statements.
#include <algorithm>

#include "isa/table.h"
#include "text/cursor.h"

namespace ptxvm::text {
namespace {

class BodyParser {
 public:
  BodyParser(Cursor& c, Entry& entry) : c_(c), entry_(entry) {}

  void run() {
    c_.expect('{');
    entry_.defined = true;
    while (!c_.is('}') || scope_ != 0) {
      if (c_.at_end()) c_.fail("the body of '" + std::string(entry_.name) + "' is not closed");
      try {
        item();
      } catch (const SyntaxError&) {
        c_.skip_to_next_statement();
      }
    }
    c_.expect('}');
  }

 private:
  std::vector<Declaration>& declarations() { return entry_.scopes[scope_].declarations; }

  void item() {
    if (c_.take('{')) {
      entry_.scopes.push_back({static_cast<int>(scope_), {}});
      scope_ = static_cast<uint32_t>(entry_.scopes.size() - 1);
    } else if (c_.is('}')) {
      c_.advance();
      scope_ = static_cast<uint32_t>(entry_.scopes[scope_].parent);
    } else if (c_.take(';')) {
    } else if (c_.is_any_dot()) {
      directive();
    } else if (c_.is_word() && c_.ahead(1).kind == TokenKind::kSymbol &&
               c_.ahead(1).symbol == ':') {
      label();
    } else {
      statement();
    }
  }

  void directive() {
    if (c_.take_dot(".loc")) {
      loc();
    } else if (c_.take_dot(".reg")) {
      registers();
    } else if (c_.is_dot(".local") || c_.is_dot(".shared") || c_.is_dot(".param")) {
      parse_variables(c_, declarations(), false);
    } else if (c_.take_dot(".pragma")) {
      c_.skip_past(';');
    } else {
      c_.fail("this directive cannot stand in a body");
    }
  }

  void loc() {
    Loc l;
    l.file = static_cast<int>(c_.file_number());
    l.line = static_cast<int>(c_.small("a line"));
    l.column = static_cast<int>(c_.small("a column"));
    while (c_.take(',')) {
      std::string_view key = c_.word("function_name or inlined_at");
      if (key == "function_name") {
        l.function = c_.word("a label");
        if (c_.take('+')) c_.integer("an offset");
      } else if (key == "inlined_at") {
        l.inlined = true;
        l.at_file = static_cast<int>(c_.file_number());
        l.at_line = static_cast<int>(c_.small("a line"));
        l.at_column = static_cast<int>(c_.small("a column"));
      } else {
        c_.fail_previous("expected function_name or inlined_at");
      }
    }
    entry_.locs.push_back(l);
    loc_ = static_cast<int>(entry_.locs.size() - 1);
  }

  void registers() {
    Declaration d;
    if (c_.take_dot(".v2")) d.vector = 2;
    if (c_.take_dot(".v4")) d.vector = 4;
    auto type = c_.is_any_dot() ? parse_type(c_.slice_current().substr(1)) : std::nullopt;
    if (!type) c_.fail("expected a register type such as .b32 or .pred");
    c_.advance();
    d.type = *type;
    if (d.vector > 1 && (d.type == Type::kPred || bits(d.type) * d.vector > 128)) {
      c_.fail_previous("a vector register has at most 128 bits and no predicates");
    }
    do {
      d.span = c_.current().span;
      d.name = c_.word("a register name");
      d.kind = Declaration::Kind::kRegister;
      d.count = 1;
      if (c_.take('<')) {
        d.kind = Declaration::Kind::kRegisterRange;
        d.count = c_.small("a number of registers");
        c_.expect('>');
      }
      declarations().push_back(d);
    } while (c_.take(','));
    c_.expect(';');
  }

  void label() {
    Declaration d;
    d.kind = Declaration::Kind::kLabel;
    d.span = c_.current().span;
    d.name = c_.slice_current();
    d.statement = static_cast<uint32_t>(entry_.statements.size());
    c_.advance();
    c_.advance();
    if (c_.take_dot(".branchtargets")) {
      d.kind = Declaration::Kind::kTargets;
      do {
        d.initial.push_back(parse_operand(c_));
      } while (c_.take(','));
      c_.expect(';');
    } else if (c_.is_dot(".callprototype") || c_.is_dot(".calltargets")) {
      c_.skip_past(';');
    }
    declarations().push_back(std::move(d));
  }

  void statement() {
    c_.count_statement();
    Statement s;
    const uint32_t begin = c_.current().span.begin;
    s.scope = scope_;
    s.loc = loc_;
    if (c_.take('@')) {
      Guard g;
      g.negated = c_.take('!');
      g.span = c_.current().span;
      g.name = c_.word("a predicate");
      s.guard = g;
    }
    const uint32_t opcode = c_.current().span.begin;
    c_.word("an instruction");
    while (c_.is_any_dot()) c_.advance();
    s.opcode_span = c_.since(opcode);
    s.opcode = c_.slice(s.opcode_span);
    const isa::Spelling* const spelling = isa::find(s.opcode);
    if (spelling && spelling->traits().call) {
      s.call = std::make_unique<Call>();
      call(*s.call);
    } else if (!c_.is(';')) {
      do {
        s.operands.push_back(parse_operand(c_));
      } while (c_.take(','));
    }
    if (!c_.is(';')) c_.fail("expected ',' or ';'");
    c_.advance();
    s.span = c_.since(begin);
    entry_.statements.push_back(std::move(s));
  }

  // call (returns), target, (arguments), prototype; all but the target may be left out.
  void call(Call& call) {
    if (c_.is('(')) {
      list(call.returns);
      c_.expect(',');
    }
    call.target = parse_operand(c_);
    if (!c_.take(',')) return;
    if (c_.is('(')) {
      list(call.arguments);
      if (!c_.take(',')) return;
    }
    c_.word("the name of a prototype or of a list of targets");
  }

  void list(std::vector<Operand>& out) {
    c_.expect('(');
    while (!c_.is(')')) {
      out.push_back(parse_operand(c_));
      if (!c_.take(',')) break;
    }
    c_.expect(')');
  }

  Cursor& c_;
  Entry& entry_;
  uint32_t scope_ = 0;
  int loc_ = -1;
};

std::optional<Dim3> dimensions(Cursor& c) {
  Dim3 d;
  d.x = c.small("a number");
  if (c.take(',')) d.y = c.small("a number");
  if (c.take(',')) d.z = c.small("a number");
  return d;
}

void parameters(Cursor& c, std::vector<Declaration>& out) {
  if (!c.take('(')) return;
  while (!c.is(')')) {
    if (c.is_dot(".reg")) c.fail("parameters in registers are not supported; .param is");
    if (!c.is_dot(".param")) c.fail("expected .param");
    parse_variables(c, out, false);
    if (!c.take(',')) break;
  }
  c.expect(')');
}

void directives(Cursor& c, Entry& entry) {
  while (c.is_any_dot()) {
    if (c.take_dot(".maxntid")) {
      entry.max_threads = dimensions(c);
    } else if (c.take_dot(".reqntid")) {
      entry.required_threads = dimensions(c);
    } else if (c.take_dot(".reqnctapercluster")) {
      entry.required_cluster = dimensions(c);
    } else if (c.take_dot(".minnctapersm")) {
      entry.min_blocks = std::max(c.small("a number"), 1U);
    } else if (c.take_dot(".maxnctapersm") || c.take_dot(".maxnreg") ||
               c.take_dot(".maxclusterrank") || c.take_dot(".abi_preserve") ||
               c.take_dot(".abi_preserve_control")) {
      c.small("a number");
    } else if (c.take_dot(".explicitcluster") || c.take_dot(".noreturn") ||
               c.take_dot(".blocksareclusters") || c.take_dot(".unique")) {
    } else if (c.take_dot(".pragma")) {
      c.skip_past(';');
    } else {
      c.fail("unknown directive");
    }
  }
}

// Keeps the errors of an entry or a function out of the module's.
template <class Read>
Entry apart(Cursor& c, Read read) {
  Entry entry;
  entry.scopes.push_back({});
  Errors errors(c.source());
  Errors& module = c.report_to(errors);
  const uint32_t begin = c.current().span.begin;
  try {
    read(entry);
  } catch (const SyntaxError&) {
    if (!entry.defined) c.skip_body();
  }
  c.report_to(module);
  module.move_within(c.since(begin), errors);
  entry.errors = errors.take();
  return entry;
}

}  // namespace

Entry parse_entry(Cursor& c) {
  return apart(c, [&](Entry& entry) {
    entry.span = c.current().span;
    entry.name = c.word("the name of the entry");
    parameters(c, entry.parameters);
    directives(c, entry);
    BodyParser(c, entry).run();
  });
}

Entry parse_function(Cursor& c) {
  return apart(c, [&](Entry& entry) {
    entry.function = true;
    parameters(c, entry.returns);
    entry.span = c.current().span;
    entry.name = c.word("a function name");
    parameters(c, entry.parameters);
    directives(c, entry);
    if (!c.take(';')) BodyParser(c, entry).run();
  });
}

}  // namespace ptxvm::text
