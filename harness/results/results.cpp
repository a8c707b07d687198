// SPDX-License-Identifier: MIT
#include "harness/results/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "harness/io/file.h"
#include "harness/results/json_file.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

/// "git_sha abc there, def here" for the first of the keys that differs; empty when none does.
std::string difference(const Json& there, const Json& here, std::span<const char* const> keys) {
  for (const char* key : keys) {
    const Json left = there.value(key, Json());
    const Json right = here.value(key, Json());
    if (left != right) {
      return fmt::format("{} is {} there and {} now", key, left.dump(), right.dump());
    }
  }
  return {};
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw ForeignResults(fmt::format("'{}' is not continued: {}; give another path, or --overwrite",
                                   path.string(), why));
}

constexpr std::array kGeneratorKeys{"version", "git_sha", "git_dirty", "nvcc", "flags"};
constexpr std::array kDeviceKeys{"kind", "name", "sm", "memory", "driver", "power_limit"};

/// A result file of this schema; anything else is refused.
ResultsDocument to_results(const fs::path& path, Json document) {
  if (!document.is_object() || !document.contains("schema") || !document.contains("rows") ||
      !document["rows"].is_array()) {
    refuse(path, "it is not a result file of fa bench");
  }
  const Json& schema = document["schema"];
  if (schema != kResultsSchema) {
    refuse(path,
           fmt::format("its schema is {}, this program writes {}", schema.dump(), kResultsSchema));
  }
  for (const char* part : {"generator", "device", "policy"}) {
    if (!document.contains(part) || !document[part].is_object()) {
      refuse(path, fmt::format("it has no '{}'", part));
    }
  }
  ResultsDocument read{{document["generator"], document["device"], document["policy"]}, {}, {}};
  try {
    for (const Json& row : document["rows"]) read.rows.push_back(row_from_json(row));
  } catch (const std::exception& damage) {
    refuse(path, fmt::format("its row {} is damaged ({})", read.rows.size(), damage.what()));
  }
  document.erase("rows");
  read.besides = std::move(document);
  return read;
}

/// A row takes the place of another, of the same kernel from the same sources: counts that only the
/// other one has stay.
Row in_place_of(const Row& old, Row row) {
  if (row.status != Status::ok || old.status != Status::ok) return row;
  if (!row.counts) row.counts = old.counts, row.bound = old.bound;
  if (row.lines.empty() && row.counts == old.counts) row.lines = old.lines;
  return row;
}

}  // namespace

std::optional<ResultsDocument> read_results(const fs::path& path) {
  try {
    std::optional<Json> document = read_json(path);
    if (!document) return std::nullopt;
    return to_results(path, std::move(*document));
  } catch (const BadJson& error) {
    refuse(path, error.what());
  }
}

ResultsFile::ResultsFile(fs::path path, FileIdentity identity, bool overwrite)
    : path_(std::move(path)), identity_(std::move(identity)), afresh_(overwrite) {
  io::require_writable(path_);
  read();
}

void ResultsFile::read() {
  if (afresh_) return;
  if (std::optional<ResultsDocument> document = read_results(path_)) {
    continue_from(std::move(*document));
  }
}

void ResultsFile::continue_from(ResultsDocument document) {
  const FileIdentity& there = document.identity;
  std::string differs = difference(there.generator, identity_.generator, kGeneratorKeys);
  if (differs.empty()) differs = difference(there.device, identity_.device, kDeviceKeys);
  if (differs.empty()) {
    std::vector<const char*> keys;
    for (const auto& entry : identity_.policy.items()) keys.push_back(entry.key().c_str());
    differs = difference(there.policy, identity_.policy, keys);
  }
  if (!differs.empty()) refuse(path_, "it was measured otherwise, " + differs);
  rows_ = std::move(document.rows);
  there_ = std::move(document.besides);
}

const Row* ResultsFile::find(const RowKey& key) const {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.key == key; });
  return found == rows_.end() ? nullptr : &*found;
}

void ResultsFile::put(std::span<const Row> rows) {
  const io::FolderLock lock(path_);
  read();  // another process may have added rows
  for (const Row& row : rows) {
    if (row.key.kind == RowKind::peer) {
      // A peer that was missing or of another version before: one version a file.
      std::erase_if(rows_, [&](const Row& old) {
        RowKey same = old.key;
        same.variant = row.key.variant;
        return same == row.key && old.key != row.key;
      });
    }
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const Row& old) { return old.key == row.key; });
    if (found == rows_.end()) {
      rows_.push_back(row);
    } else {
      *found = in_place_of(*found, row);
    }
  }
  Json document = results_document(identity_, rows_);
  add_unknown(document, there_);
  io::write_file(path_, document_text(document));
  afresh_ = false;
}

Json results_document(const FileIdentity& identity, std::span<const Row> rows) {
  Json document;
  document["schema"] = kResultsSchema;
  document["generator"] = identity.generator;
  document["device"] = identity.device;
  document["policy"] = identity.policy;
  document["rows"] = Json::array();
  for (const Row& row : rows) document["rows"].push_back(to_json(row));
  return document;
}

}  // namespace fa
