// SPDX-License-Identifier: MIT
// Fundamental types (PTX ISA 5.2) and what the instruction table needs to know about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptxvm {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF32x2,
  kF64,
};

enum class TypeKind : uint8_t { kNone, kPred, kBits, kUnsigned, kSigned, kFloat };

/// Width of a register of this type; 1 for a predicate.
int bits(Type t);
TypeKind kind(Type t);
/// `u32`, `f16x2`, ... without the dot.
std::string_view name(Type t);
std::optional<Type> parse_type(std::string_view text);
/// The integer or bit type of the same kind and twice the width, as `mul.wide` writes it.
Type doubled(Type t);

}  // namespace ptxvm
