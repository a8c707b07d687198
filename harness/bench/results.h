// The result file, schema version 1 (results.schema.json beside this file).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/attention/inputs.h"
#include "harness/attention/problem.h"
#include "harness/bench/json_file.h"

namespace fa {

inline constexpr int kResultsSchema = 1;

/// The file exists and is not one that this run may continue. Exit code 2.
struct ForeignResults : std::runtime_error {
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

/// {batch, heads, seq_q, seq_kv, head_dim, causal, dtype}, lse where it is asked for, and inputs
/// and spread where they are not normal and 1.
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
/// it is not a result file of this schema, io::FileError when it cannot be read.
std::optional<Json> read_results(const std::filesystem::path& path);

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
  const std::filesystem::path& path() const { return path_; }

  /// The row with this key, nullptr when there is none.
  const Json* find(const RowKey& key) const;
  /// Reads the file again, replaces the rows with the same keys, or appends, and writes it. Throws
  /// as the constructor.
  void put(std::span<const Json> rows);

 private:
  void read();
  void continue_from(Json document);

  std::filesystem::path path_;
  FileIdentity identity_;
  bool afresh_;                  ///< nothing that is in the file counts
  Json there_ = Json::object();  ///< what was in the file, without rows
  std::vector<Json> rows_;
};

/// The whole document.
Json results_document(const FileIdentity& identity, std::span<const Json> rows);

}  // namespace fa
