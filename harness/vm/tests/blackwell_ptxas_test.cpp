// SPDX-License-Identifier: MIT
// ptxas takes every text that the recorder would run on a Blackwell GPU.
#include "blackwell_texts.h"
#include "catch.h"
#include "ptxas.h"

using namespace ptxvm_vectors;

TEST_CASE("ptxas assembles every text of the recorder for sm_100a") {
  ptxvm_test::need_ptxas();
  FakeGpu gpu("a fake", 100);
  const std::vector<Family> families = blackwell_families();
  record(gpu, families, generate_sets(families), 1);
  const size_t plain = gpu.texts.size();
  record_wgmma(gpu, tcgen05_cases(), make_tcgen05_matrices(), 1);
  CHECK(plain >= families.size() / 16);
  CHECK(gpu.texts.size() > plain);
  for (const std::string& text : gpu.texts) {
    INFO(text);
    CHECK(text.find(".target sm_100a\n") != text.npos);
    const ptxvm_test::Judged judged = ptxvm_test::ptxas(text, "100a", "-w");
    CHECK((judged.accepted ? "" : "refused: " + judged.said) == "");
  }
}
