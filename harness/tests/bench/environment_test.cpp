// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/environment/build.h"
#include "harness/environment/nvml.h"
#include "harness/environment/ptxas.h"
#include "harness/tests/catch.h"

namespace fa {
namespace {

using Json = nlohmann::ordered_json;

TEST_CASE("ptxas' report: the code that would run on the device") {
  const Json report = Json::parse(R"([
    {"entry": "a", "arch": "sm_80", "registers": 100, "spill_stores": 4, "spill_loads": 8, "stack": 16},
    {"entry": "a", "arch": "sm_90a", "registers": 200},
    {"entry": "a", "arch": "sm_86", "registers": 86},
    {"entry": "b", "arch": "sm_90a", "registers": 1}
  ])");
  REQUIRE(find_ptxas_entry(report, "a", 80));
  CHECK(find_ptxas_entry(report, "a", 80)->registers == 100);
  CHECK(find_ptxas_entry(report, "a", 80)->spill_stores == 4);
  CHECK(find_ptxas_entry(report, "a", 80)->spill_loads == 8);
  CHECK(find_ptxas_entry(report, "a", 89)->registers == 86);
  CHECK(find_ptxas_entry(report, "a", 90)->registers == 200);
  CHECK_FALSE(find_ptxas_entry(report, "b", 80));
  CHECK_FALSE(find_ptxas_entry(report, "a", 100));
  CHECK_FALSE(find_ptxas_entry(report, "c", 80));
  CHECK_FALSE(find_ptxas_entry(Json(), "a", 80));
}

/// The first line that a command prints, empty where it fails.
std::string first_line(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char line[256] = "";
  if (!pipe || !std::fgets(line, sizeof line, pipe.get())) return "";
  return std::string(line, std::strcspn(line, "\n"));
}

TEST_CASE("the source state is the commit of the tree, or a warning names both") {
  const SourceState state = source_state();
  const std::string root = source_path(".").string();
  const std::string head = std::filesystem::exists(source_path(".git"))
                               ? first_line("git -C '" + root + "' rev-parse HEAD 2>&1")
                               : "";
  INFO("built from " << state.git_sha << ", the tree is at " << head);
  if (state.git_sha == "unknown") {
    CHECK(state.git_dirty);
  } else {
    CHECK(state.git_sha.size() == 40);
    CHECK(state.git_sha.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  if (head.size() != 40) return;  // exported without .git, or a git that does not trust the folder
  if (state.git_sha == head) {
    CHECK(state.warning.empty());
  } else {
    CHECK(state.git_dirty);
    CHECK(state.warning.find(head.substr(0, 7)) != std::string::npos);
  }
}

TEST_CASE("a card that NVML does not know is no card, and sampling goes on without it") {
  CHECK(Nvml::open("ffffffff:ff:1f.7") == nullptr);
  ClockSampler sampler(nullptr, 2);
  sampler.open(1);
  sampler.close();
  CHECK_FALSE(sampler.reading(1).clock_mhz);
  CHECK_FALSE(sampler.reading(1).power_w);
}

}  // namespace
}  // namespace fa
