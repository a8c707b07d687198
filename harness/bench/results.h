// The result file, schema version 1 (results.schema.json beside this file).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/attention/inputs.h"
#include "harness/attention/problem.h"

namespace fa {

inline constexpr int kResultsSchema = 1;

using Json = nlohmann::ordered_json;

/// The file exists and is not one that this run may continue. Exit code 2.
struct ForeignResults : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The file cannot be read or written. Exit code 3.
struct ResultsIoError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a row's Q, K and V were.
struct RowInputs {
  std::string name = "normal";  ///< a distribution, or "files"
  double spread = 1;

  RowInputs() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it names the kind, and no more.
  RowInputs(const InputKind& kind) : name(to_string(kind.distribution)), spread(kind.spread) {}

  bool operator==(const RowInputs&) const = default;
};

/// The problem and, where they are not normal with spread 1, its inputs, for messages.
std::string describe(const Problem& problem, const RowInputs& inputs);

/// {batch, heads, seq_q, seq_kv, head_dim, causal, dtype}, and inputs and spread where they are not
/// normal and 1.
Json to_json(const Problem& problem, const RowInputs& inputs = {});
/// Throw nlohmann's exceptions when a field is missing or of another type.
Problem problem_from_json(const Json& json);
RowInputs inputs_from_json(const Json& json);

/// What identifies a row: a file holds at most one row for each.
struct RowKey {
  std::string kind;     ///< "rung" or "peer"
  std::string id;       ///< "06", "fa2"
  std::string variant;  ///< tile or version; may be empty
  Problem problem;
  RowInputs inputs = {};

  bool operator==(const RowKey&) const = default;
};

RowKey key_of(const Json& row);

/// What must be equal for rows to stand in one file.
struct FileIdentity {
  Json generator;  ///< compared: version, git_sha, git_dirty, nvcc, flags
  Json device;     ///< compared: kind, name, sm, memory, driver, power_limit
  Json policy;     ///< compared whole
};

/// The document at path; nothing when there is no file or an empty one. Throws ForeignResults when
/// it is not a result file of this schema.
std::optional<Json> read_results(const std::filesystem::path& path);

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
  const Json* find(const RowKey& key) const;
  /// Replaces the rows with the same keys, or appends, then writes the file.
  void put(std::span<const Json> rows);

 private:
  void continue_from(const Json& document);

  std::filesystem::path path_;
  FileIdentity identity_;
  std::vector<Json> rows_;
};

/// The whole document.
Json results_document(const FileIdentity& identity, std::span<const Json> rows);

/// Writes text to a temporary file in the same folder, syncs it and renames it over path, so that
/// path holds the old or the new content at every moment. Throws ResultsIoError.
void write_atomically(const std::filesystem::path& path, const std::string& text);

/// Throws ResultsIoError with the reason unless a file can be created at path and then renamed over
/// what is there. Nothing at path changes.
void require_writable(const std::filesystem::path& path);

}  // namespace fa
