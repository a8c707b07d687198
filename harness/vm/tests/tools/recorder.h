// SPDX-License-Identifier: MIT
// Runs families on a device and gathers their results.
#pragma once

#include <string>
#include <vector>

#include "tools/device.h"
#include "tools/family.h"
#include "tools/vector_file.h"

namespace ptxvm_vectors {

struct Recording {
  std::vector<VectorFile> files;    ///< By group, without `source`.
  std::vector<std::string> errors;  ///< Families that the device refused, and what it said.
  std::string generator;            ///< Digest of all kernels and inputs.
};

/// Runs everything on `threads` host threads. `sets` gives the inputs by name.
Recording record(Device& device, const std::vector<Family>& families,
                 const std::map<std::string, InputSet>& sets, int threads);

/// The sets that the families name, freshly generated.
std::map<std::string, InputSet> generate_sets(const std::vector<Family>& families);

}  // namespace ptxvm_vectors
