// SPDX-License-Identifier: MIT
// JSON that somebody else wrote.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "harness/results/json.h"

namespace fa {

/// The file is not JSON, or none that this program reads. One clause: "it is not JSON".
struct BadJson : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The document at path; nothing when there is no file or an empty one. Bounded in size and depth,
/// because what handles a document follows its nesting on the stack. Throws BadJson, io::FileError.
std::optional<Json> read_json(const std::filesystem::path& path);

/// The document as files have it: a line for each member, for each element of a member that is an
/// array, such as a row of results, and for each entry of one that is an object. So a difference of
/// two files shows the rows that differ. Ends with a line break.
std::string document_text(const Json& document);

}  // namespace fa
