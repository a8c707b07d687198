// SPDX-License-Identifier: MIT
#include "tools/json_lines.h"

#include <charconv>
#include <stdexcept>

namespace ptxvm_vectors {
namespace {

std::string hex(uint64_t v) {
  char text[17];
  const auto end = std::to_chars(text, text + sizeof text, v, 16).ptr;
  return std::string(text, end);
}

}  // namespace

std::string join(const std::vector<uint64_t>& values) {
  std::string text;
  for (uint64_t v : values) text += (text.empty() ? "" : " ") + hex(v);
  return text;
}

std::string quote(const std::string& text) {
  return '"' + text + '"';
}

std::string object(const std::map<std::string, std::string>& fields) {
  std::string text;
  for (const auto& [key, value] : fields)
    text += (text.empty() ? "" : ",") + quote(key) + ":" + quote(value);
  return "{" + text + "}";
}

bool Reader::accept(char c) {
  if (text_.empty() || text_[0] != c) return false;
  text_.remove_prefix(1);
  return true;
}

void Reader::expect(char c) {
  if (!accept(c)) throw std::runtime_error(std::string("'") + c + "' expected");
}

std::string Reader::string() {
  expect('"');
  const size_t end = text_.find('"');
  if (end == std::string_view::npos) throw std::runtime_error("open string");
  std::string s(text_.substr(0, end));
  text_.remove_prefix(end + 1);
  return s;
}

std::vector<uint64_t> Reader::numbers() {
  const std::string s = string();
  std::vector<uint64_t> out;
  const char* at = s.data();
  const char* end = at + s.size();
  while (at < end) {
    uint64_t v = 0;
    const auto [next, error] = std::from_chars(at, end, v, 16);
    if (error != std::errc{}) throw std::runtime_error("not a number: " + s);
    out.push_back(v);
    at = next < end ? next + 1 : next;
  }
  return out;
}

std::map<std::string, std::string> Reader::strings() {
  std::map<std::string, std::string> out;
  fields([&](const std::string& key) { out[key] = string(); });
  return out;
}

}  // namespace ptxvm_vectors
