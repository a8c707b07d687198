// SPDX-License-Identifier: MIT
// What this program was built from: version, commit, compiler.
#pragma once

#include <filesystem>
#include <string>

namespace fa {

/// Version of the project, "0.1.0".
const char* project_version();

/// Version, commit and compilers in one line: for fa --version.
std::string version_text();

/// State of the source tree that the program was built from.
struct SourceState {
  std::string git_sha;  ///< "unknown" where neither git nor the build was told
  bool git_dirty = true;
  std::string warning;  ///< what a reader should know, empty for nothing
};

/// The commit recorded by the build. Where the source tree and its .git are still there, changes
/// made since count as dirty too, and so does a tree that has moved to another commit. Changes in
/// docs/, plots/ and *.md alone do not: they cannot change a measurement.
SourceState source_state();

/// The CUDA compiler of the build: "13.0.88"; and its options.
const char* build_nvcc();
const char* build_flags();

/// Path of a file in the source tree that the program was built from.
std::filesystem::path source_path(const std::string& relative);

}  // namespace fa
