// SPDX-License-Identifier: MIT
// ptxas takes every text that the recorder would run on a Blackwell GPU.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "blackwell_texts.h"
#include "catch.h"

using namespace ptxvm_vectors;

namespace {

// What ptxas says about a module; empty when it takes it.
std::string judge(const std::string& text, const std::filesystem::path& folder) {
  const std::string ptx = folder / "module.ptx", log = folder / "log";
  std::ofstream(ptx) << text;
  const std::string command = std::string(PTXVM_PTXAS) + " -w -O0 -arch=sm_100a " + ptx + " -o " +
                              (folder / "cubin").string() + " > " + log + " 2>&1";
  if (std::system(command.c_str()) == 0) return {};
  std::ifstream in(log);
  return "refused: " + std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

TEST_CASE("ptxas assembles every text of the recorder for sm_100a") {
  if (std::string(PTXVM_PTXAS).empty()) {
    std::puts("skipped: ptxas was not found");
    std::exit(77);
  }
  FakeGpu gpu("a fake", 100);
  const std::vector<Family> families = blackwell_families();
  record(gpu, families, generate_sets(families), 1);
  const size_t plain = gpu.texts.size();
  record_wgmma(gpu, tcgen05_cases(), make_tcgen05_matrices(), 1);
  CHECK(plain >= families.size() / 16);
  CHECK(gpu.texts.size() > plain);
  const auto folder = std::filesystem::temp_directory_path() /
                      ("ptxvm-blackwell-" + std::to_string(std::random_device{}()));
  std::filesystem::create_directory(folder);
  for (const std::string& text : gpu.texts) {
    INFO(text);
    CHECK(text.find(".target sm_100a\n") != text.npos);
    CHECK(judge(text, folder) == "");
  }
  std::filesystem::remove_all(folder);
}
