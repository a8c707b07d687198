// SPDX-License-Identifier: MIT
// Lines of JSON as the files of vectors use it: strings without escapes, arrays, objects.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ptxvm_vectors {

/// Hexadecimal numbers, separated by spaces.
std::string join(const std::vector<uint64_t>& values);
std::string quote(const std::string& text);
std::string object(const std::map<std::string, std::string>& fields);

/// Reads one line. Throws std::runtime_error for what the writers here do not make.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool accept(char c);
  void expect(char c);
  std::string string();
  std::vector<uint64_t> numbers();
  std::map<std::string, std::string> strings();

  /// Calls f() for each element, with the commas taken care of.
  template <class F>
  void list(char open, char close, F f) {
    expect(open);
    if (accept(close)) return;
    do f();
    while (accept(','));
    expect(close);
  }
  /// Calls f(key) for each field of an object.
  template <class F>
  void fields(F f) {
    list('{', '}', [&] {
      const std::string key = string();
      expect(':');
      f(key);
    });
  }

 private:
  std::string_view text_;
};

}  // namespace ptxvm_vectors
