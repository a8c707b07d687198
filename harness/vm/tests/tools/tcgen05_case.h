// SPDX-License-Identifier: MIT
// Cases of tcgen05.mma (kind::f16, one block), in the terms of those of wgmma: M is 64 or 128, and
// what wgmma has in registers is in tensor memory.
#pragma once

#include "tools/wgmma_case.h"

namespace ptxvm_vectors {

/// All cases: types and shapes, then layouts, signs and several products of some.
std::vector<WgmmaCase> tcgen05_cases();

/// As make_matrices, with 128 rows of A and of the initial accumulators.
std::map<std::string, Matrix> make_tcgen05_matrices();

/// Input words of the kernel of a case: shared memory, descriptors, and columns of tensor memory.
std::vector<uint64_t> tcgen05_inputs(const WgmmaCase& c, const std::map<std::string, Matrix>& m);
size_t tcgen05_output_words(const WgmmaCase& c);
/// A whole module with one entry, `name`, for one block of 128 threads.
std::string tcgen05_module(const WgmmaCase& c, const std::string& name);

/// Bits of D, [column][row], from the kernel's output words. Throws std::runtime_error when tensor
/// memory that is not of D is no longer as the inputs have it.
std::vector<std::vector<uint64_t>> tcgen05_columns(const WgmmaCase& c,
                                                   const std::vector<uint64_t>& inputs,
                                                   const std::vector<uint64_t>& words);

}  // namespace ptxvm_vectors
