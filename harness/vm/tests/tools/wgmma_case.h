// SPDX-License-Identifier: MIT
// Cases of wgmma.mma_async: an instruction, data, and where the operands stand in shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "isa/table.h"
#include "ptxvm/launch.h"

namespace ptxvm_vectors {

constexpr uint32_t kRegionBytes = 49152;  ///< Shared memory of a case, from a multiple of 1024.
constexpr uint32_t kRegionB = 16384;      ///< Place of B in it; A stands at 0.
constexpr int kRows = 64;                 ///< M of every shape of wgmma.
constexpr int kMostColumns = 256;

/// Contents of the operands.
enum class Data {
  kSmall,    ///< Integers from -4 to 4: every sum is exact.
  kNormal,   ///< About normally distributed, mean 0, deviation 1.
  kSpecial,  ///< Infinities, NaN, zeros of both signs, subnormals, cancellation.
};
const char* name(Data data);

/// How an operand of `extent` rows of 32 bytes stands in shared memory.
struct Placement {
  ptxvm::Swizzle swizzle = ptxvm::Swizzle::k128B;
  bool mn = false;           ///< M or N contiguous instead of K.
  uint32_t start = 0;        ///< Bytes from the start of the region.
  uint32_t leading = 0;      ///< LBO
  uint32_t stride = 0;       ///< SBO
  uint32_t base_offset = 0;  ///< In units of 128 bytes.

  /// Byte of element (`row`, `k`) in the region, from the region's start. Other elements than
  /// those of 16 bits are K-major.
  uint32_t place(int row, int k, int element_bytes = 2) const;
  /// The descriptor without its start address.
  uint64_t descriptor() const;
};

/// E.g. `128B K-major`.
std::string describe(const Placement& p);

/// The densest placement that the descriptor's rules allow.
Placement packed(ptxvm::Swizzle swizzle, bool mn, int extent);

/// One case. Its name is unique.
struct WgmmaCase {
  const ptxvm::isa::Spelling* spelling = nullptr;
  std::string name, why;
  int m = kRows, n = 8;
  bool a_registers = false, half_sums = false, bfloat = false;
  std::string narrow_a, narrow_b;  ///< Types that are not of 16 bits; empty otherwise.
  bool satfinite = false;
  Data data = Data::kSmall;
  Placement a, b;
  bool accumulate = false;  ///< scale-d of the first instruction.
  int scale_a = 1, scale_b = 1;
  int issues = 1;    ///< How often; from the second on with scale-d 1.
  char guard = ' ';  ///< '@' with a true predicate, '!' with a negated true one, or none.

  std::string a_type() const { return narrow_a.empty() ? bfloat ? "bf16" : "f16" : narrow_a; }
  std::string b_type() const { return narrow_b.empty() ? bfloat ? "bf16" : "f16" : narrow_b; }
  bool integers() const { return narrow_a == "s8" || narrow_a == "u8"; }
  std::string sum_type() const { return integers() ? "s32" : half_sums ? "f16" : "f32"; }
  int element_bytes() const { return narrow_a.empty() ? 2 : narrow_a == "tf32" ? 4 : 1; }
  int depth() const { return 32 / element_bytes(); }  ///< K
};

/// All cases with operands of 16 bits: every spelling, then layouts and forms of some.
std::vector<WgmmaCase> wgmma_cases();
/// The same for tf32, 8-bit floating point and 8-bit integers.
std::vector<WgmmaCase> wgmma_narrow_cases();

/// Bits of a number in a type of an operand or of a sum.
uint64_t encode(float x, const std::string& type);

/// An operand's values as bits, by rows.
struct Matrix {
  int columns = 0;
  std::vector<uint64_t> bits;
};

/// Values of operand `a`, `b` or `c`; the first rows are the same however many there are.
Matrix make_matrix(char operand, const std::string& type, Data data, int rows, int columns);

/// The matrices that cases are made of, by name: `a f16 small` (64 x 16), `b ...` (256 x 16; a case
/// takes the first N rows) and `c f32 ...` (64 x 16, repeated along N). Those of other types have
/// as many columns as 32 bytes hold.
std::map<std::string, Matrix> make_matrices();
std::map<std::string, Matrix> make_narrow_matrices();
std::string matrix_name(char operand, const WgmmaCase& c);

/// Element of the initial accumulators.
uint64_t initial(const std::map<std::string, Matrix>& matrices, const WgmmaCase& c, int row,
                 int column);

/// Input words of the kernel of a case.
std::vector<uint64_t> wgmma_inputs(const WgmmaCase& c, const std::map<std::string, Matrix>& m);
size_t wgmma_output_words(const WgmmaCase& c);
/// A word of 64 bits among those that lie `header` bytes behind the beginning of the inputs.
std::string header_field(uint32_t header, uint32_t field);
/// PTX that loads both descriptors from there, and adds the addresses of their operands.
std::string load_descriptors(uint32_t header);
/// A whole module with one entry, `name`, for one block of 128 threads.
std::string wgmma_module(const WgmmaCase& c, const std::string& name);

/// Bits of D, [column][row], from the kernel's output words.
std::vector<std::vector<uint64_t>> wgmma_columns(const WgmmaCase& c,
                                                 const std::vector<uint64_t>& words);

}  // namespace ptxvm_vectors
