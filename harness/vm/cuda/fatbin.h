// SPDX-License-Identifier: MIT
// The PTX that nvcc puts into a program.
#pragma once

#include <string>
#include <vector>

namespace ptxvm::cuda {

/// One entry of a fat binary.
struct FatEntry {
  bool ptx = false;  ///< Machine code otherwise.
  int sm = 0;        ///< 90 for sm_90 and sm_90a.
  std::string text;  ///< Of PTX.
};

/// What stands for one translation unit, in all its variants.
using FatBinary = std::vector<FatEntry>;

/// Reads what `__cudaRegisterFatBinary` is given: one fat binary, or those that nvcc -rdc=true has
/// linked. Throws `Error` where it is something else, and for compressed PTX whose library this
/// system does not have.
std::vector<FatBinary> read_fat_binaries(const void* wrapper);

/// The PTX that a card runs: of the targets up to its own the last. Null where there is none.
const FatEntry* choose(const FatBinary& binary, int sm);

}  // namespace ptxvm::cuda
