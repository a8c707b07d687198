// SPDX-License-Identifier: MIT
#include "harness/results/json_file.h"

#include <string>

#include "harness/io/file.h"

namespace fa {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr int kMaxDepth = 64;

// The elements of an object or an array, each as `text` writes it, on lines that begin with indent.
template <typename Text>
std::string lines_of(const Json& parent, const std::string& indent, const Text& text) {
  const bool object = parent.is_object();
  std::string lines;
  for (const auto& [key, value] : parent.items()) {
    lines += lines.empty() ? "\n" : ",\n";
    lines += indent + " " + (object ? Json(key).dump() + ": " : "") + text(value);
  }
  return (object ? "{" : "[") + lines + "\n" + indent + (object ? "}" : "]");
}

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

std::string document_text(const Json& document) {
  const auto element = [](const Json& value) { return value.dump(); };
  const auto member = [&](const Json& value) {
    return value.is_structured() && !value.empty() ? lines_of(value, " ", element) : value.dump();
  };
  return lines_of(document, "", member) + "\n";
}

}  // namespace fa
