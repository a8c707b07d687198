// SPDX-License-Identifier: MIT
#include "io/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace ptxvm::io {
namespace {

namespace fs = std::filesystem;

/// Nothing for "max" and for whatever is not a number.
std::optional<std::uint64_t> parse(const std::string& word) {
  std::uint64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// The number of a file that holds one.
std::optional<std::uint64_t> number(const fs::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return parse(word);
}

/// The number behind a name in a file of "name number" lines.
std::optional<std::uint64_t> number(const fs::path& path, std::string_view name) {
  std::ifstream in(path);
  for (std::string word; in >> word;) {
    if (word == name && in >> word) return parse(word);
  }
  return std::nullopt;
}

/// What the files of one version of control groups are called.
struct Names {
  const char* limit;
  const char* used;
  const char* cache;  ///< in memory.stat: pages of files that nobody has used lately
};
constexpr Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kVersion2{"memory.max", "memory.current", "inactive_file"};

void take_group(const fs::path& group, const Names& names, std::optional<std::uint64_t>& least) {
  const auto limit = number(group / names.limit);
  const auto used = number(group / names.used);
  if (!limit || !used) return;
  const std::uint64_t cache = number(group / "memory.stat", names.cache).value_or(0);
  const std::uint64_t held = *used - std::min(*used, cache);
  const std::uint64_t left = *limit - std::min(*limit, held);
  least = std::min(least.value_or(left), left);
}

/// A group and those above it, up to where they are mounted. In a container the path may be that of
/// the host, and only the mount itself be there.
void take_groups(const fs::path& mount, const fs::path& group, const Names& names,
                 std::optional<std::uint64_t>& least) {
  fs::path each = group.relative_path().lexically_normal();
  while (!each.empty() && each != ".") {
    take_group(mount / each, names, least);
    each = each.parent_path();
  }
  take_group(mount, names, least);
}

/// The soft limit of a process, from /proc/self/limits; nothing where there is none.
std::optional<std::uint64_t> soft_limit(const fs::path& limits, std::string_view name) {
  std::ifstream in(limits);
  for (std::string line; std::getline(in, line);) {  // "Max data size  4096  unlimited  bytes"
    if (!line.starts_with(name)) continue;
    std::string word;
    std::istringstream(line.substr(name.size())) >> word;
    return parse(word);
  }
  return std::nullopt;
}

/// What `ulimit -v` and `ulimit -d` leave of address space and of data.
void take_limits(const fs::path& process, std::optional<std::uint64_t>& least) {
  struct Limit {
    const char* name;
    const char* used;
  };
  for (const Limit& each : {Limit{"Max address space", "VmSize:"}, {"Max data size", "VmData:"}}) {
    const auto limit = soft_limit(process / "limits", each.name);
    const auto used = number(process / "status", each.used);  // in KiB
    if (!limit || !used) continue;
    const std::uint64_t left = *limit - std::min(*limit, *used * 1024);
    least = std::min(least.value_or(left), left);
  }
}

bool has_memory(std::string_view controllers) {
  return ("," + std::string(controllers) + ",").find(",memory,") != std::string::npos;
}

}  // namespace

std::optional<std::uint64_t> available_memory(const fs::path& root) {
  std::optional<std::uint64_t> least = number(root / "proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;
  take_limits(root / "proc/self", least);
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,memory:/path", "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) take_groups(mount, group, kVersion2, least);
    if (has_memory(controllers)) take_groups(mount / "memory", group, kVersion1, least);
  }
  return least;
}

}  // namespace ptxvm::io
