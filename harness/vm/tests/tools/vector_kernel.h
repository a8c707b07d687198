// SPDX-License-Identifier: MIT
// PTX that applies a list of families to the rows of one input set.
#pragma once

#include <span>
#include <string>

#include "tools/family.h"
#include "tools/inputs.h"

namespace ptxvm_vectors {

constexpr uint32_t kResultWords = 4;  ///< 64-bit words a lane writes for each family.
constexpr size_t kFamiliesPerEntry = 16;

/// Families that share an input set and a kernel.
struct Job {
  const InputSet* inputs = nullptr;
  std::span<const Family* const> families;

  size_t rows() const { return inputs->rows.size(); }
  size_t input_words() const { return rows() * inputs->columns(); }
  size_t output_words() const { return families.size() * rows() * kResultWords; }
};

/// A whole module with one entry, `name`. Parameters: addresses of the inputs (row-major 64-bit
/// words) and of the results (family, row, word).
std::string make_module(const Job& job, const std::string& name);

}  // namespace ptxvm_vectors
