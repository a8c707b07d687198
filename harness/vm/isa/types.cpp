// SPDX-License-Identifier: MIT
#include "isa/types.h"

#include <array>

namespace ptxvm {
namespace {

struct Row {
  Type type;
  std::string_view name;
  int bits;
  TypeKind kind;
};

constexpr std::array kRows = {
    Row{Type::kNone, "none", 0, TypeKind::kNone},
    Row{Type::kPred, "pred", 1, TypeKind::kPred},
    Row{Type::kB8, "b8", 8, TypeKind::kBits},
    Row{Type::kB16, "b16", 16, TypeKind::kBits},
    Row{Type::kB32, "b32", 32, TypeKind::kBits},
    Row{Type::kB64, "b64", 64, TypeKind::kBits},
    Row{Type::kB128, "b128", 128, TypeKind::kBits},
    Row{Type::kU8, "u8", 8, TypeKind::kUnsigned},
    Row{Type::kU16, "u16", 16, TypeKind::kUnsigned},
    Row{Type::kU32, "u32", 32, TypeKind::kUnsigned},
    Row{Type::kU64, "u64", 64, TypeKind::kUnsigned},
    Row{Type::kS8, "s8", 8, TypeKind::kSigned},
    Row{Type::kS16, "s16", 16, TypeKind::kSigned},
    Row{Type::kS32, "s32", 32, TypeKind::kSigned},
    Row{Type::kS64, "s64", 64, TypeKind::kSigned},
    Row{Type::kF16, "f16", 16, TypeKind::kFloat},
    Row{Type::kF16x2, "f16x2", 32, TypeKind::kFloat},
    Row{Type::kBf16, "bf16", 16, TypeKind::kFloat},
    Row{Type::kBf16x2, "bf16x2", 32, TypeKind::kFloat},
    Row{Type::kTf32, "tf32", 32, TypeKind::kFloat},
    Row{Type::kF32, "f32", 32, TypeKind::kFloat},
    Row{Type::kF32x2, "f32x2", 64, TypeKind::kFloat},
    Row{Type::kF64, "f64", 64, TypeKind::kFloat},
};

const Row& row(Type t) {
  return kRows[static_cast<size_t>(t)];
}

}  // namespace

int bits(Type t) {
  return row(t).bits;
}
TypeKind kind(Type t) {
  return row(t).kind;
}
std::string_view name(Type t) {
  return row(t).name;
}

std::optional<Type> parse_type(std::string_view text) {
  for (const Row& r : kRows) {
    if (r.type != Type::kNone && r.name == text) return r.type;
  }
  return std::nullopt;
}

Type doubled(Type t) {
  switch (t) {
    case Type::kU8:
      return Type::kU16;
    case Type::kU16:
      return Type::kU32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS8:
      return Type::kS16;
    case Type::kS16:
      return Type::kS32;
    case Type::kS32:
      return Type::kS64;
    case Type::kB16:
      return Type::kB32;
    case Type::kB32:
      return Type::kB64;
    default:
      return Type::kNone;
  }
}

}  // namespace ptxvm
