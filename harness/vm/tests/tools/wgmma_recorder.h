// SPDX-License-Identifier: MIT
// Runs cases of wgmma and of tcgen05.mma on a device, and judges their results.
#pragma once

#include <string>
#include <vector>

#include "tools/device.h"
#include "tools/wgmma_file.h"

namespace ptxvm_vectors {

struct WgmmaRecording {
  WgmmaFile file;                   ///< Without `source`.
  std::vector<std::string> errors;  ///< Cases that the device refused, and what it said.
  std::string generator;            ///< Digest of all kernels and inputs.
};

/// The module of a case, whichever instruction it is of.
std::string product_module(const WgmmaCase& c, const std::string& name);

/// Runs the cases on `threads` host threads, in their order.
WgmmaRecording record_wgmma(Device& device, const std::vector<WgmmaCase>& cases,
                            const std::map<std::string, Matrix>& matrices, int threads);

/// Small integers only: the exact result, as bits, [column][row].
std::vector<std::vector<uint64_t>> exact_product(const WgmmaCase& c,
                                                 const std::map<std::string, Matrix>& matrices);

/// Empty when the machine's D is as close to the hardware's as the case asks: the same bits on
/// small integers, and kProductBound of the sum of |a*b| and |c| elsewhere (and one step of an f16
/// accumulator). Else the first element that is not. `equal` counts elements of the same bits.
std::string wgmma_difference(const WgmmaCase& c, const std::map<std::string, Matrix>& matrices,
                             const std::vector<std::vector<uint64_t>>& hardware,
                             const std::vector<std::vector<uint64_t>>& machine, size_t& equal);

}  // namespace ptxvm_vectors
