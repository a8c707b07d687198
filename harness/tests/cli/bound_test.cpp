// SPDX-License-Identifier: MIT
// What bounds a kernel: work of an instruction, the sentence, the row.
#include "harness/cli/bound.h"

#include <string>

#include "harness/tests/catch.h"

namespace fa::cli {
namespace {

TEST_CASE("work of a tensor instruction") {
  CHECK(tensor_flops("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 4096);
  CHECK(tensor_flops("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32") == 8192);
  CHECK(tensor_flops("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16") == 65536);
  CHECK(tensor_flops("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16") == 4096);
  CHECK(tensor_flops("ldmatrix.sync.aligned.m8n8.x4.shared.b16") == 0);
  CHECK(tensor_flops("mma.sync.aligned.m16n8") == 0);
  CHECK(tensor_flops("") == 0);
}

RowLaunchBound launch_of(const std::string& entry, double tensor, double shared) {
  RowLaunchBound launch{.entry = entry};
  launch.clocks[static_cast<std::size_t>(Resource::tensor_cores)] = tensor;
  launch.clocks[static_cast<std::size_t>(Resource::shared_memory)] = shared;
  launch.resource = tensor > shared ? Resource::tensor_cores : Resource::shared_memory;
  return launch;
}

LaunchPlan plan_of(std::initializer_list<std::int64_t> grids) {
  LaunchPlan plan;
  for (const std::int64_t blocks : grids) {
    plan.launches.emplace_back().grid = {.x = blocks / 2, .y = 2};
  }
  return plan;
}

TEST_CASE("the sentence about a launch and about several") {
  RowBound bound{.card = "NVIDIA H200",
                 .resource = Resource::shared_memory,
                 .clocks = 4000,
                 .launches = {launch_of("one", 1000, 4000)}};
  CHECK(to_string(bound, plan_of({132})) ==
        "bound by shared memory: 4 000 clocks of each of the 132 SMs of an NVIDIA H200; busy "
        "meanwhile:\ntensor cores 25%\n");
  CHECK_THAT(to_string(bound, plan_of({2})),
             Catch::Contains("\nWith 2 thread blocks 130 SMs are idle; "));
  bound.launches[0] = launch_of("one", 0, 4000);
  CHECK_THAT(to_string(bound, plan_of({132})), Catch::EndsWith("meanwhile:\nnothing else\n"));

  bound.clocks = 5000;
  bound.share = 0.8;
  bound.launches.push_back(launch_of("two", 1000, 4));
  CHECK(to_string(bound, plan_of({2, 132})) ==
        "bound by shared memory in 80%, tensor cores in 20% of 5 000 clocks of each of the 132 SMs "
        "of an\nNVIDIA H200\n");
  CHECK(to_string(bound.launches[1]) ==
        "  tensor cores, 1 000 clocks; busy meanwhile: nothing else\n");
}

TEST_CASE("a row keeps its bound") {
  Row row;
  row.key.id = "01";
  row.status = Status::ok;
  row.bound = RowBound{.card = "NVIDIA H200",
                       .resource = Resource::l2,
                       .clocks = 12.5,
                       .share = 0.5,
                       .launches = {launch_of("one", 3, 4), launch_of("two", 4, 3)}};
  const Json json = to_json(row);
  CHECK(json.at("bound").at("resource") == "l2");
  CHECK(json.at("bound").at("launches").at(1).at("clocks").at("tensor_cores") == 4);
  CHECK(to_json(row_from_json(json)) == json);
  Json wrong = json;
  wrong["bound"]["resource"] = "luck";
  CHECK_THROWS_WITH(row_from_json(wrong), "resource 'luck'");
}

}  // namespace
}  // namespace fa::cli
