// SPDX-License-Identifier: MIT
#include "text/parser.h"

#include <utility>

#include "text/cursor.h"
#include "text/join.h"

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
    parts_.push_back(std::move(part_));
    join(std::move(parts_), module_);
    return std::move(module_);
  }

 private:
  void item(bool& versioned) {
    bool external = false, weak = false, own = true;
    while (c_.is_dot(".visible") || c_.is_dot(".extern") || c_.is_dot(".weak") ||
           c_.is_dot(".common")) {
      external |= c_.is_dot(".extern");
      weak |= c_.is_dot(".weak");
      own = false;
      c_.advance();
    }
    if (c_.take_dot(".version")) {
      if (versioned) {
        c_.first_file = static_cast<uint32_t>(module_.files.size());
        parts_.push_back(std::exchange(part_, {}));
      }
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
      part_.entries.push_back(parse_entry(c_));
      part_.entries.back().weak = weak;
    } else if (c_.take_dot(".func")) {
      part_.functions.push_back(parse_function(c_));
      part_.functions.back().weak = weak;
      part_.functions.back().own = own;
    } else if (c_.is_dot(".global") || c_.is_dot(".const") || c_.is_dot(".shared") ||
               c_.is_dot(".local")) {
      const size_t before = part_.variables.size();
      parse_variables(c_, part_.variables, external);
      for (size_t i = before; i < part_.variables.size(); ++i) {
        part_.variables[i].weak = weak;
        part_.variables[i].own = own;
      }
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

  Cursor c_;
  ModuleText module_;
  Part part_;  // the module that is being read
  std::vector<Part> parts_;
};

}  // namespace

ModuleText parse(const Source& source, Errors& errors) {
  return ModuleParser(source, errors).run();
}

}  // namespace ptxvm::text
