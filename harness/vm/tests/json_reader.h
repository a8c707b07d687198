// SPDX-License-Identifier: MIT
// A strict reader of JSON for tests: throws on anything that is not JSON.
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ptxvm_test {

struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject } kind = Kind::kNull;
  double number = 0;
  std::string string;
  std::vector<Json> array;
  std::map<std::string, Json> object;

  const Json& at(const std::string& key) const {
    const auto found = object.find(key);
    if (found == object.end()) throw std::runtime_error("no member " + key);
    return found->second;
  }
  bool has(const std::string& key) const { return object.count(key) != 0; }
  std::string text(const std::string& key) const { return at(key).string; }
  double value(const std::string& key) const { return at(key).number; }
};

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json read() {
    Json v = value();
    space();
    if (at_ != text_.size()) fail();
    return v;
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error("not JSON at byte " + std::to_string(at_) + ": " +
                             text_.substr(at_, 40));
  }
  void space() {
    while (at_ < text_.size() && std::string(" \n\r\t").find(text_[at_]) != std::string::npos)
      ++at_;
  }
  char next() {
    if (at_ >= text_.size()) fail();
    return text_[at_++];
  }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(const std::string& word) {
    for (char c : word) {
      if (next() != c) fail();
    }
  }

  Json value() {
    space();
    Json v;
    if (take('{')) {
      v.kind = Json::Kind::kObject;
      if (take('}')) return v;
      do {
        space();
        std::string key = string();
        if (!take(':')) fail();
        if (!v.object.emplace(std::move(key), value()).second) fail();
      } while (take(','));
      if (!take('}')) fail();
    } else if (take('[')) {
      v.kind = Json::Kind::kArray;
      if (take(']')) return v;
      do {
        v.array.push_back(value());
      } while (take(','));
      if (!take(']')) fail();
    } else if (at_ < text_.size() && text_[at_] == '"') {
      v.kind = Json::Kind::kString;
      v.string = string();
    } else if (at_ < text_.size() && (text_[at_] == 't' || text_[at_] == 'f')) {
      v.kind = Json::Kind::kBool;
      v.number = text_[at_] == 't';
      need(v.number != 0 ? "true" : "false");
    } else if (at_ < text_.size() && text_[at_] == 'n') {
      need("null");
    } else {
      v.kind = Json::Kind::kNumber;
      v.number = number();
    }
    return v;
  }

  double number() {
    const size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    if (at_ >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at_]))) fail();
    while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) ||
                                  std::string("+-.eE").find(text_[at_]) != std::string::npos))
      ++at_;
    return std::strtod(text_.substr(begin, at_ - begin).c_str(), nullptr);
  }

  std::string string() {
    if (next() != '"') fail();
    std::string s;
    for (;;) {
      const char c = next();
      if (c == '"') return s;
      if (static_cast<unsigned char>(c) < 0x20) fail();
      if (c != '\\') {
        s += c;
        continue;
      }
      const char e = next();
      if (e == 'u') {
        for (int i = 0; i < 4; ++i) {
          if (!std::isxdigit(static_cast<unsigned char>(next()))) fail();
        }
        s += '?';
      } else if (std::string("\"\\/bfnrt").find(e) != std::string::npos) {
        s += e;
      } else {
        fail();
      }
    }
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace ptxvm_test
