// The result file, schema version 1 (results.schema.json beside this file).
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

/// The file cannot be read or written. Exit code 3.
struct ResultsIoError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What must be equal for rows to stand in one file.
struct FileIdentity {
  Json generator;  ///< compared: version, git_sha, git_dirty, nvcc, flags
  Json device;     ///< compared: kind, name, sm, memory, driver, power_limit
  Json policy;     ///< compared whole
};

/// A result file as it was read.
struct ResultsDocument {
  FileIdentity identity;
  std::vector<Row> rows;
};

/// The document at path; nothing when there is no file or an empty one. Throws ForeignResults when
/// it is not a result file of this schema.
std::optional<ResultsDocument> read_results(const std::filesystem::path& path);

/// The rows of one result file, written after every change.
class ResultsFile {
 public:
  /// Continues an existing file with the same identity or starts a new one. Throws ForeignResults
  /// when the file holds something else, ResultsIoError when the path cannot be written; both
  /// before any work is done and without a change to the file. `overwrite` starts afresh whatever
  /// is there.
  ResultsFile(std::filesystem::path path, FileIdentity identity, bool overwrite);

  std::size_t size() const { return rows_.size(); }
  const std::filesystem::path& path() const { return path_; }

  /// The row with this key, nullptr when there is none.
  const Row* find(const RowKey& key) const;
  /// Replaces the rows with the same keys, or appends, then writes the file.
  void put(std::span<const Row> rows);

 private:
  void continue_from(const ResultsDocument& document);

  std::filesystem::path path_;
  FileIdentity identity_;
  std::vector<Row> rows_;
};

/// The whole document.
Json results_document(const FileIdentity& identity, std::span<const Row> rows);

/// Writes text to a temporary file in the same folder, syncs it and renames it over path, so that
/// path holds the old or the new content at every moment. Throws ResultsIoError.
void write_atomically(const std::filesystem::path& path, const std::string& text);

/// Throws ResultsIoError with the reason unless a file can be created at path and then renamed over
/// what is there. Nothing at path changes.
void require_writable(const std::filesystem::path& path);

}  // namespace fa
