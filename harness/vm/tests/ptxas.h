// SPDX-License-Identifier: MIT
// ptxas as the judge of statements.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "isa/sample.h"
#include "read_text.h"

namespace ptxvm_test {

/// Ends the test as skipped where there is no ptxas.
inline void need_ptxas() {
  if (!std::string(PTXVM_PTXAS).empty()) return;
  std::puts("skipped: ptxas was not found");
  std::exit(77);
}

/// Joins the words of an opcode with dots.
inline std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : ".") + w;
  return text;
}

/// The text before the statements of a kernel.
inline std::string head(const std::string& target) {
  return ".version 9.0\n.target sm_" + ptxvm::isa::target_name(target) + "\n.address_size 64\n" +
         ptxvm::isa::sample_functions() + ".visible .entry k()\n{\n" +
         ptxvm::isa::sample_declarations();
}
/// The text after them.
inline constexpr const char* kTail = "$sample_label:\nret;\n}\n";

/// The line of the first statement.
inline int first_line(const std::string& target) {
  const std::string before = head(target);
  return static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
}

/// A module of statements, a line each, in kernels of a hundred: ptxas takes long to find registers
/// for many in one kernel. A kernel begins in the line of its first statement, so that no line
/// moves.
inline std::string module_of(const std::vector<std::string>& statements,
                             const std::string& target) {
  constexpr size_t kPerKernel = 100;
  std::string declarations = ptxvm::isa::sample_declarations();
  std::replace(declarations.begin(), declarations.end(), '\n', ' ');
  std::string text = head(target);
  for (size_t i = 0; i < statements.size(); ++i) {
    if (i > 0 && i % kPerKernel == 0)
      text +=
          "$sample_label: ret; } .visible .entry k" + std::to_string(i) + "() { " + declarations;
    text += statements[i] + "\n";
  }
  return text + kTail;
}

struct Judged {
  bool accepted;
  std::string said;
};

/// What ptxas says about a module for sm_`target`; `options` are further words of its command.
inline Judged ptxas(const std::string& text, const std::string& target,
                    const std::string& options = "") {
  const std::string stem =
      (std::filesystem::temp_directory_path() /
       ("ptxvm_" + std::to_string(getpid()) + "_" + std::to_string(std::hash<std::string>{}(text))))
          .string();
  std::ofstream(stem + ".ptx") << text;
  const std::string command = std::string(PTXVM_PTXAS) + " " + options + " -O0 -arch=sm_" + target +
                              " " + stem + ".ptx -o " + stem + ".cubin > " + stem + ".log 2>&1";
  const bool accepted = std::system(command.c_str()) == 0;
  Judged judged{accepted, read_text(stem + ".log")};
  for (const char* suffix : {".ptx", ".cubin", ".log"}) std::filesystem::remove(stem + suffix);
  return judged;
}

}  // namespace ptxvm_test
