#include "harness/bench/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "harness/io/file.h"

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
  throw ForeignResults(fmt::format(
      "'{}' is not continued: {}; give another --json path, or --overwrite", path.string(), why));
}

constexpr std::array kGeneratorKeys{"version", "git_sha", "git_dirty", "nvcc", "flags"};
constexpr std::array kDeviceKeys{"kind", "name", "sm", "memory", "driver", "power_limit"};

/// Adds what an object lacks and another has.
void keep_unknown(Json& object, const Json& other) {
  for (const auto& [key, value] : other.items()) {
    if (!object.contains(key)) object[key] = value;
  }
}

}  // namespace

std::string describe(const Problem& problem, const RowInputs& inputs) {
  std::string text = to_string(problem);
  if (inputs.name != RowInputs().name) text += ", " + inputs.name;
  if (inputs.spread != RowInputs().spread) text += fmt::format(", spread {}", inputs.spread);
  return text;
}

Json to_json(const Problem& problem, const RowInputs& inputs) {
  Json json{{"batch", problem.batch},           {"heads", problem.heads},
            {"seq_q", problem.seq_q},           {"seq_kv", problem.seq_kv},
            {"head_dim", problem.head_dim},     {"causal", problem.causal},
            {"dtype", to_string(problem.dtype)}};
  if (problem.lse) json["lse"] = true;
  if (inputs.name != RowInputs().name) json["inputs"] = inputs.name;
  if (inputs.spread != RowInputs().spread) json["spread"] = inputs.spread;
  return json;
}

Problem problem_from_json(const Json& json) {
  Problem problem;
  json.at("batch").get_to(problem.batch);
  json.at("heads").get_to(problem.heads);
  json.at("seq_q").get_to(problem.seq_q);
  json.at("seq_kv").get_to(problem.seq_kv);
  json.at("head_dim").get_to(problem.head_dim);
  json.at("causal").get_to(problem.causal);
  const auto dtype = json.at("dtype").get<std::string>();
  if (dtype != to_string(Dtype::f16) && dtype != to_string(Dtype::f32)) {
    throw std::invalid_argument("dtype '" + dtype + "'");
  }
  problem.dtype = dtype == to_string(Dtype::f16) ? Dtype::f16 : Dtype::f32;
  problem.lse = json.value("lse", false);
  return problem;
}

RowInputs inputs_from_json(const Json& json) {
  RowInputs inputs;
  if (json.contains("inputs")) json.at("inputs").get_to(inputs.name);
  if (json.contains("spread")) json.at("spread").get_to(inputs.spread);
  return inputs;
}

RowKey key_of(const Json& row) {
  return {.kind = row.at("kind").get<std::string>(),
          .id = row.at("id").get<std::string>(),
          .variant = row.at("variant").get<std::string>(),
          .problem = problem_from_json(row.at("problem")),
          .inputs = inputs_from_json(row.at("problem"))};
}

namespace {

/// Refuses what is not a result file of this schema.
void require_results(const fs::path& path, const Json& document) {
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
  std::size_t index = 0;
  try {
    for (const Json& row : document["rows"]) {
      key_of(row);
      row.at("status").get<std::string>();
      row.at("reason").get<std::string>();
      ++index;
    }
  } catch (const std::exception& damage) {
    refuse(path, fmt::format("its row {} is damaged ({})", index, damage.what()));
  }
}

}  // namespace

std::optional<Json> read_results(const fs::path& path) {
  try {
    std::optional<Json> document = read_json(path);
    if (document) require_results(path, *document);
    return document;
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
  if (std::optional<Json> document = read_results(path_)) continue_from(std::move(*document));
}

void ResultsFile::continue_from(Json document) {
  std::string differs = difference(document["generator"], identity_.generator, kGeneratorKeys);
  if (differs.empty()) differs = difference(document["device"], identity_.device, kDeviceKeys);
  if (differs.empty()) {
    std::vector<const char*> keys;
    for (const auto& entry : identity_.policy.items()) keys.push_back(entry.key().c_str());
    differs = difference(document["policy"], identity_.policy, keys);
  }
  if (!differs.empty()) refuse(path_, "it was measured otherwise, " + differs);
  rows_ = document["rows"].get<std::vector<Json>>();
  document["rows"].clear();
  there_ = std::move(document);
}

const Json* ResultsFile::find(const RowKey& key) const {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const Json& row) { return key_of(row) == key; });
  return found == rows_.end() ? nullptr : &*found;
}

void ResultsFile::put(std::span<const Json> rows) {
  const io::FolderLock lock(path_);
  read();  // another process may have added rows
  for (const Json& row : rows) {
    const RowKey key = key_of(row);
    if (key.kind == "peer") {
      // A peer that was missing or of another version before: one version a file.
      std::erase_if(rows_, [&](const Json& old) {
        const RowKey other = key_of(old);
        return other.kind == key.kind && other.id == key.id && other.problem == key.problem &&
               other.inputs == key.inputs && other.variant != key.variant;
      });
    }
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const Json& old) { return key_of(old) == key; });
    if (found == rows_.end()) {
      rows_.push_back(row);
    } else {
      *found = row;
    }
  }
  Json document = results_document(identity_, rows_);
  for (const auto& [key, part] : there_.items()) {
    if (document.contains(key) && part.is_object()) keep_unknown(document[key], part);
  }
  keep_unknown(document, there_);
  io::write_file(path_, document.dump(1) + "\n");
  afresh_ = false;
}

Json results_document(const FileIdentity& identity, std::span<const Json> rows) {
  Json document;
  document["schema"] = kResultsSchema;
  document["generator"] = identity.generator;
  document["device"] = identity.device;
  document["policy"] = identity.policy;
  document["rows"] = Json::array();
  for (const Json& row : rows) document["rows"].push_back(row);
  return document;
}

}  // namespace fa
