// SPDX-License-Identifier: MIT
// How far a result may be from the hardware's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/family.h"
#include "tools/inputs.h"

namespace ptxvm_vectors {

/// A result within any of the three is accepted; all zero asks for the same number. Infinities
/// and NaN are the same bits in any case, and so is every result that the table calls exact.
struct Bound {
  double ulps = 0;  ///< Steps between neighbouring numbers.
  double absolute = 0;
  double relative = 0;
};

/// Formats of numbers in results.
enum class Format { kHalf, kBfloat, kSingle, kDouble };
double decode(uint64_t bits, Format f);
/// Whether two results are within the bound.
bool close(uint64_t a, uint64_t b, Format f, const Bound& bound);

/// The bound of an approximation, by its mnemonic without .ftz and x2.
struct StatedBound {
  std::string_view op;
  Bound bound;
  std::string_view reason;
};
const std::vector<StatedBound>& stated_bounds();

/// mma and wgmma: times the sum of |a*b| and |c|. The hardware truncates the terms at a common
/// exponent.
constexpr double kProductBound = 0x1p-21;

/// The bound for one row of a family, without that of a product.
Bound bound_of(const Family& family, const InputSet& inputs, size_t row);

/// Empty when the machine's word is as close to the hardware's as the row of the table asks; else
/// both, in words.
std::string difference(const Family& family, const InputSet& inputs, size_t row, size_t word,
                       uint64_t hardware, uint64_t machine);

}  // namespace ptxvm_vectors
