// SPDX-License-Identifier: MIT
// The result file, schema version 1 (build/fa_schema results prints its JSON schema).
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/results/row.h"

namespace fa {

inline constexpr int kResultsSchema = 1;

/// The file exists and is not one that this run may continue. Exit code 2.
struct ForeignResults : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What must be equal for rows to stand in one file.
struct FileIdentity {
  Json generator;  ///< compared: version, git_sha, git_dirty, nvcc, flags
  Json device;     ///< compared: kind, name, sm, memory, driver, power_limit
  Json policy;     ///< compared: what the new one has
};

/// A result file as it was read.
struct ResultsDocument {
  FileIdentity identity;
  std::vector<Row> rows;
  Json besides;  ///< all of it but the rows
};

/// The document at path; nothing when there is no file or an empty one. Throws ForeignResults when
/// it is not a result file of this schema, io::FileError when it cannot be read.
std::optional<ResultsDocument> read_results(const std::filesystem::path& path);

/// The rows of one result file, written after every change. Several processes may add to one file;
/// what others have put into the document beside the rows stays.
class ResultsFile {
 public:
  /// Continues an existing file with the same identity or starts a new one. Throws ForeignResults
  /// when the file holds something else, io::FileError when the path cannot be written; both
  /// before any work is done and without a change to the file. `overwrite` starts afresh whatever
  /// is there.
  ResultsFile(std::filesystem::path path, FileIdentity identity, bool overwrite);

  std::size_t size() const { return rows_.size(); }

  /// The row with this key, nullptr when there is none.
  const Row* find(const RowKey& key) const;
  /// Reads the file again, replaces the rows with the same keys, or appends, and writes it. Throws
  /// as the constructor.
  void put(std::span<const Row> rows);

 private:
  void read();
  void continue_from(ResultsDocument document);

  std::filesystem::path path_;
  FileIdentity identity_;
  bool afresh_;                  ///< nothing that is in the file counts
  Json there_ = Json::object();  ///< what was in the file, without rows
  std::vector<Row> rows_;
};

/// The whole document.
Json results_document(const FileIdentity& identity, std::span<const Row> rows);

}  // namespace fa
