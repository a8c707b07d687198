// SPDX-License-Identifier: MIT
// The file of wgmma vectors (JSON lines): a header, the matrices that cases are made of, the
// distinct columns of results, then the cases.
//
//   {"schema":"ptxvm-wgmma-1","source":{"gpu":...}}
//   {"matrix":"a f16 small","columns":"10","bits":"3c00 ..."}
//   {"column":"0","bits":"3f800000 ... 64 rows"}
//   {"op":"wgmma...","case":"...","why":"...","d":"0-7"}
//
// Numbers are hexadecimal. `d` names the columns of D in order, as ranges: many cases have columns
// with the same bits, which are written once.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/wgmma_case.h"

namespace ptxvm_vectors {

struct WgmmaRecord {
  std::string op, name, why;
  std::vector<std::vector<uint64_t>> columns;  ///< D: [column][row]

  /// Names the case among all.
  std::string key() const { return op + ": " + name; }
};

struct WgmmaFile {
  std::map<std::string, std::string> source;
  std::map<std::string, Matrix> matrices;
  std::vector<WgmmaRecord> records;
};

void write_wgmma(const WgmmaFile& file, const std::filesystem::path& path);
/// Throws std::runtime_error for text that `write_wgmma` did not make.
WgmmaFile read_wgmma(const std::filesystem::path& path);

}  // namespace ptxvm_vectors
