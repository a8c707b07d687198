// SPDX-License-Identifier: MIT
// Wavefronts of shared-memory requests against what ncu counted on an H200; recorded by
// tools/record_wavefronts.py.
#include <array>
#include <fstream>

#include "catch.h"
#include "json_reader.h"
#include "memory/banks.h"

using namespace ptxvm;
using namespace ptxvm_test;

TEST_CASE("wavefronts are those that the hardware counts") {
  std::ifstream in(PTXVM_WAVEFRONTS);
  std::string line;
  REQUIRE(std::getline(in, line));
  CHECK(JsonReader(line).read().has("gpu"));
  int patterns = 0;
  while (std::getline(in, line)) {
    const Json pattern = JsonReader(line).read();
    std::array<uint32_t, 32> addresses{};
    for (size_t i = 0; i < 32; ++i) {
      addresses[i] = static_cast<uint32_t>(pattern.at("addresses").array.at(i).number);
    }
    const Wavefronts counted = shared_wavefronts(
        static_cast<uint32_t>(pattern.value("mask")), addresses.data(),
        static_cast<uint32_t>(pattern.value("bytes")), pattern.text("op") == "ld");
    INFO(line);
    CHECK(counted.actual == static_cast<uint32_t>(pattern.value("wavefronts")));
    CHECK(counted.ideal <= counted.actual);
    ++patterns;
  }
  CHECK(patterns == 630);
}
