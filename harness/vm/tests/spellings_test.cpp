// SPDX-License-Identifier: MIT
// What compilers write, gathered by spellings/gather.py: each spelling is decoded and runs, or is
// on the list of those that do not, with the reason. `ptxvm_spellings_test "[write]"` writes that
// list.
#include <fstream>
#include <map>
#include <sstream>

#include "catch.h"
#include "isa/decode.h"

using namespace ptxvm;

namespace {

std::vector<std::string> first_words(const std::string& name) {
  std::ifstream in(std::string(PTXVM_SPELLINGS) + "/" + name);
  REQUIRE(in);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') out.push_back(line.substr(0, line.find(' ')));
  }
  return out;
}

// Spellings that do not run, with the reason.
std::map<std::string, std::string> refused() {
  std::map<std::string, std::string> out;
  for (const std::string& name : first_words("spellings.txt")) {
    const isa::Decoded d = isa::decode(name);
    if (d.spelling && d.spelling->runs()) continue;
    const isa::Row* row = d.spelling ? d.spelling->row : isa::find_family(name);
    out[name] = row ? std::string(row->reason) : "not in the table";
  }
  return out;
}

std::string list() {
  std::ostringstream out;
  out << "# Spellings of spellings.txt that the machine does not run, with the reason; reviewed.\n";
  for (const auto& [name, reason] : refused()) out << name << " " << reason << "\n";
  return out.str();
}

}  // namespace

TEST_CASE("what compilers write runs, or is on the reviewed list") {
  CHECK(first_words("spellings.txt").size() > 2000);
  std::ifstream in(std::string(PTXVM_SPELLINGS) + "/refused.txt");
  std::ostringstream text;
  text << in.rdbuf();
  CHECK(list() == text.str());
}

TEST_CASE("what Triton and Numba write runs") {
  std::ifstream in(std::string(PTXVM_SPELLINGS) + "/spellings.txt");
  size_t count = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.find(" triton:") == line.npos && line.find(" numba:") == line.npos) continue;
    INFO(line);
    const isa::Decoded d = isa::decode(line.substr(0, line.find(' ')));
    REQUIRE(d.spelling);
    CHECK(d.spelling->runs());
    ++count;
  }
  CHECK(count > 300);
}

TEST_CASE("write the list", "[.][write]") {
  std::ofstream(std::string(PTXVM_SPELLINGS) + "/refused.txt") << list();
}
