// SPDX-License-Identifier: MIT
// Products of fragments with operands other than f16 and bf16 (PTX ISA 9.7.14.5).
#pragma once

#include <cstdint>

namespace ptxvm::num {

/// What an operand's words hold.
enum class Element : uint8_t { kTf32, kE4m3, kE5m2, kS8, kU8, kS4, kU4, kB1 };
enum class Sum : uint8_t { kF32, kF16, kS32 };

struct TensorKind {
  Element a = Element::kTf32, b = Element::kTf32;
  Sum sum = Sum::kF32;
  bool saturate = false;   ///< s32 sums stop at the ends of their range.
  bool exclusive = false;  ///< b1: counts the bits of a xor b, not of a and b.
};

/// D = A * B + C for one tile of 8 columns and `rows` (8 or 16) rows; `steps` times 16 bytes of k.
/// `a`, `b`, `c`, `d` are the registers of the fragments, 32 lanes each; d may be c. Products are
/// added one by one in the order of k; sums of f16 are kept in f32 and rounded once.
void multiply_fragments(const TensorKind& kind, int rows, int steps, uint32_t* const* d,
                        const uint32_t* const* a, const uint32_t* const* b,
                        const uint32_t* const* c);

}  // namespace ptxvm::num
