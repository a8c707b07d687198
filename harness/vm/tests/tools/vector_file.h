// SPDX-License-Identifier: MIT
// The files of golden vectors (JSON lines): a header, input sets, then results by spelling.
//
//   {"schema":"ptxvm-vectors-1","group":"float","source":{"gpu":...},"notes":{...}}
//   {"set":"f32 f32","rows":[["3f800000 33000000","why"], ...]}
//   {"op":"add.rz.f32","form":"","in":"f32 f32","out":["3f800000 ...", ...]}
//
// Numbers are hexadecimal bits. `out` has a string for each result word: predicates are 0 or 1, a
// carry flag follows the value; whole-warp instructions take 32 rows at a time.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/inputs.h"

namespace ptxvm_vectors {

struct Record {
  std::string op, form, set;
  std::vector<std::vector<uint64_t>> out;  ///< [word][row]
};

struct VectorFile {
  std::string group;
  std::map<std::string, std::string> source;  ///< gpu, driver, assembler, date, generator, seed
  std::map<std::string, std::string> notes;
  std::map<std::string, InputSet> sets;
  std::vector<Record> records;
};

void write(const VectorFile& file, const std::filesystem::path& path);
/// Throws std::runtime_error for text that `write` did not make.
VectorFile read(const std::filesystem::path& path);

}  // namespace ptxvm_vectors
