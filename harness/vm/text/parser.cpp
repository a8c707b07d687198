// SPDX-License-Identifier: MIT
#include "text/parser.h"

#include <unordered_map>

#include "text/cursor.h"

namespace ptxvm::text {
namespace {

constexpr size_t kLongestPath = 4096;

class ModuleParser {
 public:
  ModuleParser(const Source& source, Errors& errors) : c_(source, errors) {}

  ModuleText run() {
    bool versioned = false;
    while (!c_.at_end()) {
      try {
        item(versioned);
      } catch (const SyntaxError&) {
        c_.skip_to_next_item();
      }
    }
    if (!versioned)
      c_.report({0, 1}, "a PTX module begins with .version, .target and .address_size");
    return std::move(module_);
  }

 private:
  void item(bool& versioned) {
    bool external = false, weak = false;
    while (c_.is_dot(".visible") || c_.is_dot(".extern") || c_.is_dot(".weak") ||
           c_.is_dot(".common")) {
      external |= c_.is_dot(".extern");
      weak |= c_.is_dot(".weak");
      c_.advance();
    }
    if (c_.take_dot(".version")) {
      if (versioned) c_.first_file = static_cast<uint32_t>(module_.files.size());
      version();
      versioned = true;
    } else if (c_.take_dot(".target")) {
      module_.target = c_.word("a target such as sm_80");
      while (c_.take(',')) c_.word("a target option");
    } else if (c_.take_dot(".address_size")) {
      if (c_.integer("32 or 64") != 64) c_.fail_previous("only 64-bit addresses are supported");
    } else if (c_.take_dot(".file")) {
      file();
    } else if (c_.take_dot(".section")) {
      skip_section();
    } else if (c_.take_dot(".entry")) {
      module_.entries.push_back(parse_entry(c_));
    } else if (c_.take_dot(".func")) {
      function();
    } else if (c_.is_dot(".global") || c_.is_dot(".const") || c_.is_dot(".shared") ||
               c_.is_dot(".local")) {
      const size_t before = module_.variables.size();
      parse_variables(c_, module_.variables, external);
      for (size_t i = before; i < module_.variables.size(); ++i) module_.variables[i].weak = weak;
    } else if (c_.take_dot(".pragma") || c_.take_dot(".alias") || c_.is_dot(".tex")) {
      c_.skip_past(';');  // instructions that use a texture are refused by name
    } else if (c_.is_dot(".loc")) {
      c_.fail("a .loc stands in a function body");
    } else if (c_.take(';')) {
    } else {
      c_.fail("expected a directive such as .entry, .global or .const");
    }
  }

  void version() {
    // 9.0 reads as one number with a fraction.
    const std::string_view text = c_.slice_current();
    const size_t dot = text.find('.');
    if (dot == std::string_view::npos || dot == 0 || dot + 1 >= text.size()) {
      c_.fail("expected a version such as 9.0");
    }
    int number = 0;
    for (char ch : text) {
      if (ch == '.') continue;
      if (ch < '0' || ch > '9' || number > 1000) c_.fail("expected a version such as 9.0");
      number = number * 10 + (ch - '0');
    }
    module_.version = number;
    c_.advance();
  }

  void file() {
    const uint32_t number = c_.file_number();
    std::string_view path = c_.string("a file name");
    while (c_.take(',')) c_.integer("a time stamp or size");
    if (number > 100000) c_.fail_previous("the file number is too large");
    if (path.size() > kLongestPath) c_.fail_previous("the file's name is too long");
    if (module_.files.size() <= number) module_.files.resize(number + 1);
    module_.files[number] = std::string(path);
  }

  void skip_section() {
    if (!c_.is_any_dot() && !c_.is_word()) c_.fail("expected a section name");
    while (c_.is_any_dot() || c_.is_word()) c_.advance();
    c_.expect('{');
    int depth = 1;
    while (depth > 0) {
      if (c_.at_end()) c_.fail("the section is not closed");
      if (c_.is('{')) ++depth;
      if (c_.is('}')) --depth;
      c_.advance();
    }
  }

  // A declaration whose body follows says nothing new.
  void function() {
    Entry f = parse_function(c_);
    const auto [at, fresh] = numbers_.emplace(f.name, module_.functions.size());
    if (fresh) {
      module_.functions.push_back(std::move(f));
    } else if (f.defined || !f.errors.empty()) {
      module_.functions[at->second] = std::move(f);
    }
  }

  Cursor c_;
  ModuleText module_;
  std::unordered_map<std::string_view, size_t> numbers_;  // of functions
};

}  // namespace

ModuleText parse(const Source& source, Errors& errors) {
  return ModuleParser(source, errors).run();
}

}  // namespace ptxvm::text
