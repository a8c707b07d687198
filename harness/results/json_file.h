// SPDX-License-Identifier: MIT
// JSON that somebody else wrote.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>

#include "harness/results/json.h"

namespace fa {

/// The file is not JSON, or none that this program reads. One clause: "it is not JSON".
struct BadJson : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The document at path; nothing when there is no file or an empty one. Bounded in size and depth,
/// because what handles a document follows its nesting on the stack. Throws BadJson, io::FileError.
std::optional<Json> read_json(const std::filesystem::path& path);

}  // namespace fa
