// SPDX-License-Identifier: MIT
#include "observe/json_text.h"

#include <cstdint>
#include <cstdio>

namespace ptxvm::observe {
namespace {

/// Bytes of the UTF-8 character at the start of `s`; 0 where there is none.
size_t character(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || s.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Too long for their number, surrogates, beyond U+10FFFF.
  const uint8_t second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return length;
}

}  // namespace

std::string json_text(std::string_view s) {
  std::string out;
  while (!s.empty()) {
    const size_t length = character(s);
    const char c = s.front();
    if (length == 0) {
      out += "\\ufffd";
    } else if (static_cast<uint8_t>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += s.substr(0, length);
    }
    s.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string json_string(std::string_view s) {
  return '"' + json_text(s) + '"';
}

std::string json_object(std::initializer_list<std::pair<std::string_view, std::string>> members) {
  std::string out = "{";
  for (const auto& [key, value] : members) {
    if (out.size() > 1) out += ",";
    out += json_string(key) + ":" + value;
  }
  return out + "}";
}

}  // namespace ptxvm::observe
