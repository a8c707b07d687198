// SPDX-License-Identifier: MIT
// ptxas decides what is PTX: it must accept every spelling that we run.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "catch.h"
#include "isa/sample.h"

using namespace ptxvm;

namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// One file for each least target, so that a row's `sm` is checked as well.
std::string assemble(int sm, bool arch_specific, bool optional, size_t& count) {
  const std::string target = std::to_string(std::max(sm, 75)) + (arch_specific ? "a" : "");
  std::string text = ".version 9.0\n.target sm_" + target +
                     "\n.address_size 64\n.visible .entry k()\n{\n" + isa::sample_declarations();
  count = 0;
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs() || s.row->sm != sm || s.row->arch_specific != arch_specific) continue;
    text += isa::sample_statement(s, optional) + "\n";
    ++count;
  }
  text += "$sample_label:\nret;\n}\n";
  if (count == 0) return {};
  const auto folder = std::filesystem::temp_directory_path();
  const auto stem = folder / ("ptxvm_isa_" + target + (optional ? "_optional" : "") + "_" +
                              std::to_string(std::hash<std::string>{}(text)));
  const std::string ptx = stem.string() + ".ptx", log = stem.string() + ".log";
  const std::string cubin = stem.string() + ".cubin";
  std::ofstream(ptx) << text;
  const std::string command = std::string(PTXVM_PTXAS) + " -arch=sm_" + target + " " + ptx +
                              " -o " + cubin + " > " + log + " 2>&1";
  const int status = std::system(command.c_str());
  std::string errors = status == 0 ? "" : slurp(log).substr(0, 4000) + "(see " + ptx + ")";
  if (status == 0) {
    std::filesystem::remove(ptx);
    std::filesystem::remove(log);
  }
  std::filesystem::remove(cubin);
  return errors;
}

}  // namespace

TEST_CASE("ptxas accepts every spelling that runs") {
  if (std::string(PTXVM_PTXAS).empty()) {
    std::puts("skipped: ptxas was not found");
    std::exit(77);
  }
  std::vector<std::pair<int, bool>> levels;
  for (const isa::Row& row : isa::rows()) {
    const std::pair level{row.sm, row.arch_specific};
    if (row.reason.empty() && std::find(levels.begin(), levels.end(), level) == levels.end()) {
      levels.push_back(level);
    }
  }
  size_t total = 0;
  for (auto [sm, arch_specific] : levels) {
    for (bool optional : {false, true}) {
      size_t count = 0;
      INFO("sm_" << sm);
      CHECK(assemble(sm, arch_specific, optional, count) == "");
      total += count;
    }
  }
  CHECK(total > 20000);
}
