// SPDX-License-Identifier: MIT
#include "harness/results/json_file.h"

#include <string>

#include "harness/io/file.h"

namespace fa {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr int kMaxDepth = 64;

}  // namespace

std::optional<Json> read_json(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return std::nullopt;
  const std::string text = io::read_file(path, kMaxBytes);
  if (text.empty()) return std::nullopt;
  const auto shallow = [](int depth, Json::parse_event_t /*event*/, const Json& /*value*/) {
    if (depth <= kMaxDepth) return true;
    throw BadJson("it is nested more than " + std::to_string(kMaxDepth) + " levels deep");
  };
  Json document = Json::parse(text, shallow, /*allow_exceptions=*/false);
  if (document.is_discarded()) throw BadJson("it is not JSON");
  return document;
}

}  // namespace fa
