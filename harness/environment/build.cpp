// SPDX-License-Identifier: MIT
#include "harness/environment/build.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "fa_build_config.h"
#include "fa_git_version.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// Standard output of a git command in the source tree; nothing when it fails.
std::optional<std::string> git(const std::string& arguments) {
  const std::string command = "git -C " + quoted(FA_SOURCE_DIR) + " " + arguments + " 2>/dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string text;
  std::array<char, 4096> block{};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe)) {
    text.append(block.data(), n);
  }
  if (::pclose(pipe) != 0) return std::nullopt;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string short_sha(const std::string& sha) {
  return sha.substr(0, 10);
}

}  // namespace

const char* project_version() {
  return FA_VERSION;
}

SourceState source_state() {
  SourceState state{
      .git_sha = FA_BUILD_GIT_SHA, .git_dirty = FA_BUILD_GIT_DIRTY != 0, .warning = {}};
  std::error_code error;
  if (!fs::exists(fs::path(FA_SOURCE_DIR) / ".git", error)) return state;
  const auto head = git("rev-parse HEAD");
  if (!head) return state;
  if (*head != state.git_sha) {
    state.warning = fmt::format("built from commit {}, the source tree is at {}: build again",
                                short_sha(state.git_sha), short_sha(*head));
    state.git_dirty = true;
    return state;
  }
  const auto changes = git("status --porcelain -- . ':!docs' ':!plots' ':!*.md'");
  if (!changes || !changes->empty()) state.git_dirty = true;
  return state;
}

std::string version_text() {
  const SourceState source = source_state();
  return fmt::format("{} (commit {}{}; nvcc {}; {})", FA_VERSION, short_sha(source.git_sha),
                     source.git_dirty ? " with changes" : "", FA_NVCC_VERSION, FA_CXX_COMPILER);
}

const char* build_nvcc() {
  return FA_NVCC_VERSION;
}

const char* build_flags() {
  return FA_CUDA_FLAGS;
}

fs::path source_path(const std::string& relative) {
  return fs::path(FA_SOURCE_DIR) / relative;
}

}  // namespace fa
