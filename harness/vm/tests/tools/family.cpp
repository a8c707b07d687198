// SPDX-License-Identifier: MIT
#include "tools/family.h"

#include <algorithm>

namespace ptxvm_vectors {
namespace {

using namespace ptxvm;
using isa::OperandKind;
using isa::OperandSpec;
using isa::Role;

bool has_token(const isa::Spelling& s, std::string_view token) {
  return std::any_of(s.tokens.begin(), s.tokens.end(),
                     [&](const isa::Token& t) { return t.text == token; });
}

bool any_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// A 32-bit operand that counts bits has edges of its own.
bool counts_bits(std::string_view binder, size_t operand, size_t operands) {
  if (any_of(binder, {"shl", "shr", "shf", "szext"})) return operand + 1 == operands;
  if (binder == "bfe" || binder == "bfi") return operand + 2 >= operands;
  return binder == "bmsk" && operand > 0;
}

std::string_view kind_of(Type t) {
  switch (t) {
    case Type::kPred:
      return "pred";
    case Type::kF16:
      return "f16";
    case Type::kBf16:
      return "bf16";
    case Type::kF16x2:
      return "f16x2";
    case Type::kBf16x2:
      return "bf16x2";
    case Type::kF32:
    case Type::kTf32:
      return "f32";
    case Type::kF32x2:
      return "f32x2";
    case Type::kF64:
      return "f64";
    default:
      return bits(t) <= 8 ? "i8" : bits(t) == 16 ? "i16" : bits(t) == 32 ? "i32" : "i64";
  }
}

std::string column_set(const isa::Spelling& s, bool optional = false) {
  const std::string_view binder = s.row->binder;
  std::string set;
  for (size_t i = 0; i < s.operands.size(); ++i) {
    const OperandSpec& o = s.operands[i];
    if (o.role == Role::kWrite || o.kind == OperandKind::kImmediate) continue;
    if (o.optional && !optional) continue;
    if (!set.empty()) set += ' ';
    const bool divisor = (binder == "div" || binder == "rem") && i == 2;
    set += counts_bits(binder, i, s.operands.size()) ? "count" : kind_of(o.type);
    if (divisor) set += "nonzero";
  }
  return set;
}

std::string special_set(const isa::Spelling& s) {
  const std::string_view binder = s.row->binder;
  if (binder == "redux" && s.operands[0].type == Type::kF32) return "redux f32";
  if (any_of(binder, {"shfl", "vote", "redux"})) return std::string(binder);
  if (binder == "match") return bits(s.operands[1].type) == 64 ? "match64" : "match32";
  if (binder == "fns") return "fns";
  if (binder == "isspacep") return "address";
  if (binder == "ldmatrix" || binder == "stmatrix") return "matrix";
  if (binder == "movmatrix") return "lanes";
  if (binder == "activemask") return "none";
  return {};
}

// `tensor A a-registers b-registers sums`: A the type of both operands, as far as inputs differ.
std::string tensor_set(const isa::Spelling& s) {
  const char* type = "integer";
  for (const char* t : {"tf32", "e4m3", "e5m2", "f64"}) {
    if (has_token(s, t)) type = t;
  }
  const auto& o = s.operands;
  const char* sums = o[3].type == Type::kF32   ? "f32"
                     : o[3].type == Type::kF64 ? "f64"
                     : o[3].type == Type::kB32 ? "f16"
                                               : "s32";
  return std::string("tensor ") + type + " " + std::to_string(o[1].count) + " " +
         std::to_string(o[2].count) + " " + sums;
}

// Every instruction that sets the carry flag, in front of one that reads it.
void add_carry_pairs(Family f, std::vector<Family>& out) {
  for (const char* producer : {"add.cc", "addc.cc", "sub.cc", "subc.cc", "mad.lo.cc", "mad.hi.cc",
                               "madc.lo.cc", "madc.hi.cc"}) {
    for (const char* type : {".u32", ".u64"}) {
      f.form = std::string("after ") + producer + type;
      f.set = "carry pairs";
      out.push_back(f);
    }
  }
}

int result_words(const isa::Spelling& s, const Family& f) {
  if (f.shape == Shape::kStMatrix) return 4;
  int words = 0;
  for (const OperandSpec& o : s.operands) {
    if (o.role == Role::kWrite) words += o.kind == OperandKind::kVector ? o.count : 1;
  }
  return words + (f.pair ? 1 : 0) + (writes_carry(f) ? 1 : 0);
}

std::string count_group(const Family& f) {
  if (f.spelling->row->binder == "video") return "video";
  switch (f.spelling->row->count) {
    case CountClass::kExp:
    case CountClass::kSpecial:
      return "special";
    case CountClass::kTensor:
    case CountClass::kLdMatrix:
    case CountClass::kStMatrix:
    case CountClass::kMovMatrix:
      return "matrix";
    case CountClass::kShuffle:
    case CountClass::kVote:
      return "warp";
    default:
      return std::string(name(f.spelling->row->count));
  }
}

void add_barrier_families(const isa::Spelling& s, std::vector<Family>& out) {
  Family f;
  f.spelling = &s;
  f.shape = Shape::kMbarrier;
  f.set = "mbarrier";
  f.outputs = 4;
  out.push_back(f);
  if (!s.operands.back().optional) return;
  f.form = kOptionalOperand;
  out.push_back(f);
}

void add_tensor_families(Family f, std::vector<Family>& out) {
  const isa::Spelling& s = *f.spelling;
  if (any_of(s.row->binder, {"mma_any", "mma_f64"})) {
    for (const char* data : {" small", " random"}) {
      f.set = tensor_set(s) + data;
      out.push_back(f);
    }
    return;
  }
  const std::string base = std::string(s.row->binder) + (has_token(s, "m16n8k8") ? " k8" : " k16") +
                           (has_token(s, "bf16") ? " bf16" : " f16");
  for (const char* data : {" small", " random", " special"}) {
    f.set = base + data;
    out.push_back(f);
  }
}

void add_tables(Family f, std::vector<Family>& out) {
  for (int lut = 0; lut < 256; ++lut) {
    f.form = "lut=" + std::to_string(lut);
    f.set = "lut";
    out.push_back(f);
  }
}

Shape shape_of(const isa::Row& row) {
  if (row.lanes == isa::Lanes::kMembers) return Shape::kMembers;
  if (row.binder == "stmatrix") return Shape::kStMatrix;
  if (row.binder == "ldmatrix") return Shape::kLdMatrix;
  if (row.binder == "isspacep") return Shape::kAddress;
  return row.binder.find("_carry") != row.binder.npos ? Shape::kCarryIn : Shape::kPlain;
}

// A spelling and its variants.
void add_families(const isa::Spelling& s, std::vector<Family>& out) {
  const isa::Row& row = *s.row;
  if (row.count == CountClass::kMbarrier) return add_barrier_families(s, out);
  Family f;
  f.spelling = &s;
  f.shape = shape_of(row);
  f.set = special_set(s);
  if (f.set.empty()) f.set = column_set(s) + (f.shape == Shape::kCarryIn ? " carry" : "");
  const auto& o = s.operands;
  f.pair = std::any_of(o.begin(), o.end(), [](const OperandSpec& x) { return x.pair; });
  const bool negatable =
      std::any_of(o.begin(), o.end(), [](const OperandSpec& x) { return x.negatable; });
  f.outputs = result_words(s, f);
  if (row.count == CountClass::kTensor) return add_tensor_families(f, out);
  if (row.binder == "lop3") return add_tables(f, out);
  out.push_back(f);
  if (row.binder == "video") {
    f.form = "picked";
    out.push_back(f);
  }
  if (f.shape == Shape::kCarryIn && !has_token(s, "cc")) add_carry_pairs(f, out);
  if (negatable) {
    f.form = "!p";
    f.pair = false;
    f.outputs = result_words(s, f);
    out.push_back(f);
  }
}

// An operand that may be left out, and that older targets do not have.
bool has_blackwell_operand(const isa::Spelling& s) {
  return std::any_of(s.operands.begin(), s.operands.end(),
                     [](const OperandSpec& o) { return o.optional && o.sm >= kBlackwell; });
}

}  // namespace

bool writes_carry(const Family& f) {
  return f.shape == Shape::kCarryIn && has_token(*f.spelling, "cc");
}

bool needs_blackwell(const Family& f) {
  return f.spelling->row->sm >= kBlackwell ||
         (f.form == kOptionalOperand && f.shape != Shape::kMbarrier);
}

std::string group(const Family& f) {
  return (needs_blackwell(f) ? "blackwell_" : "") + count_group(f);
}

std::string_view not_recorded(const isa::Row& row) {
  if (row.count == CountClass::kMbarrier && row.pattern.find("shared::cluster") != row.pattern.npos)
    return "of another block; judged by cluster kernels";
  if (row.binder == "elect") return "any lane may be elected";
  if (row.traits.vectors_pending) {
    return "pending: no hardware has been asked yet; other tests have what the PTX ISA says";
  }
  if (row.binder == "isspacep" && row.pattern.find("::") != row.pattern.npos)
    return "another name of .shared or .param, or differs from it in a cluster; judged by kernels";
  return {};
}

bool has_value(const isa::Row& row) {
  if (!row.reason.empty()) return false;
  return row.check.kind != isa::CheckKind::kEffect || row.count == CountClass::kMbarrier;
}

std::vector<Family> families() {
  std::vector<Family> out;
  for (const isa::Spelling& s : isa::spellings()) {
    const isa::Row& row = *s.row;
    if (row.sm >= kBlackwell || !has_value(row) || !not_recorded(row).empty()) continue;
    if (row.count == CountClass::kWgmma) continue;  // cases of their own: wgmma_case.h
    add_families(s, out);
  }
  return out;
}

std::vector<Family> blackwell_families() {
  std::vector<Family> out;
  for (const isa::Spelling& s : isa::spellings()) {
    if (!has_value(*s.row)) continue;
    if (s.row->sm >= kBlackwell) {
      add_families(s, out);
    } else if (has_blackwell_operand(s)) {
      out.push_back({&s, kOptionalOperand, Shape::kPlain, column_set(s, true)});
    }
  }
  return out;
}

}  // namespace ptxvm_vectors
