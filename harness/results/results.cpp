#include "harness/results/results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace fa {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view what, int error) {
  throw ResultsIoError(fmt::format("cannot {} '{}': {}", what, path.string(),
                                   std::generic_category().message(error)));
}

/// A file beside `target` that disappears unless it is renamed over it.
class Temporary {
 public:
  explicit Temporary(const fs::path& target) : target_(target) {
    std::string name = target.string() + ".XXXXXX";
    fd_ = ::mkstemp(name.data());
    if (fd_ < 0) fail(target, "write", errno);
    path_ = name;
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(fd_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(target_, "write", errno);
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void rename_over_target() {
    // mkstemp makes the file private; a result file gets the permissions of any other new file.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd_, 0666 & ~mask) != 0 || ::fsync(fd_) != 0) fail(target_, "write", errno);
    if (::close(std::exchange(fd_, -1)) != 0) fail(target_, "write", errno);
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "replace", errno);
    path_.clear();
    sync_folder();
  }

 private:
  void sync_folder() const {
    const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    ::fsync(fd);
    ::close(fd);
  }

  fs::path target_;
  std::string path_;
  int fd_ = -1;
};

/// Where a chain of links ends, whether or not there is a file.
fs::path resolve_link(fs::path path) {
  constexpr int kMaxLinks = 40;
  std::error_code error;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

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

}  // namespace

std::optional<ResultsDocument> read_results(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) return std::nullopt;
  if (error) fail(path, "read", error.value());
  if (size == 0) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, "read", errno);
  Json document = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) refuse(path, "it is not JSON");
  if (!document.is_object() || !document.contains("schema") || !document.contains("rows")) {
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
  ResultsDocument read{{document["generator"], document["device"], document["policy"]}, {}};
  try {
    for (const Json& row : document["rows"]) read.rows.push_back(row_from_json(row));
  } catch (const std::exception& damage) {
    refuse(path, fmt::format("its row {} is damaged ({})", read.rows.size(), damage.what()));
  }
  return read;
}

ResultsFile::ResultsFile(fs::path path, FileIdentity identity, bool overwrite)
    : path_(resolve_link(std::move(path))), identity_(std::move(identity)) {
  require_writable(path_);
  if (overwrite) return;
  if (const auto document = read_results(path_)) continue_from(*document);
}

void ResultsFile::continue_from(const ResultsDocument& document) {
  const FileIdentity& there = document.identity;
  std::string differs = difference(there.generator, identity_.generator, kGeneratorKeys);
  if (differs.empty()) differs = difference(there.device, identity_.device, kDeviceKeys);
  if (differs.empty()) {
    std::vector<const char*> keys;
    for (const auto& entry : identity_.policy.items()) keys.push_back(entry.key().c_str());
    differs = difference(there.policy, identity_.policy, keys);
  }
  if (!differs.empty()) refuse(path_, "it was measured otherwise, " + differs);
  rows_ = document.rows;
}

const Row* ResultsFile::find(const RowKey& key) const {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.key == key; });
  return found == rows_.end() ? nullptr : &*found;
}

void ResultsFile::put(std::span<const Row> rows) {
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
      *found = row;
    }
  }
  write_atomically(path_, results_document(identity_, rows_).dump(1) + "\n");
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

void write_atomically(const fs::path& path, const std::string& text) {
  Temporary temporary(path);
  temporary.write(text);
  temporary.rename_over_target();
}

void require_writable(const fs::path& path) {
  if (path.empty()) throw ResultsIoError("cannot write '': the path is empty");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail(path, "write", EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw ResultsIoError(fmt::format("cannot write '{}': not a regular file", path.string()));
  }
  if (fs::exists(status) && ::access(path.c_str(), W_OK) != 0) fail(path, "write", errno);
  // Whether the folder takes a new file is found out by making one.
  Temporary probe(path);
}

}  // namespace fa
