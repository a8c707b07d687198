// SPDX-License-Identifier: MIT
#include "isa/table.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <unordered_map>

namespace ptxvm::isa {
namespace {

constexpr Check EXACT{CheckKind::kExact, 0};
constexpr Check TENSOR{CheckKind::kTensor, 0};
constexpr Check EFFECT{CheckKind::kEffect, 0};
constexpr Check ULP(int n) {
  return {CheckKind::kUlp, n};
}

constexpr Row kRows[] = {
#define ROW(binder, pattern, operands, sm, arch, lanes, check, count, ...) \
  {#binder, pattern, operands, sm, arch, Lanes::lanes, check, CountClass::count, {}, {__VA_ARGS__}},
#define OP(binder, pattern, operands, sm, ...) \
  ROW(binder, pattern, operands, sm, Specific::kNo, __VA_ARGS__)
#define OPA(binder, pattern, operands, sm, ...) \
  ROW(binder, pattern, operands, sm, Specific::kOnly, __VA_ARGS__)
#define OPL(binder, pattern, operands, sm, ...) \
  ROW(binder, pattern, operands, sm, Specific::kFrom, __VA_ARGS__)
#define NO(pattern, reason) \
  {{}, pattern, {}, 0, Specific::kNo, Lanes::kAny, EFFECT, CountClass::kControl, reason, {}},
#include "isa/isa.def"
#undef ROW
#undef OP
#undef OPA
#undef OPL
#undef NO
};

// An alternative of a group: the modifiers it adds, with their dots.
struct Piece {
  std::vector<std::string_view> alternatives;
  bool optional = false;
  bool choice = false;
};

[[noreturn]] void bad_row(std::string_view what, std::string_view row) {
  throw std::logic_error("isa.def: " + std::string(what) + " in '" + std::string(row) + "'");
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == separator) {
      out.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  return out;
}

std::vector<Piece> split_pattern(std::string_view pattern) {
  std::vector<Piece> pieces;
  size_t i = 0;
  auto literal_end = [&](size_t from) {
    size_t e = from;
    while (e < pattern.size() && pattern[e] != '.' && pattern[e] != '[' && pattern[e] != '{') ++e;
    return e;
  };
  size_t end = literal_end(0);
  pieces.push_back({{pattern.substr(0, end)}, false, false});
  i = end;
  while (i < pattern.size()) {
    bool optional = false;
    if (pattern[i] == '[') {
      optional = true;
      ++i;
    }
    if (pattern[i] != '.') bad_row("expected '.'", pattern);
    ++i;
    Piece piece;
    piece.optional = optional;
    piece.choice = optional;
    if (pattern[i] == '{') {
      size_t close = pattern.find('}', i);
      if (close == std::string_view::npos) bad_row("missing '}'", pattern);
      piece.alternatives = split(pattern.substr(i + 1, close - i - 1), '|');
      piece.choice = true;
      i = close + 1;
    } else {
      size_t e = i;
      while (e < pattern.size() && pattern[e] != '[' && pattern[e] != ']' &&
             (optional || pattern[e] != '.')) {
        ++e;
      }
      piece.alternatives = {pattern.substr(i, e - i)};
      i = e;
    }
    if (optional) {
      if (i >= pattern.size() || pattern[i] != ']') bad_row("missing ']'", pattern);
      ++i;
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

int64_t to_number(std::string_view text, std::string_view row) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) bad_row("bad number", row);
  return value;
}

// Types of a mnemonic, in order; `t` in an operand is the last of them.
struct MnemonicTypes {
  std::vector<Type> types;
  int vector = 1;
  int columns = 0;     // N of a shape mMnNkK
  int dimensions = 0;  // of 1d to 5d
  int repeat = 1;      // of x1 to x128
};

MnemonicTypes types_of(const std::vector<Token>& tokens) {
  MnemonicTypes out;
  for (size_t i = 1; i < tokens.size(); ++i) {
    std::string_view t = tokens[i].text;
    if (auto type = parse_type(t)) out.types.push_back(*type);
    if (t == "v2") out.vector = 2;
    if (t == "v4") out.vector = 4;
    if (t == "v8") out.vector = 8;
    if (t.size() == 2 && t[0] >= '1' && t[0] <= '5' && t[1] == 'd') out.dimensions = t[0] - '0';
    if (t.starts_with("x")) std::from_chars(t.data() + 1, t.data() + t.size(), out.repeat);
    const size_t n = t.find('n');
    if (t.starts_with("m64n")) {
      std::from_chars(t.data() + n + 1, t.data() + t.size(), out.columns);
    }
  }
  return out;
}

Type operand_type(std::string_view text, const MnemonicTypes& m, std::string_view row) {
  auto nth = [&](size_t n) {
    if (n >= m.types.size()) bad_row("operand names a type that the mnemonic lacks", row);
    return m.types[n];
  };
  if (text == "t") return nth(m.types.size() - 1);
  if (text == "t1") return nth(0);
  if (text == "t2") return nth(1);
  if (text == "2t") return doubled(nth(m.types.size() - 1));
  if (text == "p") return Type::kPred;
  if (auto type = parse_type(text)) return *type;
  bad_row("unknown operand '" + std::string(text) + "'", row);
}

OperandSpec parse_operand(std::string_view text, const MnemonicTypes& m, std::string_view row) {
  OperandSpec spec;
  auto take = [&](std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
  };
  spec.optional = take("?");
  if (spec.optional && take("90:")) spec.sm = 90;
  if (spec.optional && take("100:")) spec.sm = 100;
  if (take("=")) spec.role = Role::kWrite;
  spec.sink_only = take("_");
  if (take("+")) spec.role = Role::kReadWrite;
  spec.negatable = take("!");
  spec.parts = take("h:") ? 2 : take("b:") ? 4 : 0;
  spec.register_only = take("r:") || spec.role != Role::kRead;
  if (text.starts_with("[")) {
    spec.kind = OperandKind::kMemory;
    std::string_view inside = text.substr(1, text.size() - 2);
    if (inside == "P") {
      spec.passed = true;
    } else if (inside == "t") {
      spec.tensor = true;
    } else if (inside == "d") {
      spec.coordinates = m.dimensions;
    } else if (!inside.empty()) {
      spec.coordinates = static_cast<int>(to_number(inside, row));
    }
    return spec;
  }
  if (take("#")) {
    spec.kind = OperandKind::kImmediate;
    size_t dots = text.find("..");
    if (dots != std::string_view::npos) {
      const size_t slash = text.find('/');
      if (slash != std::string_view::npos) {
        spec.step = to_number(text.substr(slash + 1), row);
        text = text.substr(0, slash);
      }
      spec.lo = to_number(text.substr(0, dots), row);
      spec.hi = to_number(text.substr(dots + 2), row);
    }
    return spec;
  }
  if (text == "L") {
    spec.kind = OperandKind::kLabel;
    return spec;
  }
  if (text == "T") {
    spec.kind = OperandKind::kTargets;
    return spec;
  }
  if (text == "F") {
    spec.kind = OperandKind::kFunction;
    return spec;
  }
  if (text.starts_with("{")) {
    size_t space = text.find(' ');
    spec.kind = OperandKind::kVector;
    const std::string_view count = text.substr(1, space - 1);
    const auto factor = [&](size_t from) {
      return count.size() < from ? 1 : static_cast<int>(to_number(count.substr(from), row));
    };
    spec.count = count.starts_with("n/")  ? m.columns / factor(2)
                 : count.starts_with("x") ? m.repeat * factor(2)
                                          : factor(0);
    spec.type = operand_type(text.substr(space + 1, text.size() - space - 2), m, row);
    const bool half =
        kind(spec.type) == TypeKind::kFloat && spec.type != Type::kF32 && spec.type != Type::kF64;
    spec.register_only |= half;
    return spec;
  }
  if (text == "v") {  // scalar or vector, as .v2 and .v4 say
    spec.relaxed = spec.braces = true;
    spec.type = operand_type("t", m, row);
    spec.count = bits(spec.type) == 128 ? 2 : m.vector;
    if (m.vector > 1) spec.kind = OperandKind::kVector;
    return spec;
  }
  size_t bar = text.find('|');
  if (bar != std::string_view::npos) {
    spec.pair = true;
    spec.pair_needed = text.ends_with("|p");
    text = text.substr(0, bar);
  }
  if (text.ends_with("*")) {
    spec.relaxed = true;
    text.remove_suffix(1);
  }
  spec.type = operand_type(text, m, row);
  if (bits(spec.type) == 128) spec.count = 2;
  return spec;
}

std::vector<OperandSpec> parse_operands(const Row& row, const std::vector<Token>& tokens) {
  std::vector<OperandSpec> out;
  if (row.operands.empty()) return out;
  MnemonicTypes m = types_of(tokens);
  for (std::string_view item : split(row.operands, ',')) {
    while (item.starts_with(' ')) item.remove_prefix(1);
    out.push_back(parse_operand(item, m, row.pattern));
  }
  return out;
}

bool is_family(const Row& row) {
  return row.pattern.ends_with(".*");
}

std::string join(const std::vector<Token>& tokens) {
  std::string text(tokens[0].text);
  for (size_t i = 1; i < tokens.size(); ++i) {
    text += '.';
    text += tokens[i].text;
  }
  return text;
}

std::optional<Space> parse_space(std::string_view text) {
  constexpr std::pair<std::string_view, Space> kSpaces[] = {
      {"global", Space::kGlobal},      {"shared", Space::kShared},
      {"shared::cta", Space::kShared}, {"shared::cluster", Space::kSharedCluster},
      {"local", Space::kLocal},        {"const", Space::kConst},
      {"param", Space::kParam},        {"param::entry", Space::kParam}};
  for (const auto& [name, space] : kSpaces) {
    if (name == text) return space;
  }
  return std::nullopt;
}

// What a spelling is counted as: ld and st by the space that they name.
CountClass count_of(const Row& row, Space space) {
  const bool load = row.binder == "ld";
  if (!load && row.binder != "st") return row.count;
  switch (space) {
    case Space::kGlobal:
      return load ? CountClass::kLoadGlobal : CountClass::kStoreGlobal;
    case Space::kShared:
    case Space::kSharedCluster:
      return load ? CountClass::kLoadShared : CountClass::kStoreShared;
    case Space::kLocal:
      return load ? CountClass::kLoadLocal : CountClass::kStoreLocal;
    case Space::kParam:
      return load ? CountClass::kLoadParam : CountClass::kStoreGeneric;
    case Space::kConst:
      return load ? CountClass::kLoadConst : CountClass::kStoreGeneric;
    case Space::kGeneric:
      break;
  }
  return row.count;
}

// What the modifiers say that is not of one instruction alone.
void read_modifiers(Spelling& s) {
  const auto has = [&](std::string_view word) {
    return std::any_of(s.tokens.begin(), s.tokens.end(),
                       [&](const Token& t) { return t.text == word; });
  };
  for (auto t = s.tokens.rbegin(); t != s.tokens.rend(); ++t) {
    s.space = parse_space(t->text).value_or(s.space);
  }
  s.type = parse_type(s.tokens.back().text).value_or(Type::kNone);
  s.ordering.acquire = has("acq_rel") || has("acquire");
  s.ordering.release = has("acq_rel") || has("release");
  s.ordering.strong = s.ordering.acquire || s.ordering.release || has("volatile") ||
                      has("relaxed") || s.traits().atomic;
  s.ordering.block_scope = has("cta");
  s.ordering.rounds = has("add") && kind(s.type) == TypeKind::kFloat;
  s.combine = has("and")   ? Combine::kAnd
              : has("or")  ? Combine::kOr
              : has("xor") ? Combine::kXor
                           : Combine::kNone;
  s.exchanges = has("exch");
  s.compares = has("cas");
  s.refetches = s.ordering.strong || has("cv");
  s.group = has("cta_group::1") ? 1 : has("cta_group::2") ? 2 : 0;
  s.count = count_of(*s.row, s.space);
}

// Whether a vector, an address or a predicate stands where the other spelling has none, which tells
// their statements apart.
bool differ(const Spelling& a, const Spelling& b) {
  const auto shape = [](const OperandSpec& o) {
    const bool stands_out = o.kind == OperandKind::kVector || o.kind == OperandKind::kMemory;
    return std::pair(stands_out ? o.kind : OperandKind::kValue, o.type == Type::kPred);
  };
  return !std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(),
                     [&](const auto& x, const auto& y) { return shape(x) == shape(y); });
}

struct Table {
  std::vector<Spelling> spellings;
  std::unordered_map<std::string_view, const Spelling*> by_text;
  std::vector<const Row*> families;

  Table() {
    for (uint32_t r = 0; r < std::size(kRows); ++r) {
      const Row& row = kRows[r];
      if (is_family(row)) {
        families.push_back(&row);
        continue;
      }
      for (std::vector<Token>& tokens : expand(row.pattern)) {
        Spelling s;
        s.text = join(tokens);
        s.row = &row;
        s.row_index = r;
        s.index = static_cast<uint32_t>(spellings.size());
        s.tokens = std::move(tokens);
        read_modifiers(s);
        s.operands = parse_operands(row, s.tokens);
        spellings.push_back(std::move(s));
      }
    }
    by_text.reserve(spellings.size());
    for (Spelling& s : spellings) {
      auto [it, added] = by_text.emplace(s.text, &s);
      if (added) continue;
      for (Spelling* other = &spellings[it->second->index]; other != &s;) {
        if (!differ(*other, s)) bad_row("two rows spell '" + s.text + "'", s.text);
        if (!other->overload) other->overload = &s;
        other = &spellings[other->overload->index];
      }
    }
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

std::vector<std::vector<Token>> expand(std::string_view pattern) {
  std::vector<std::vector<Token>> out(1);
  for (const Piece& piece : split_pattern(pattern)) {
    std::vector<std::vector<Token>> next;
    if (piece.optional) next = out;
    for (std::string_view alternative : piece.alternatives) {
      for (std::vector<Token> prefix : out) {
        for (std::string_view t : split(alternative, '.')) prefix.push_back({t, piece.choice});
        next.push_back(std::move(prefix));
      }
    }
    out = std::move(next);
  }
  return out;
}

std::span<const Row> rows() {
  return kRows;
}
std::span<const Spelling> spellings() {
  return table().spellings;
}

const Spelling* find(std::string_view mnemonic) {
  auto it = table().by_text.find(mnemonic);
  return it == table().by_text.end() ? nullptr : it->second;
}

const Spelling* in_local_memory(const Spelling& spelling) {
  std::vector<Token> tokens = spelling.tokens;
  for (Token& t : tokens) {
    if (parse_space(t.text)) t.text = "local";
  }
  return find(join(tokens));
}

const Row* find_family(std::string_view mnemonic) {
  const Row* best = nullptr;
  for (const Row* row : table().families) {
    std::string_view stem = row->pattern.substr(0, row->pattern.size() - 2);
    bool fits = mnemonic == stem || (mnemonic.starts_with(stem) && mnemonic.size() > stem.size() &&
                                     mnemonic[stem.size()] == '.');
    if (fits && (!best || row->pattern.size() > best->pattern.size())) best = row;
  }
  return best;
}

std::string explain_unknown(std::string_view mnemonic) {
  std::vector<std::string_view> parts = split(mnemonic, '.');
  std::vector<std::string_view> sorted = parts;
  std::sort(sorted.begin(), sorted.end());
  const std::string_view base = parts[0];

  bool base_known = false;
  size_t longest = 0;  // tokens that some spelling shares from the front
  std::vector<std::string_view> expected;
  bool may_end = false;
  for (const Spelling& s : spellings()) {
    if (s.tokens[0].text != base) continue;
    base_known = true;
    if (s.tokens.size() == parts.size()) {
      std::vector<std::string_view> other;
      for (const Token& t : s.tokens) other.push_back(t.text);
      std::sort(other.begin(), other.end());
      if (other == sorted) return "the order in the PTX ISA is '" + s.text + "'";
    }
    size_t shared = 0;
    while (shared < parts.size() && shared < s.tokens.size() &&
           s.tokens[shared].text == parts[shared]) {
      ++shared;
    }
    if (shared < longest) continue;
    if (shared > longest) {
      longest = shared;
      expected.clear();
      may_end = false;
    }
    if (shared == s.tokens.size()) {
      may_end = true;
    } else if (std::find(expected.begin(), expected.end(), s.tokens[shared].text) ==
               expected.end()) {
      expected.push_back(s.tokens[shared].text);
    }
  }
  if (!base_known) return "there is no instruction '" + std::string(base) + "'";

  std::string note;
  if (longest < parts.size()) {
    note = "'." + std::string(parts[longest]) + "' does not fit here";
  } else {
    note = "the mnemonic is not complete";
  }
  if (!expected.empty()) {
    note += "; after '";
    for (size_t i = 0; i < longest; ++i) note += (i ? "." : "") + std::string(parts[i]);
    note += "' may follow";
    constexpr size_t kShown = 12;
    for (size_t i = 0; i < std::min(expected.size(), kShown); ++i) {
      note += (i ? ", ." : " .") + std::string(expected[i]);
    }
    if (expected.size() > kShown) note += ", ...";
    if (may_end) note += " or nothing";
  }
  return note;
}

}  // namespace ptxvm::isa
