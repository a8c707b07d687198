// SPDX-License-Identifier: MIT
// The seeds and every input that once crashed, without libFuzzer.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "catch.h"
#include "fuzz/one_input.h"

namespace {

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(PTXVM_FUZZ_CORPUS))
    files.push_back(e.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the corpus is refused or runs to an end") {
  REQUIRE(corpus().size() >= 10);
  for (const auto& file : corpus()) {
    INFO(file);
    ptxvm_fuzz::one_input(slurp(file));
    SUCCEED();
  }
}

TEST_CASE("a text cut anywhere is refused or runs to an end") {
  for (const auto& file : corpus()) {
    const std::string text = slurp(file);
    INFO(file);
    for (size_t n = 0; n < text.size(); n += 1 + text.size() / 64)
      ptxvm_fuzz::one_input(text.substr(0, n));
    SUCCEED();
  }
}
