// SPDX-License-Identifier: MIT
// The seeds and every input that once crashed, without libFuzzer.
#include <algorithm>
#include <filesystem>

#include "catch.h"
#include "fuzz/generated.h"
#include "fuzz/one_input.h"
#include "read_text.h"

namespace {

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(PTXVM_FUZZ_CORPUS))
    files.push_back(e.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("the corpus is refused or runs to an end") {
  REQUIRE(corpus().size() >= 10);
  for (const auto& file : corpus()) {
    INFO(file);
    ptxvm_fuzz::one_input(ptxvm_test::read_text(file));
    SUCCEED();
  }
}

TEST_CASE("a text cut anywhere is refused or runs to an end") {
  for (const auto& file : corpus()) {
    const std::string text = ptxvm_test::read_text(file);
    INFO(file);
    for (size_t n = 0; n < text.size(); n += 1 + text.size() / 64)
      ptxvm_fuzz::one_input(text.substr(0, n));
    SUCCEED();
  }
}

TEST_CASE("kernels made from random bytes are accepted, and run to an end") {
  uint64_t state = 12;
  size_t accepted = 0;
  for (int kernel = 0; kernel < 300; ++kernel) {
    std::vector<uint8_t> bytes(24 + static_cast<size_t>(kernel));
    for (uint8_t& b : bytes) {
      state = state * 6364136223846793005 + 1442695040888963407;
      b = static_cast<uint8_t>(state >> 56);
    }
    const std::string text = ptxvm_fuzz::Generator(bytes).kernel();
    INFO(text);
    try {
      ptxvm::Module::parse(text, "fuzz.ptx");
      ++accepted;
    } catch (const ptxvm::Error&) {
    }
    ptxvm_fuzz::one_input(text);
  }
  CHECK(accepted > 100);
}
