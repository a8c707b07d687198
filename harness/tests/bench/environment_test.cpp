#include <nlohmann/json.hpp>

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

TEST_CASE("the source state names a commit or says that it is unknown") {
  const SourceState state = source_state();
  CHECK((state.git_sha == "unknown" || state.git_sha.size() == 40));
  if (state.git_sha == "unknown") CHECK(state.git_dirty);
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
